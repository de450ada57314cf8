//! What a node counts, for operators: a registry of its own for every server, read as Prometheus text or as samples.
//!
//! Counted is what passes the engine's driver, in core's own words: nothing here decides what happened, and nothing is kept beside
//! the store that could disagree with it. Labels are few and bounded: tools of the set, words of ours. No owner, id, argument, question or
//! result is ever one. Every metric is a node's own; what a cluster has is the sum over its nodes.
//!
//! | name | kind | labels | meaning |
//! |---|---|---|---|
//! | `tokkuri_build_info` | gauge | version | 1: the version that runs. |
//! | `tokkuri_tasks_created_total` | counter | tool | Tasks that were stored. |
//! | `tokkuri_tasks_live` | gauge | status | Live tasks whose run this node has, by the status that it has seen last: `working` or `input_required`. The sum over all nodes is what lives, but for the tasks of a lost node until another one takes them over. |
//! | `tokkuri_tasks_ended_total` | counter | tool, outcome | Tasks that this node ended, once that was stored: `completed`, `failed` or `cancelled`. Cancels and losses count where they were carried out, which need not be the node of the run. |
//! | `tokkuri_tasks_expired_total` | counter | was | Tasks removed because their time to live was over: still `live`, or `ended` before. |
//! | `tokkuri_tasks_orphaned_total` | counter | became | Tasks of lost runs that this node took over: `failed` (these count as ended, too), or `restarted` here. |
//! | `tokkuri_quota_refusals_total` | counter | | Calls whose owner had as many live tasks as allowed: refused, or run in the request. |
//! | `tokkuri_runs_alive` | gauge | | Tools that run in this process now, as tasks or in their request; those included that block on after their task has ended. |
//! | `tokkuri_runs_queued` | gauge | | Tasks of this node that wait for a place to run (`tasks.max_runs`). |
//! | `tokkuri_tasks_followed` | gauge | | Tasks that somebody follows on this node. |
//! | `tokkuri_streams_open` | gauge | | `subscriptions/listen` streams that are open. |
//! | `tokkuri_store_requests_total` | counter | request | What the store was asked, by kind. |
//! | `tokkuri_store_request_duration_seconds` | histogram | request | How long the answer took, where it took I/O: what is answered from memory is not measured. |
//! | `tokkuri_store_unavailable_total` | counter | request | Requests that the store could not carry out. |
//! | `tokkuri_store_conflicts_total` | counter | | Commits refused because somebody else's came first; each is made again from a new reading. |
//! | `tokkuri_lease_renewals_total` | counter | | Times the store granted this node its lease. |
//! | `tokkuri_lease_losses_total` | counter | | Times this node lost its lease, stopped its runs and went on as another: it ran out, or the store said so. |
//! | `tokkuri_signals_sent_total` | counter | | Signals that other nodes have taken. |
//! | `tokkuri_signals_lost_total` | counter | | Signals given up: no room in the queue, no such peer, no answer in time. Whom they were for finds out by its next look at the store. |
//! | `tokkuri_signals_received_total` | counter | | Signals of other nodes that arrived here. |
//! | `tokkuri_signals_late_total` | counter | | Of those, the ones that told nothing new: the store had been looked at before. |
//! | `tokkuri_request_bytes_held` | gauge | | Bytes of request bodies in memory now (`server.max_buffered_bytes`). |
//! | `tokkuri_http_requests_total` | counter | method, status | HTTP requests at the endpoint, by the MCP method that they carried (`other`: one of the rest; `none`: none that could be read) and the class of the HTTP status. Faults that ride on 200 are in `2xx`. |

mod fanout;
mod meters;
mod tally;
mod text;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use ::metrics::{Gauge, Recorder};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

pub use self::fanout::GlobalRecorder;
pub(crate) use self::meters::{HttpMethod, Meters, StoreRequest};
pub use self::text::Sample;

use self::fanout::Both;

/// Upper bounds of the histograms' buckets, in seconds: from a commit on a local disk to a database that is in trouble.
const SECONDS: [f64; 13] = [0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0];

/// The metrics of one server.
///
/// Several servers in one process have nothing in common. An application with a recorder of its own is told the same numbers
/// ([`also_to`](Self::also_to)).
pub struct Metrics {
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
    also: Option<Arc<dyn Recorder + Send + Sync>>,
    /// Gauges of what is counted elsewhere are set before they are read.
    before_reading: Mutex<Vec<Box<dyn Fn() + Send + Sync>>>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// A registry in which nothing was counted yet.
    pub fn new() -> Self {
        let builder = PrometheusBuilder::new();
        let recorder = builder
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)
            .expect("there are buckets")
            .build_recorder();
        Self { handle: recorder.handle(), recorder, also: None, before_reading: Mutex::default() }
    }

    /// Tells another recorder the same numbers; [`GlobalRecorder`] for the one that the process has installed. To be called before the server is
    /// built.
    #[must_use]
    pub fn also_to(mut self, recorder: impl Recorder + Send + Sync + 'static) -> Self {
        self.also = Some(Arc::new(recorder));
        self
    }

    /// All of it in Prometheus' text format 0.0.4.
    pub fn render(&self) -> String {
        self.take_stock();
        self.handle.render()
    }

    /// All of it as numbers, by name and labels. Histograms are the samples that Prometheus makes of them (`_bucket`, `_sum`, `_count`).
    pub fn samples(&self) -> Vec<Sample> {
        text::samples(&self.render())
    }

    /// What is to be done every few seconds, whether anybody reads or not: histograms keep single values until they are looked at.
    pub(crate) fn upkeep(&self) {
        self.take_stock();
        self.handle.run_upkeep();
    }

    /// Calls this before every reading.
    pub(crate) fn before_reading(&self, look: impl Fn() + Send + Sync + 'static) {
        self.before_reading.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(look));
    }

    /// The handles of a node with these tools.
    pub(crate) fn meters<'a>(&self, tools: impl IntoIterator<Item = &'a str>) -> Meters {
        match &self.also {
            Some(also) => Meters::new(&Both(&self.recorder, &**also), tools),
            None => Meters::new(&self.recorder, tools),
        }
    }

    fn take_stock(&self) {
        self.before_reading.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(|look| look());
    }
}

/// Sets a gauge to a count.
#[expect(clippy::cast_precision_loss, reason = "nothing here comes near the numbers that a float cannot tell apart")]
pub(crate) fn set(gauge: &Gauge, count: usize) {
    gauge.set(count as f64);
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").field("also", &self.also.is_some()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
