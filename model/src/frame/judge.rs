//! What happens is held against the claims: each commit and reading here, each reply in `replies`.

mod replies;

use std::sync::Arc;

use tokkuri_core::id::{NodeId, TaskId};
use tokkuri_core::run::Stop;
use tokkuri_core::store::{Outcome, Request, Shelf};
use tokkuri_core::task::{Phase, Task, invariant};

use crate::frame::claim::Judged;
use crate::frame::payload::{Number, key_number, task_id, task_number};
use crate::frame::state::{Flight, Node, Slot, Tool};
use crate::frame::turn::Turn;

impl Turn<'_> {
    /// A claim is broken.
    pub(super) fn breaks(&mut self, judged: Judged, why: impl FnOnce() -> String) {
        self.s.broken.add(judged);
        self.s.why.0.get_or_insert_with(|| why().into());
    }

    fn holds(&mut self, judged: Judged, it: bool, why: impl FnOnce() -> String) {
        if !it {
            self.breaks(judged, why);
        }
    }

    pub(super) fn reach(&mut self, judged: Judged) {
        self.s.reached.0 |= judged.bit();
    }

    /// The store carried out a request that may write.
    pub(super) fn judge_store(
        &mut self,
        by: Option<(Slot, &mut Flight)>,
        before: &Shelf<Number>,
        request: &Request<Number>,
        id: Option<TaskId>,
        outcome: &Outcome<Number>,
    ) {
        let now = self.s.now;
        match (request, outcome) {
            (Request::Insert { draft, .. }, Outcome::Inserted(_) | Outcome::AtTheLimit) => {
                let mine = |row: &&Arc<Task<Number>>| row.origin.owner == draft.owner;
                let counts = |row: &&Arc<Task<Number>>| matches!(row.phase, Phase::Live(_)) && now < expires(row);
                let live = before.rows().filter(mine).filter(counts).count();
                let limit = self.scene.limit as usize;
                let inserted = matches!(outcome, Outcome::Inserted(_));
                self.holds(Judged::QuotaHolds, !inserted || live < limit, || {
                    format!("a task is stored though its owner has {live} live ones of {limit}")
                });
                self.holds(Judged::QuotaFreedOnce, inserted || live >= limit, || {
                    format!("a create is refused though its owner has {live} live tasks of {limit}")
                });
                if inserted && live + 1 == limit {
                    self.reach(Judged::QuotaHolds);
                }
                if !inserted || before.rows().filter(mine).count() >= limit {
                    self.reach(Judged::QuotaFreedOnce);
                }
            }
            (Request::Join { .. } | Request::Renew { .. }, Outcome::Leased { .. } | Outcome::LeaseLost) => {
                let (id, joins) = match request {
                    Request::Join { node, .. } => (node.id, true),
                    Request::Renew { node, .. } => (*node, false),
                    _ => unreachable!("it is one of the two"),
                };
                let over = match before.nodes().get(id) {
                    Some(known) => known.leased_until <= now,
                    None => !joins,
                };
                if over {
                    self.reach(Judged::LeaseStaysLost);
                }
                let held = matches!(outcome, Outcome::Leased { .. });
                self.holds(Judged::LeaseStaysLost, !(over && held), || {
                    format!("the lease of {id} had run out, and holds again")
                });
            }
            (Request::Remove { .. }, Outcome::Removed(removed)) => {
                for id in removed {
                    let early = before.rows().find(|row| row.id == *id).is_some_and(|row| now < expires(row));
                    self.holds(Judged::TtlNotEarly, !early, || {
                        format!("task {} is removed before its time", task_number(*id))
                    });
                }
            }
            _ => {}
        }
        let Some(id) = id.filter(|_| matches!(outcome, Outcome::Inserted(_) | Outcome::Committed)) else { return };
        let Some(row) = self.s.row(id).cloned() else { return };
        let old = before.rows().find(|row| row.id == id);
        if let Err(broken) = invariant::check(&row) {
            self.breaks(claim_of(broken.0), || format!("{}: {row:?}", broken.0));
        }
        if let Some(old) = old {
            if let Err(broken) = invariant::check_step(old, &row) {
                self.breaks(claim_of(broken.0), || format!("{}: {} after {}", broken.0, say(&row), say(old)));
            }
            if old.node != NodeId::NOBODY && row.node == NodeId::NOBODY {
                self.reach(Judged::DrainLosesNothing);
            }
            let failed = old.node == NodeId::NOBODY && matches!(row.phase, Phase::Failed(_));
            self.holds(Judged::DrainLosesNothing, !failed, || {
                format!("task {} was handed over, and has failed", task_number(id))
            });
            let lost = old.attempt != row.attempt || matches!(row.phase, Phase::Failed(_));
            if lost && !self.scene.restartable && self.s.memory.tasks[task_number(id)].began != 0 {
                self.reach(Judged::RunsOnce);
            }
            if let Some((Slot::Run(_, attempt) | Slot::Progress(_, attempt), _)) = &by {
                self.holds(Judged::OneLiveAttempt, *attempt == old.attempt, || {
                    format!("run {} writes while run {} has the task", attempt.0, old.attempt.0)
                });
            }
        }
        for (name, question) in row.live().into_iter().flat_map(|live| &live.questions) {
            let (task, name) = (task_number(id), key_number(name));
            if let (Some(answer), None) = (question.answer, self.s.memory.tasks[task].first[name]) {
                self.remember(|memory| memory.tasks[task].first[name] = Some(answer.0));
            }
        }
        if let Some((_, flight)) = by {
            flight.stored = true;
        }
    }

    /// A tool gets an answer.
    pub(super) fn judge_got(&mut self, task: u8, name: u8, answer: Option<u8>, before: Option<u8>) {
        let first = self.s.memory.tasks[usize::from(task)].first[usize::from(name)];
        self.holds(Judged::FirstAnswerWins, answer == first, || {
            format!("the first answer was {first:?}, the tool gets {answer:?}")
        });
        self.holds(Judged::KeyNeverReused, before.is_none() || before == answer, || {
            format!("asked again, the tool gets {answer:?} instead of {before:?}")
        });
    }

    /// A node sets out to take over what others lost.
    pub(super) fn judge_sweep(&mut self, at: u8) {
        let drains = self.s.memory.drains[usize::from(at)].is_some();
        self.holds(Judged::DrainLosesNothing, !drains, || format!("node {at} drains, and takes tasks over"));
    }

    /// A node that lost its lease has begun again.
    pub(super) fn judge_rejoin(&mut self, at: u8, id: NodeId) {
        self.reach(Judged::LeaseStaysLost);
        let is_another = self.s.nodes[usize::from(at)].id == id;
        self.holds(Judged::LeaseStaysLost, is_another, || {
            format!("node {at} lost its lease, and goes on under its id")
        });
    }

    /// The tool of an attempt is begun.
    pub(super) fn judge_begun(&mut self, task: u8, bit: u8) {
        let earlier = self.remember(|memory| {
            let began = &mut memory.tasks[usize::from(task)].began;
            std::mem::replace(began, *began | bit)
        });
        let once = self.scene.restartable || earlier & !bit == 0;
        self.holds(Judged::RunsOnce, once, || {
            format!("the tool of task {task} is begun again, and must not run twice")
        });
    }

    /// A node's runs were told something.
    pub(super) fn judge_runs(&mut self, at: u8, before: &Node) {
        let node = self.s.nodes[usize::from(at)].clone();
        for (id, run) in node.host.runs() {
            let earlier = before.host.run(*id).filter(|it| it.attempt() == run.attempt());
            if let (Some(was), Some(is)) = (earlier.and_then(|it| it.seen()), run.seen()) {
                self.holds(Judged::RevisionMonotonic, was.revision <= is.revision && was.updated <= is.updated, || {
                    format!(
                        "run {} was at revision {}, now it is at {}",
                        run.attempt().0,
                        was.revision.0,
                        is.revision.0
                    )
                });
                if self.s.row(*id).is_some_and(|row| row.revision > is.revision) {
                    self.reach(Judged::RevisionMonotonic);
                }
            }
            let Some(stop) = run.stop().filter(|_| earlier.and_then(|it| it.stop()).is_none()) else { continue };
            self.reach(Judged::StopIsTrue);
            let row = self.s.row(*id).cloned();
            let is_true = match stop {
                Stop::Cancelled => row.as_ref().is_none_or(|row| row.phase == Phase::Cancelled),
                Stop::Expired => row.as_ref().is_none_or(|row| self.s.now >= expires(row)),
                Stop::Lost => row.as_ref().is_none_or(|row| {
                    row.attempt > run.attempt() || matches!(row.phase, Phase::Completed(_) | Phase::Failed(_))
                }),
                // One that waits goes at once; one that runs when its time is over, if it may run again.
                Stop::Drain => {
                    let tool = |tool: &&Tool| (task_id(tool.task), tool.attempt) == (*id, run.attempt());
                    let began = self.s.tools.iter().find(tool).is_some_and(|tool| tool.began);
                    let told = self.s.memory.drains[usize::from(at)];
                    told.is_some_and(|over| !began || over <= self.s.now)
                }
                Stop::LeaseLost | Stop::Shutdown => true,
            };
            let attempt = run.attempt().0;
            self.holds(Judged::StopIsTrue, is_true, || {
                let row = row.map_or("gone".to_owned(), |row| say(&row));
                format!("run {attempt} is stopped ({stop:?}) while its task is {row}")
            });
        }
    }
}

/// When a task is over, said without the machine's help.
fn expires(task: &Task<Number>) -> tokkuri_core::time::Millis {
    tokkuri_core::time::Millis(task.origin.created.0 + task.ttl_ms)
}

fn say(task: &Task<Number>) -> String {
    format!("{} (revision {}, attempt {})", task.status().as_str(), task.revision.0, task.attempt.0)
}

/// The claim that a broken invariant of core breaks.
fn claim_of(broken: &str) -> Judged {
    match broken {
        "on another node it is another attempt" => Judged::OneLiveAttempt,
        "an end is final" => Judged::TerminalIsFinal,
        "the first answer wins" => Judged::FirstAnswerWins,
        "a key is never used for another question" => Judged::KeyNeverReused,
        "a result stays readable" | "a time to live is only raised" | "a task lives for a while" => Judged::TtlNotEarly,
        "a recorded answer fits its question" => Judged::RejectionIsInert,
        _ => Judged::RevisionMonotonic,
    }
}
