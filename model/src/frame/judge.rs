//! What happens is held against the claims: each commit, each reply, each reading.

use std::sync::Arc;

use tokkuri_core::id::{Key, NodeId, TaskId};
use tokkuri_core::procedure::{After, Answered, Created, Seen, Written};
use tokkuri_core::run::Stop;
use tokkuri_core::store::{Outcome, Request, Shelf};
use tokkuri_core::task::{Phase, Rejected, Status, Task, invariant};

use crate::frame::claim::Judged;
use crate::frame::payload::{Number, Who, key_number, task_id, task_number};
use crate::frame::scene::What;
use crate::frame::state::{Flight, Heard, Node, Reply, Slot, Tool};
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

    /// A procedure is done.
    pub(super) fn judge_reply(&mut self, slot: Slot, flight: &Flight, reply: &Reply, after: &[After<Number>]) {
        for After { id, seen, effects } in after {
            if !effects.is_empty() {
                self.reach(Judged::EffectsAfterCommit);
            }
            // What was just read or stored is what is there; only a sweep over several tasks may be overtaken.
            let is_stored = match (seen, self.s.row(*id)) {
                (Seen::Task(task), Some(row)) => row.revision > task.revision || row == task,
                (Seen::Task(task), None) => !task.is_visible(self.s.now),
                (Seen::Gone, row) => row.is_none_or(|row| self.s.now >= expires(row)),
            };
            self.holds(Judged::EffectsAfterCommit, is_stored, || {
                format!("effects of a state of task {} that is not stored", task_number(*id))
            });
        }
        match reply {
            Reply::Created(created) => self.judge_created(slot, flight, created),
            Reply::Read(answered) => self.judge_answered(slot, answered),
            Reply::Written(written) => self.judge_written(slot, flight, written, after),
            Reply::Taken(Ok(_)) => {
                for &(id, attempt) in &flight.orphans {
                    self.reach(Judged::OrphanEnds);
                    let left = self.s.shelf.row(self.s.now, id).filter(|row| row.live().is_some());
                    let left = left.filter(|row| row.attempt == attempt).cloned();
                    self.holds(Judged::OrphanEnds, left.is_none(), || {
                        format!("a sweep is over, and task {} is as it was", task_number(id))
                    });
                }
            }
            Reply::Taken(_) | Reply::Expired(_) => {}
        }
    }

    fn judge_created(&mut self, slot: Slot, flight: &Flight, created: &Created<Number>) {
        let Slot::Request(request) = slot else { return };
        let task = self.scene.requests[usize::from(request)].what.task();
        let heard = match created {
            Created::Task(_) => {
                self.reach(Judged::CreatedIsDurable);
                let there = self.s.row(task_id(task)).is_some();
                self.holds(Judged::CreatedIsDurable, there, || format!("task {task} is promised, and is not stored"));
                if self.scene.replies_get_lost { Heard::Pending } else { Heard::Yes }
            }
            // A second failure may have met the cleaning up: then the time to live has to end it.
            Created::Unavailable(unavailable) if unavailable.maybe_done && flight.failures > 1 => Heard::Stranded,
            Created::Unavailable(unavailable) if unavailable.maybe_done => Heard::Lost,
            Created::Unavailable(_) | Created::AtTheLimit { .. } | Created::IdTaken => Heard::Refused,
        };
        self.remember(|memory| memory.tasks[usize::from(task)].reply = heard);
    }

    /// Who asks, what for, and what is there.
    fn judge_client(&mut self, slot: Slot, saw: bool, absent: bool, lacks: bool) {
        let Slot::Request(request) = slot else { return };
        let request = self.scene.requests[usize::from(request)];
        let task = request.what.task();
        let row = self.s.row(task_id(task)).cloned();
        let there = row.as_ref().is_some_and(|row| self.s.now < expires(row));
        match request.who {
            Who::Bob => {
                if there {
                    self.reach(Judged::StrangerSeesNothing);
                }
                self.holds(Judged::StrangerSeesNothing, !saw && !lacks, || format!("a stranger learns of task {task}"));
            }
            Who::AnnUnscoped => {
                if there {
                    self.reach(Judged::ScopeNeeded);
                }
                self.holds(Judged::ScopeNeeded, !saw, || format!("task {task} is there for a token without its scope"));
            }
            Who::Ann => {
                self.holds(Judged::TtlNotEarly, !(there && absent), || format!("its owner does not find task {task}"));
            }
        }
        if row.is_some() && !there {
            self.reach(Judged::TtlNotEarly);
        }
        self.holds(Judged::TtlNotEarly, there || !(saw || lacks), || format!("task {task} is found after its time"));
    }

    fn judge_answered(&mut self, slot: Slot, answered: &Answered<Number>) {
        let (saw, absent) = (matches!(answered, Answered::Task(_)), matches!(answered, Answered::Absent));
        self.judge_client(slot, saw, absent, matches!(answered, Answered::LacksScope { .. }));
        if let (Answered::Task(task), Slot::Request(request)) = (answered, slot) {
            self.shown(self.scene.requests[usize::from(request)].door, task);
        }
    }

    /// A client is shown a task.
    fn shown(&mut self, node: u8, task: &Task<Number>) {
        let number = task_number(task.id);
        let memory = self.s.memory.tasks[number];
        let pending = task.live().is_some_and(|live| live.questions.values().any(|question| question.answer.is_none()));
        if pending {
            self.reach(Judged::InputRequiredIffPending);
        }
        self.holds(Judged::InputRequiredIffPending, pending == (task.status() == Status::InputRequired), || {
            format!("{} while a question is {}outstanding", task.status().as_str(), if pending { "" } else { "not " })
        });
        if memory.cancelled {
            self.reach(Judged::CancelIsFinal);
            self.holds(Judged::CancelIsFinal, task.status() == Status::Cancelled, || {
                format!("a cancel was acknowledged, and a reader is told {}", task.status().as_str())
            });
        }
        let revision = u8::try_from(task.revision.0).unwrap_or(u8::MAX);
        let last = memory.shown[usize::from(node)];
        self.holds(Judged::RevisionMonotonic, last <= revision, || {
            format!("node {node} shows revision {revision} after revision {last}")
        });
        if last < revision {
            self.remember(|memory| memory.tasks[number].shown[usize::from(node)] = revision);
        }
    }

    fn judge_written(&mut self, slot: Slot, flight: &Flight, written: &Written<Number>, after: &[After<Number>]) {
        let effects = after.iter().any(|after| !after.effects.is_empty());
        let (saw, lacks) = match written {
            Written::Done(_) | Written::Rejected(..) => (true, false),
            Written::LacksScope { .. } => (false, true),
            Written::Absent | Written::Unavailable(_) => (false, false),
        };
        self.judge_client(slot, saw, matches!(written, Written::Absent), lacks);
        match (slot, written) {
            (Slot::Request(request), Written::Done(task)) => {
                let what = self.scene.requests[usize::from(request)].what;
                self.judge_done(what, flight, task);
            }
            (Slot::Request(request), Written::Rejected(rejected, _)) => {
                let what = self.scene.requests[usize::from(request)].what;
                let misfit = matches!((what, rejected), (What::Answer { .. }, Rejected::Misfit { .. }));
                self.holds(Judged::FirstAnswerWins, misfit, || format!("{what:?} is not acknowledged: {rejected}"));
            }
            (Slot::Run(..), Written::Done(task)) if flight.stored && task.live().is_none() => {
                self.wins(task_number(task.id));
            }
            (Slot::Run(..) | Slot::Progress(..), Written::Rejected(rejected, task)) => match rejected {
                Rejected::StaleAttempt => self.reach(Judged::OneLiveAttempt),
                Rejected::Ended => {
                    self.reach(Judged::TerminalIsFinal);
                    self.reach(Judged::OneOutcome);
                    self.holds(Judged::TerminalIsFinal, task.live().is_none(), || "a live task says it ended".into());
                }
                Rejected::Expired
                | Rejected::Undeclared { .. }
                | Rejected::TooManyQuestions { .. }
                | Rejected::Misfit { .. } => {}
            },
            (Slot::Abandon(task), Written::Unavailable(_)) => {
                self.remember(|memory| memory.tasks[usize::from(task)].reply = Heard::Stranded);
            }
            _ => {}
        }
        // An end that its run was told is stored, is: it may be another's only if the run is told so.
        if let (Slot::Run(_, attempt), Written::Done(task)) = (slot, written)
            && self
                .s
                .tools
                .iter()
                .any(|tool| (task_id(tool.task), tool.attempt, tool.ending) == (task.id, attempt, true))
        {
            let own = matches!(task.phase, Phase::Completed(_) | Phase::Failed(_)) && task.attempt == attempt;
            self.holds(Judged::OneOutcome, own, || {
                format!("a run is told that it ended its task, which is {}", say(task))
            });
        }
        if matches!(written, Written::Rejected(..)) {
            self.reach(Judged::RejectionIsInert);
            self.holds(Judged::RejectionIsInert, !flight.stored && !effects, || {
                format!("a command was refused, and changed the task: {written:?}")
            });
        }
        self.judge_asked_again(slot, written);
    }

    /// A client's write was acknowledged.
    fn judge_done(&mut self, what: What, flight: &Flight, task: &Task<Number>) {
        let number = task_number(task.id);
        match what {
            What::Cancel { .. } => {
                self.holds(Judged::CancelIsFinal, task.status().is_terminal(), || {
                    format!("a cancel is acknowledged, and the task is {}", task.status().as_str())
                });
                if task.phase == Phase::Cancelled {
                    self.remember(|memory| memory.tasks[number].cancelled = true);
                }
                if flight.stored {
                    self.wins(number);
                } else if task.live().is_none() {
                    self.reach(Judged::OneOutcome);
                    self.reach(Judged::TerminalIsFinal);
                }
            }
            What::Answer { values, .. } => {
                if !flight.stored {
                    self.reach(Judged::FirstAnswerWins);
                }
                let open = task.live().and_then(|live| {
                    let answered = |name: &&Key| values[key_number(name)].is_some();
                    live.outstanding().map(|(name, _)| name).find(answered).cloned()
                });
                self.holds(Judged::FirstAnswerWins, open.is_none(), || {
                    format!("an answer to {open:?} is acknowledged, and the question is open")
                });
                let misfit = flight.stored && values.contains(&Some(Number::JUNK.0)) && {
                    let first = self.s.memory.tasks[number].first;
                    first.contains(&Some(Number::JUNK.0))
                };
                self.holds(Judged::RejectionIsInert, !misfit, || "an answer that does not fit was stored".into());
            }
            What::AnswerUnknown { .. } => {
                self.reach(Judged::FirstAnswerWins);
                self.holds(Judged::FirstAnswerWins, !flight.stored, || "an answer to no question is stored".into());
            }
            What::Create { .. } | What::Get { .. } => {}
        }
    }

    /// Somebody is told that it was they who ended the task.
    fn wins(&mut self, task: usize) {
        let winners = self.remember(|memory| {
            memory.tasks[task].winners = memory.tasks[task].winners.saturating_add(1);
            memory.tasks[task].winners
        });
        self.holds(Judged::OneOutcome, winners <= 1, || format!("{winners} are told that they ended task {task}"));
    }

    fn judge_asked_again(&mut self, slot: Slot, written: &Written<Number>) {
        let (Slot::Run(task, attempt), Written::Done(row)) = (slot, written) else { return };
        let Some(tool) = self.s.tools.iter().find(|tool| (tool.task, tool.attempt) == (task, attempt)) else { return };
        let asks = |at: u8| match self.scene.tool.get(usize::from(at)) {
            Some(crate::frame::scene::Do::Ask { key, request }) => Some((*key, *request)),
            _ => None,
        };
        let Some((name, _)) = asks(tool.at).filter(|_| !tool.ending) else { return };
        let Some(first) = (0..=tool.at).filter_map(asks).find(|(key, _)| *key == name) else { return };
        let known = row.live().and_then(|live| live.questions.get(&crate::frame::payload::key(name)));
        if (0..tool.at).filter_map(asks).any(|(key, _)| key == name) {
            self.reach(Judged::KeyNeverReused);
        }
        if let Some(question) = known {
            self.holds(Judged::KeyNeverReused, question.request == Number(first.1), || {
                format!("the first question under this key was {}, now it is {}", first.1, question.request.0)
            });
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
