//! What goes wrong, and back.

use std::time::Duration;

use tokio::time::sleep;

use super::random::Random;
use super::record_fault;
use crate::harness::proxy::Mode;
use crate::harness::{Cluster, Postgres};
use crate::history::Recorder;

/// Something that goes wrong for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A node is killed and started again.
    Kill(usize),
    /// A node is told to go, and started again.
    Terminate(usize),
    /// A node stands still.
    Freeze(usize, Duration),
    /// A node's way to the database is gone: cut, or silent.
    Database(usize, Mode, Duration),
    /// The peers' way to a node is gone: cut, silent or slow.
    Peers(usize, Mode, Duration),
    /// Postgres restarts; all connections are cut.
    PostgresRestarts,
    /// Postgres crashes and recovers.
    PostgresCrashes,
    /// Postgres stands still.
    PostgresPauses(Duration),
}

impl Fault {
    /// Any of them.
    pub fn any(random: &mut Random, nodes: usize, lease: Duration) -> Self {
        let node = random.below(nodes);
        let ms = u64::try_from(lease.as_millis()).unwrap_or(u64::MAX);
        // Either short enough for the lease to hold, or long enough for it to be lost.
        let time = if random.chance(50) { random.ms(50, ms / 3) } else { random.ms(ms * 3 / 2, ms * 5 / 2) };
        let broken = if random.chance(50) { Mode::Cut } else { Mode::BlackHole };
        match random.below(16) {
            0..3 => Self::Kill(node),
            3..5 => Self::Terminate(node),
            5..8 => Self::Freeze(node, time),
            8..10 => Self::Database(node, broken, time),
            10 | 11 => Self::Peers(node, broken, time),
            12 => Self::Peers(node, Mode::Delay(random.ms(5, 400)), time),
            13 => Self::PostgresRestarts,
            14 => Self::PostgresCrashes,
            _ => Self::PostgresPauses(time),
        }
    }

    /// Its name, for the report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kill(_) => "kill -9",
            Self::Terminate(_) => "SIGTERM",
            Self::Freeze(..) => "SIGSTOP",
            Self::Database(_, Mode::Cut, _) => "database cut",
            Self::Database(..) => "database silent",
            Self::Peers(_, Mode::Cut, _) => "peers cut",
            Self::Peers(_, Mode::Delay(_), _) => "peers slow",
            Self::Peers(..) => "peers silent",
            Self::PostgresRestarts => "Postgres restarted",
            Self::PostgresCrashes => "Postgres crashed",
            Self::PostgresPauses(_) => "Postgres paused",
        }
    }

    /// The nodes that it is done to, as far as their runs are concerned.
    fn nodes(self, cluster: &Cluster) -> Vec<usize> {
        match self {
            Self::Kill(node) | Self::Terminate(node) | Self::Freeze(node, _) | Self::Database(node, ..) => vec![node],
            Self::Peers(..) => Vec::new(),
            Self::PostgresRestarts | Self::PostgresCrashes | Self::PostgresPauses(_) => (0..cluster.size()).collect(),
        }
    }

    /// Whether runs are certainly lost by it.
    fn loses(self, lease: Duration) -> bool {
        match self {
            Self::Kill(_) | Self::Terminate(_) => true,
            Self::Freeze(_, time) | Self::Database(_, _, time) => time > lease + lease / 4,
            // Nobody else could take them over while nobody reaches the database.
            Self::Peers(..) | Self::PostgresRestarts | Self::PostgresCrashes | Self::PostgresPauses(_) => false,
        }
    }

    /// Has it happen and be over, and records that. To be called on the test's own thread, as [`Cluster::start`].
    ///
    /// # Panics
    /// If a node that is told to go does not, or one does not come up again.
    pub async fn strike(self, cluster: &mut Cluster, postgres: &Postgres, lease: Duration, recorder: &Recorder) {
        let sent = recorder.now();
        match self {
            Self::Kill(node) => {
                cluster.kill(node).await;
                cluster.start(node);
            }
            Self::Terminate(node) => {
                cluster.terminate(node, Duration::from_secs(30)).await;
                cluster.start(node);
            }
            Self::Freeze(node, time) => {
                cluster.freeze(node);
                sleep(time).await;
                cluster.thaw(node);
            }
            Self::Database(node, mode, time) => {
                cluster.database_line(node).set(mode);
                sleep(time).await;
                cluster.database_line(node).heal();
            }
            Self::Peers(node, mode, time) => {
                cluster.peer_line(node).set(mode);
                sleep(time).await;
                cluster.peer_line(node).heal();
            }
            Self::PostgresRestarts => postgres.restart(),
            Self::PostgresCrashes => {
                postgres.kill();
                postgres.resume_service();
            }
            Self::PostgresPauses(time) => {
                postgres.pause();
                sleep(time).await;
                postgres.resume();
            }
        }
        record_fault(recorder, sent, self.name(), self.nodes(cluster), self.loses(lease));
    }
}
