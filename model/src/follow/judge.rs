//! What must always hold of followers: each reading, each snapshot, each end, and what one look at the store would bring.

use tokkuri_core::follow::{FollowerId, Owed, Table};
use tokkuri_core::id::{Revision, TaskId};
use tokkuri_core::procedure::{Answered, Seen};
use tokkuri_core::store::{Answer, Outcome};
use tokkuri_core::task::Task;

use crate::follow::nth;
use crate::follow::state::{Mail, Reading, Stage, Subscriber};
use crate::follow::turn::Turn;
use crate::frame::payload::{Number, Who, task_id, task_number};
use crate::small::claims;

claims! {
    FollowerGetsTerminal "follower_gets_terminal"
        "a follower is shown how its task ended, unless the task is gone before this node has read of its end, and hears nothing after it"
        if "a task of which nothing more can be heard has ended";
    RevisionMonotonic "revision_monotonic"
        "what a follower is shown of a task never goes back, and is never shown twice"
        if "something is shown of a task of which something was shown before";
    StrangerSeesNothing "stranger_sees_nothing"
        "to anyone but the owner a task cannot be followed: it is as one that never existed"
        if "a stranger follows a task that is there";
    ScopeNeeded "scope_needed"
        "following needs the scopes that the tool needed when the task started, also at delivery"
        if "an owner without the scope follows a task that is there";
    ShownWasStored "shown_was_stored"
        "what a follower is shown is what the store had at that revision: what a read would have said"
        if "something is shown";
    LatestWins "latest_wins"
        "what a follower is shown is the newest that its node has read"
        if "something newer is shown than the change after what was shown last";
    FirstIsCurrent "first_is_current"
        "the first state that a follower is shown is not older than the one that the store had when it joined"
        if "the task had changed before it was followed";
    NoLostWakeup "no_lost_wakeup"
        "a follower that waits is owed nothing: whatever it is owed wakes it"
        if "a follower waits";
    CatchesUp "catches_up"
        "one look at the store later, a follower has been shown the newest state of its tasks, hint or not"
        if "the store is ahead of what a follower was shown";
    GoneIsTold "gone_is_told"
        "one look at the store later, nobody follows what is gone; and once that is known, nobody is shown it alive"
        if "a task that is followed is gone";
    TurnsGoRound "turns_go_round"
        "a follower of several tasks hears of each that changed before it hears of another one twice"
        if "two tasks of one follower have news";
    NothingLeftBehind "nothing_left_behind"
        "what nobody follows is not kept"
        if "all have gone";
}

impl Turn<'_> {
    /// A listener's first reading of a task has arrived.
    pub(super) fn judge_answered(&mut self, at: u8, id: TaskId, answer: &Answer<Number>, reply: &Answered<Number>) {
        let Outcome::Loaded(Some(row)) = &answer.outcome else { return };
        let verdict = &mut self.s.verdict;
        let says = || format!("listener {at} is told of task {}: {reply:?}", task_number(id));
        match self.scene.listeners[usize::from(at)].who {
            Who::Bob => verdict.holds(Judged::StrangerSeesNothing, *reply == Answered::Absent, says),
            Who::AnnUnscoped => {
                let refused = matches!(reply, Answered::LacksScope { needed } if *needed == row.origin.scopes);
                verdict.holds(Judged::ScopeNeeded, refused, says);
            }
            Who::Ann => {}
        }
    }

    /// What would be shown to a listener of each of its tasks.
    pub(super) fn owed(&self, at: u8) -> Vec<Owed<Number>> {
        let mut table = Table::clone(&self.s.table);
        let tasks = self.scene.listeners[usize::from(at)].tasks.iter();
        tasks.map(|task| table.next(task_id(*task), FollowerId(at.into()))).collect()
    }

    /// A listener took what it is owed.
    pub(super) fn judge_taken(&mut self, at: u8, before: &Subscriber, owed: &[Owed<Number>], taken: &Owed<Number>) {
        let scene = self.scene;
        let listener = &scene.listeners[usize::from(at)];
        if let Owed::Snapshot(row) = taken {
            let read = self.s.memory.read[task_number(row.id)].clone();
            self.judge_shown(at, before.told[nth(listener, row.id)].as_deref(), row, &read);
            let turn = nth(listener, row.id);
            let others = listener.tasks.len() - 1;
            for (other, owed) in owed.iter().enumerate().filter(|(other, _)| *other != turn) {
                if matches!(owed, Owed::Snapshot(_)) {
                    let passed = before.passed[other] + 1;
                    self.listener(at, |it| it.passed[other] = passed);
                    self.s.verdict.holds(Judged::TurnsGoRound, usize::from(passed) <= others, || {
                        format!("listener {at} was passed over {passed} times for task {}", listener.tasks[other])
                    });
                }
            }
            self.listener(at, |it| it.passed[turn] = 0);
        }
        let over: Vec<TaskId> =
            before.turns.open().iter().filter(|id| !self.s.listeners[usize::from(at)].follows(**id)).copied().collect();
        for id in over {
            self.judge_over(at, before, id);
        }
    }

    /// A listener that was shown `told` last is shown `row`, and its node has read `read`.
    fn judge_shown(&mut self, at: u8, told: Option<&Task<Number>>, row: &Task<Number>, read: &Reading) {
        let listener = &self.scene.listeners[usize::from(at)];
        let task = task_number(row.id);
        let joined_at = self.s.listeners[usize::from(at)].joined_at[nth(listener, row.id)];
        let (memory, verdict) = (&self.s.memory, &mut self.s.verdict);
        let shown = || format!("listener {at} is shown task {task} {} at {:?}", row.status().as_str(), row.revision);
        match listener.who {
            Who::Ann => {}
            Who::Bob => verdict.holds(Judged::StrangerSeesNothing, false, || shown() + ", which is not bob's"),
            Who::AnnUnscoped => verdict.holds(Judged::ScopeNeeded, false, || shown() + ", without the scope"),
        }
        let stored = memory.history[task].iter().any(|it| **it == *row);
        verdict.holds(Judged::ShownWasStored, stored, || shown() + ", which the store never had");
        let newest = read.newest.as_ref().is_some_and(|newest| newest.revision == row.revision);
        if told.is_some_and(|told| row.revision > told.revision.next()) || !newest {
            verdict.holds(Judged::LatestWins, newest, || format!("{}, and its node has read {read:?}", shown()));
        }
        if read.gone {
            let ended = row.live().is_none();
            verdict.holds(Judged::GoneIsTold, ended, || shown() + ", and its node knows that it is gone");
        }
        if let Some(told) = told {
            let forwards = told.revision < row.revision && told.updated <= row.updated;
            verdict.holds(Judged::RevisionMonotonic, forwards, || format!("{} after {:?}", shown(), told.revision));
            if told.live().is_none() {
                verdict.holds(Judged::FollowerGetsTerminal, false, || shown() + " after its end");
            }
        } else if joined_at.is_some_and(|at| at > Revision::FIRST) && !listener.eager {
            let current = Some(row.revision) >= joined_at;
            verdict.holds(Judged::FirstIsCurrent, current, || format!("{}, and joined at {joined_at:?}", shown()));
        }
    }

    /// Nothing more will be heard of a task.
    fn judge_over(&mut self, at: u8, before: &Subscriber, id: TaskId) {
        let listener = &self.scene.listeners[usize::from(at)];
        if listener.who != Who::Ann {
            return;
        }
        let (task, memory) = (task_number(id), &self.s.memory);
        let shown = before.told[nth(listener, id)].as_ref().is_some_and(|told| told.live().is_none());
        let row = self.s.shelf.row(self.s.now, id);
        let read = memory.read[task].newest.as_ref().is_some_and(|newest| newest.live().is_none());
        if shown || row.is_some_and(|row| row.live().is_none()) {
            self.s.verdict.reach(Judged::FollowerGetsTerminal);
        }
        if !shown && (row.is_some() || read) {
            let is = row.map_or("gone", |row| row.status().as_str()).to_owned();
            self.s.verdict.holds(Judged::FollowerGetsTerminal, false, || {
                format!("listener {at} hears no more of task {task}, which is {is}, and was not shown its end")
            });
        }
    }

    /// What must hold of every state.
    pub(super) fn judge(&mut self) {
        if self.s.verdict.is_broken() {
            return;
        }
        for at in 0..self.s.listeners.len() as u8 {
            let it = self.s.listeners[usize::from(at)].clone();
            if it.sleeps {
                let owed = self.owed(at);
                let open = (0..).zip(&self.scene.listeners[usize::from(at)].tasks);
                let mut open = open.filter(|(_, task)| it.follows(task_id(**task)));
                let quiet = open.all(|(nth, _): (usize, _)| owed[nth] == Owed::Nothing);
                self.s
                    .verdict
                    .holds(Judged::NoLostWakeup, quiet, || format!("listener {at} waits, and is owed {owed:?}"));
            }
        }
        if self.s.listeners.iter().all(|it| it.turns.open().is_empty())
            && self.s.listeners.iter().any(|it| it.stage == Stage::Over)
        {
            let empty = self.s.table.is_empty();
            self.s.verdict.holds(Judged::NothingLeftBehind, empty, || format!("nobody follows: {:?}", *self.s.table));
        }
        if self.s.listeners.iter().any(|it| it.stage == Stage::Listens) {
            self.judge_look();
        }
    }

    /// What this node has read arrives, it looks at the store once, and everybody takes what they are owed.
    fn judge_look(&mut self) {
        let (mut table, mut read) = (Table::clone(&self.s.table), self.s.memory.read.clone());
        let mut observe = |table: &mut Table<Number>, id: TaskId, seen: &Seen<Number>| {
            table.observe(id, seen);
            read[task_number(id)].learn(seen);
        };
        for mail in &self.s.mail {
            if let Mail::Reading { id, seen } = &**mail {
                observe(&mut table, *id, seen);
            }
        }
        for id in self.to_read(&table) {
            let seen = self.s.shelf.row(self.s.now, id).cloned().map_or(Seen::Gone, Seen::Task);
            observe(&mut table, id, &seen);
        }
        for at in 0..self.s.listeners.len() as u8 {
            if self.s.listeners[usize::from(at)].stage == Stage::Listens {
                self.judge_later(at, &mut table, &read);
            }
        }
    }

    /// What a listener has heard once it has taken all that it is owed.
    fn judge_later(&mut self, at: u8, table: &mut Table<Number>, read: &[Reading]) {
        let listener = &self.scene.listeners[usize::from(at)];
        let it = self.s.listeners[usize::from(at)].clone();
        let (mut turns, mut told) = (it.turns.clone(), it.told.clone());
        // Of each task once, then nothing: a table that goes on for ever has to be noticed, not waited for.
        for _ in 0..=listener.tasks.len() {
            let Owed::Snapshot(row) = turns.next(|id| table.next(id, FollowerId(at.into()))) else { break };
            let told = &mut told[nth(listener, row.id)];
            self.judge_shown(at, told.as_deref(), &row, &read[task_number(row.id)]);
            *told = Some(row);
        }
        let verdict = &mut self.s.verdict;
        for id in it.turns.open() {
            let (task, nth) = (task_number(*id), nth(listener, *id));
            let [before, after] = [&it.told, &told].map(|told| told[nth].as_ref().map(|told| told.revision));
            let follows = turns.open().contains(id);
            match self.s.shelf.row(self.s.now, *id) {
                Some(row) => {
                    let caught_up = after >= Some(row.revision) && follows == row.live().is_some();
                    if before != Some(row.revision) || !caught_up {
                        verdict.holds(Judged::CatchesUp, caught_up, || {
                            format!("task {task} is at {:?}, and listener {at} was shown {after:?}", row.revision)
                        });
                    }
                }
                None => verdict.holds(Judged::GoneIsTold, !follows, || {
                    format!("task {task} is gone, and listener {at} waits for it")
                }),
            }
        }
    }
}
