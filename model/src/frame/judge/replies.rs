//! What a procedure ends with is held against the claims.

use tokkuri_core::id::{Key, NodeId};
use tokkuri_core::procedure::{After, Answered, Created, Seen, Written};
use tokkuri_core::task::{Phase, Rejected, Status, Task};

use crate::frame::claim::Judged;
use crate::frame::judge::{expires, say};
use crate::frame::payload::{Number, Who, key_number, task_id, task_number};
use crate::frame::scene::What;
use crate::frame::state::{Flight, Heard, Reply, Slot};
use crate::frame::turn::Turn;

impl Turn<'_> {
    /// A procedure is done.
    pub(in crate::frame) fn judge_reply(
        &mut self,
        slot: Slot,
        flight: &Flight,
        reply: &Reply,
        after: &[After<Number>],
    ) {
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
            Written::Done(_) | Written::Rejected { .. } => (true, false),
            Written::LacksScope { .. } => (false, true),
            Written::Absent | Written::Unavailable(_) => (false, false),
        };
        self.judge_client(slot, saw, matches!(written, Written::Absent), lacks);
        match (slot, written) {
            (Slot::Request(request), Written::Done(task)) => {
                let what = self.scene.requests[usize::from(request)].what;
                self.judge_done(what, flight, task);
            }
            (Slot::Request(request), Written::Rejected { why, .. }) => {
                let what = self.scene.requests[usize::from(request)].what;
                let misfit = matches!((what, why), (What::Answer { .. }, Rejected::Misfit { .. }));
                self.holds(Judged::FirstAnswerWins, misfit, || format!("{what:?} is not acknowledged: {why}"));
            }
            (Slot::Run(..), Written::Done(task)) if flight.stored && task.live().is_none() => {
                self.wins(task_number(task.id));
            }
            (Slot::Run(..) | Slot::Progress(..), Written::Rejected { why, task, .. }) => match why {
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
            let ended = matches!(task.phase, Phase::Completed(_) | Phase::Failed(_)) && task.attempt == attempt;
            let handed_over = task.node == NodeId::NOBODY && task.attempt == attempt.next();
            let own = ended || handed_over;
            self.holds(Judged::OneOutcome, own, || {
                format!("a run is told that it ended its task, which is {}", say(task))
            });
        }
        if let Written::Rejected { maybe_done, .. } = written {
            self.reach(Judged::RejectionIsInert);
            self.holds(Judged::RejectionIsInert, (!flight.stored || *maybe_done) && !effects, || {
                format!("a command was refused, and changed the task: {written:?}")
            });
            self.holds(Judged::RejectionIsInert, !maybe_done || flight.failures > 0, || {
                format!("a refused command is said to have been carried out, perhaps, though every answer was heard: {written:?}")
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
}
