//! Core's procedures, driven against the store by many at once: what every answer must look like is judged by
//! [`Trial::ask`], what the procedures promise is judged here.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokkuri_core::id::{Attempt, TaskId};
use tokkuri_core::procedure::{
    After, Answered, Create, Created, Expire, Input, Procedure, Read, Step, TakeOver, Write, Written,
};
use tokkuri_core::store::{Outcome, Request};
use tokkuri_core::task::{Command, Draft, Effect, Fault, Status};
use tokkuri_core::wire::Json;

use super::Verdict;
use super::samples::{Dice, LONG_MS, NODE, OTHER_NODE, answer, caller, draft, holds, id, json, owner, question, short};
use super::trial::Trial;

const WORKERS: u64 = 8;
const STEPS: u64 = 120;
const LIMIT: u32 = 4;
const OWNERS: [&str; 2] = ["a", "b"];

/// What the workers know of each other's tasks.
#[derive(Debug, Default)]
struct Known {
    ids: Vec<TaskId>,
    /// Whose cancel or end was acknowledged as stored, and with which status.
    ended: BTreeMap<TaskId, Status>,
    /// How often a run of each attempt was to be started.
    started: BTreeMap<(TaskId, Attempt), u32>,
}

pub(super) async fn procedures_that_race_keep_every_invariant(trial: Trial) -> Verdict {
    let known = Arc::new(Mutex::new(Known::default()));
    trial.lease(NODE, LONG_MS).await?;
    let mut workers = tokio::task::JoinSet::new();
    for seed in 0..WORKERS {
        let worker = Worker { trial: trial.clone(), known: Arc::clone(&known), dice: Dice(seed) };
        workers.spawn(async move { worker.work(seed).await.map_err(|why| format!("seed {seed}: {why}")) });
    }
    while let Some(worked) = workers.join_next().await {
        worked.map_err(|panicked| panicked.to_string())??;
    }
    let known = lock(&known);
    let twice = known.started.iter().find(|(_, times)| **times > 1);
    holds(twice.is_none(), || format!("an attempt was started more than once: {twice:?}"))
}

#[derive(Debug)]
struct Worker {
    trial: Trial,
    known: Arc<Mutex<Known>>,
    dice: Dice,
}

impl Worker {
    async fn work(mut self, seed: u64) -> Verdict {
        for step in 0..STEPS {
            if let Some(clock) = self.trial.clock().filter(|_| self.dice.one_in(4)) {
                clock.advance(self.dice.below(10));
            }
            match self.dice.below(12) {
                0..=2 => self.create(seed * STEPS + step).await?,
                3 => self.read().await?,
                4 => {
                    let owner = owner(OWNERS[self.dice.below(2) as usize]);
                    let (_, live) = self.trial.count(&owner).await?;
                    holds(live <= LIMIT, || format!("{live} live tasks of one owner, the limit is {LIMIT}"))?;
                }
                5 => {
                    self.drive(Expire::new(8)).await?.map_err(|unavailable| unavailable.to_string())?;
                }
                6 if self.dice.one_in(3) => {
                    self.drive(TakeOver::new(Some(NODE), "lost".into(), 2)).await?.map_err(|it| it.to_string())?;
                }
                _ => self.write().await?,
            }
        }
        Ok(())
    }

    async fn create(&mut self, n: u64) -> Verdict {
        let draft = Draft {
            id: id(n),
            owner: owner(OWNERS[self.dice.below(2) as usize]),
            node: if self.dice.one_in(3) { OTHER_NODE } else { NODE },
            restartable: self.dice.one_in(2),
            ttl_ms: if self.dice.one_in(2) { LONG_MS } else { 1 + self.dice.below(60) },
            keep_ms: self.dice.below(60),
            ..draft(0)
        };
        match self.drive(Create::new(draft, Some(LIMIT))).await? {
            Created::Task(task) => {
                lock(&self.known).ids.push(task.id);
                // That it is there is judged against its expiry by the trial.
                self.trial.load(task.id).await?;
                Ok(())
            }
            Created::AtTheLimit { limit } => holds(limit == LIMIT, || format!("refused by a limit of {limit}")),
            Created::IdTaken => Err("an id was said to be taken that nobody had".into()),
            Created::Unavailable(unavailable) => Err(unavailable.to_string()),
        }
    }

    async fn read(&mut self) -> Verdict {
        let Some(id) = self.some_id() else { return Ok(()) };
        let ended = lock(&self.known).ended.get(&id).copied();
        for who in OWNERS {
            match self.drive(Read::new(id, caller(&owner(who)))).await? {
                Answered::Task(task) => {
                    holds(task.origin.owner == owner(who), || "a stranger was shown a task".into())?;
                    holds(ended.is_none_or(|ended| ended == task.status()), || {
                        format!("{ended:?} was acknowledged, later read as {}", short(&task))
                    })?;
                }
                Answered::Absent => {}
                Answered::LacksScope { .. } => return Err("a caller without limits lacks a scope".into()),
                Answered::Unavailable(unavailable) => return Err(unavailable.to_string()),
            }
        }
        Ok(())
    }

    async fn write(&mut self) -> Verdict {
        let Some(id) = self.some_id() else { return Ok(()) };
        let who = caller(&owner(OWNERS[self.dice.below(2) as usize]));
        let by = Attempt(1 + u32::try_from(self.dice.below(2)).unwrap_or(0));
        let key = ["k", "l"][self.dice.below(2) as usize];
        let message = format!("{}", self.dice.roll()).into();
        let write = match self.dice.below(8) {
            0 => Write::cancel(id, who),
            1 | 2 => Write::answers(id, who, BTreeMap::from([(key.into(), answer())])),
            3 => Write::report(id, Command::Ask { by, key: key.into(), request: question() }),
            4 | 5 => Write::report(id, Command::Progress { by, message }),
            6 => Write::end(id, Command::Complete { by, result: json("[1]"), message: None }),
            _ => Write::end(id, Command::Fail { by, fault: Fault::internal("no") }),
        };
        match self.drive(write).await? {
            Written::Done(task) if task.status().is_terminal() => {
                let was = *lock(&self.known).ended.entry(id).or_insert(task.status());
                holds(was == task.status(), || format!("{was:?} was acknowledged, then {:?}", task.status()))
            }
            Written::Done(_) | Written::Absent | Written::Rejected { .. } => Ok(()),
            Written::LacksScope { .. } => Err("a caller without limits lacks a scope".into()),
            Written::Unavailable(unavailable) => Err(unavailable.to_string()),
        }
    }

    fn some_id(&mut self) -> Option<TaskId> {
        let known = lock(&self.known);
        // Mostly the newest ones, so that there is a race for them.
        let from = known.ids.len().saturating_sub(if self.dice.one_in(4) { 100 } else { 4 });
        self.dice.pick(&known.ids[from..]).copied()
    }

    /// A host without runs: it only counts what it is told to start.
    async fn drive<P: Procedure<Payload = Json>>(&self, mut procedure: P) -> Result<P::Reply, String> {
        let mut input = Input::Begin;
        loop {
            input = match procedure.step(input) {
                Step::Store(request) => {
                    let is_remove = matches!(request, Request::Remove { .. });
                    let answer = self.trial.ask(request).await?;
                    if let (true, Outcome::Removed(ids)) = (is_remove, &answer.outcome) {
                        lock(&self.known).ids.retain(|id| !ids.contains(id));
                    }
                    Input::Store(answer)
                }
                Step::Pause { ms } => {
                    tokio::time::sleep(Duration::from_millis(ms)).await;
                    Input::Paused
                }
                Step::Host(_) => Input::Host,
                Step::Done { reply, after } => {
                    self.count_starts(&after);
                    return Ok(reply);
                }
            };
        }
    }

    fn count_starts(&self, after: &[After<Json>]) {
        let mut known = lock(&self.known);
        for After { id, effects, .. } in after {
            for effect in effects {
                if let Effect::Start { attempt, .. } = effect {
                    *known.started.entry((*id, *attempt)).or_default() += 1;
                }
            }
        }
    }
}

fn lock(known: &Mutex<Known>) -> std::sync::MutexGuard<'_, Known> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}
