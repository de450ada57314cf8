//! What tools do, and what the engine does around them: the shell's part of a run.

use tokkuri_core::id::Attempt;
use tokkuri_core::procedure::{Write, Written};
use tokkuri_core::run::{ProgressDue, Run};
use tokkuri_core::task::{Command, Fault, Task};

use crate::frame::action::Store;
use crate::frame::claim::Judged;
use crate::frame::payload::{Number, key, task_id, task_number};
use crate::frame::scene::Do;
use crate::frame::state::{Mail, Reply, Running, Slot, Then, Tool};
use crate::frame::turn::Turn;

/// What tools return.
pub(super) const RESULT: Number = Number(9);
/// What tools say when they fail.
pub(super) const FAULT: &str = "broken";

impl Turn<'_> {
    pub(super) fn spawn(&mut self, at: u8, task: &Task<Number>) {
        let (number, attempt, incarnation) = (task_number(task.id) as u8, task.attempt, task.node);
        let bit = 1 << (attempt.0 - 1);
        if self.s.memory.tasks[usize::from(number)].spawned & bit != 0 {
            self.breaks(Judged::OneLiveAttempt, || format!("run {} of task {number} is started twice", attempt.0));
        }
        self.remember(|memory| memory.tasks[usize::from(number)].spawned |= bit);
        // There is a place for it at once: that is another world's.
        let began = self.run(at, number, attempt, Run::begin).unwrap_or(false);
        if began {
            self.judge_begun(number, bit);
        }
        self.s.tools.push(Tool {
            task: number,
            attempt,
            node: at,
            incarnation,
            at: 0,
            got: [None; 2],
            began,
            ending: false,
        });
    }

    /// The tool has noticed that it has to stop. What its node has to store of that, it stores.
    pub(super) fn stop(&mut self, task: u8, attempt: Attempt) {
        let Some(at) = self.tool_at(task, attempt) else { return };
        let tool = self.s.tools[at];
        let stop = self.run(tool.node, task, attempt, |run| run.stop()).flatten();
        let command = stop.and_then(|stop| stop.end(attempt, tool.began, self.scene.restartable));
        let Some(command) = command else { return self.leave(task, attempt) };
        self.forget(task, attempt);
        self.s.tools[at].ending = true;
        let write = Running::Write(Box::new(Write::end(task_id(task), command)));
        self.begin(Slot::Run(task, attempt), tool.node, write, Store::Well);
    }

    /// The tool does the next thing in its script.
    pub(super) fn act(&mut self, task: u8, attempt: Attempt, store: Store) {
        let Some(at) = self.tool_at(task, attempt) else { return };
        let tool = self.s.tools[at];
        let (id, by) = (task_id(task), attempt);
        let report = |command| Running::Write(Box::new(Write::report(id, command)));
        match self.scene.tool[usize::from(tool.at)] {
            Do::Ask { key: name, request } => {
                let command = Command::Ask { by, key: key(name), request: Number(request) };
                let question = Running::Write(Box::new(Write::question(id, command)));
                self.begin(Slot::Run(task, attempt), tool.node, question, store);
            }
            Do::Note(slot) => {
                let command = Command::Note { by, slot: Number(slot) };
                self.begin(Slot::Run(task, attempt), tool.node, report(command), store);
            }
            Do::Await { key: name } => {
                let run = self.s.nodes[usize::from(tool.node)].host.run(id);
                let answer = run.and_then(|run| run.answer(&key(name))).map(|answer| answer.0);
                self.judge_got(task, name, answer, tool.got[usize::from(name)]);
                self.s.tools[at].got[usize::from(name)] = answer;
                self.s.tools[at].at += 1;
            }
            Do::Progress(progress) => {
                self.s.tools[at].at += 1;
                self.run(tool.node, task, attempt, |run| run.progress(progress.to_string().into()));
            }
            end @ (Do::Complete | Do::Fail) => {
                self.forget(task, attempt);
                let message = self.run(tool.node, task, attempt, Run::finish).flatten();
                let command = match end {
                    Do::Fail => Command::Fail { by, fault: Fault::internal(FAULT) },
                    Do::Complete | Do::Ask { .. } | Do::Note(_) | Do::Await { .. } | Do::Progress(_) => {
                        Command::Complete { by, result: RESULT, message }
                    }
                };
                self.s.tools[at].ending = true;
                self.begin(
                    Slot::Run(task, attempt),
                    tool.node,
                    Running::Write(Box::new(Write::end(id, command))),
                    store,
                );
            }
        }
    }

    /// The run's progress is due.
    pub(super) fn write_progress(&mut self, task: u8, attempt: Attempt) {
        let Some(at) = self.tool_at(task, attempt) else { return };
        let (node, now) = (self.s.tools[at].node, self.s.now);
        if let Some(ProgressDue::Write(message)) = self.run(node, task, attempt, |run| run.progress_due(now)) {
            let write = Write::report(task_id(task), Command::Progress { by: attempt, message });
            self.begin(Slot::Progress(task, attempt), node, Running::Write(Box::new(write)), Store::Well);
        }
    }

    /// What waits for a procedure.
    pub(super) fn then(&self, slot: Slot, reply: &Reply) -> Then {
        match slot {
            Slot::Run(task, attempt) => match self.tool_at(task, attempt) {
                Some(at) if self.s.tools[at].ending => Then::End(task, attempt),
                Some(_) => {
                    // A tool that was refused goes on to wait: the reading that came with the refusal stops it.
                    let stored =
                        matches!(reply, Reply::Written(written) if !matches!(written, Written::Unavailable(_)));
                    Then::GoOn { task, attempt, stored }
                }
                None => Then::Nothing,
            },
            Slot::Progress(task, attempt) => Then::Progress(task, attempt),
            Slot::Request(_) | Slot::Abandon(_) | Slot::Expire(_) | Slot::Sweep(..) => Then::Nothing,
        }
    }

    /// The effects are carried out: who waited for that goes on.
    pub(super) fn after_all(&mut self, then: Then) {
        match then {
            Then::Nothing => {}
            Then::GoOn { task, attempt, stored } => {
                if let (Some(at), true) = (self.tool_at(task, attempt), stored) {
                    self.s.tools[at].at += 1;
                }
            }
            Then::Progress(task, attempt) => {
                if let Some(at) = self.tool_at(task, attempt) {
                    self.run(self.s.tools[at].node, task, attempt, Run::progress_written);
                }
            }
            Then::End(task, attempt) => self.leave(task, attempt),
        }
    }

    /// The tool is over: what it was waiting for is dropped, and its place is given back.
    pub(super) fn leave(&mut self, task: u8, attempt: Attempt) {
        self.forget(task, attempt);
        let Some(at) = self.tool_at(task, attempt) else { return };
        let tool = self.s.tools.remove(at);
        self.node(tool.node, |node| node.host.release(task_id(task), attempt));
    }

    /// Drops what a run has under way.
    fn forget(&mut self, task: u8, attempt: Attempt) {
        self.take(Slot::Run(task, attempt));
        self.take(Slot::Progress(task, attempt));
        let run = Some((task, attempt));
        self.s.mail.retain(|mail| !matches!(&**mail, Mail::After { then, .. } if then.run() == run));
    }

    fn tool_at(&self, task: u8, attempt: Attempt) -> Option<usize> {
        self.s.tools.iter().position(|tool| (tool.task, tool.attempt) == (task, attempt))
    }

    fn run<R>(&mut self, at: u8, task: u8, attempt: Attempt, f: impl FnOnce(&mut Run<Number>) -> R) -> Option<R> {
        self.node(at, |node| node.host.run_of(task_id(task), attempt).map(f))
    }
}
