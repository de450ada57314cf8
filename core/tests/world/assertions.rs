//! What must hold in every world, by the names of the claims in core's README.

use std::sync::Arc;

use tokkuri_core::procedure::{After, Answered, Created, Seen, Written};
use tokkuri_core::run::Stop;
use tokkuri_core::task::{Phase, Status, Task, invariant};

use super::payload::Number;
use super::{Flight, Kind, LIMIT, Reply, World};

impl World {
    /// Something was stored: may it follow what was stored before, and may its writer write it?
    pub(super) fn record(&mut self, flight: Option<&Flight>, row: Arc<Task<Number>>) {
        assert_eq!(invariant::check(&row), Ok(()), "{row:?}");
        let states = self.history.entry(row.id).or_default();
        if let Some(before) = states.last() {
            assert_eq!(invariant::check_step(before, &row), Ok(()), "terminal_is_final, first_answer_wins: {row:?}");
            if let Some(Flight { kind: Kind::Run { tool, .. }, .. }) = flight {
                assert_eq!(tool.attempt, before.attempt, "one_live_attempt: a stale attempt wrote {row:?}");
            }
            if let Some(Flight { kind: Kind::Client { own: false, .. }, .. }) = flight {
                panic!("stranger_sees_nothing: a stranger wrote {row:?}");
            }
        }
        let restarted = states.last().is_some_and(|before| before.attempt < row.attempt);
        let status = row.status();
        states.push(row);
        let ends = states.iter().filter(|state| state.status().is_terminal()).count();
        assert!(ends <= 1, "one_outcome: {states:?}");
        if restarted {
            self.reach("restarted");
        }
        self.reach(status.as_str());
    }

    /// A procedure is done: are its effects of something stored, and is its reply true?
    pub(super) fn judge(&mut self, flight: &Flight, reply: &Reply, after: &[After<Number>]) {
        for After { id, seen, .. } in after {
            match seen {
                Seen::Task(task) => assert!(self.was_stored(task), "effects_after_commit: {task:?} was never stored"),
                Seen::Gone => assert!(self.shelf.row(self.now, *id).is_none(), "ttl_not_early: {id} is still there"),
            }
        }
        match reply {
            Reply::Created(Created::Task(task)) => {
                assert!(self.was_stored(task), "created_is_durable: {task:?}");
                let expired = !task.is_visible(self.now);
                assert!(expired || self.shelf.row(self.now, task.id).is_some(), "created_is_durable: {task:?}");
            }
            Reply::Created(Created::Unavailable(unavailable)) => {
                if let (true, Kind::Create(id)) = (unavailable.maybe_done, flight.kind) {
                    self.ghosts.insert(id);
                }
                self.reach("a create met a store that was away");
            }
            Reply::Created(Created::AtTheLimit { .. }) => self.reach("at the limit"),
            Reply::Created(Created::IdTaken) => panic!("ids are fresh"),
            Reply::Read(Answered::Task(task)) => {
                assert_eq!(self.shelf.row(self.now, task.id), Some(task), "a read is of this moment");
                self.only_its_owner(flight);
            }
            Reply::Written(Written::Done(task)) => {
                assert!(self.was_stored(task), "{task:?}");
                if let Kind::Client { cancel, .. } = flight.kind {
                    self.only_its_owner(flight);
                    assert!(!cancel || task.status().is_terminal(), "cancel_is_final: {task:?}");
                }
            }
            Reply::Written(Written::Rejected { why, task, .. }) => {
                assert!(self.was_stored(task), "{task:?}");
                self.only_its_owner(flight);
                self.reach(match why {
                    tokkuri_core::task::Rejected::StaleAttempt => "a stale attempt was refused",
                    _ => "a command was refused",
                });
            }
            Reply::Read(Answered::LacksScope { .. }) | Reply::Written(Written::LacksScope { .. }) => {
                panic!("no task here needs scopes")
            }
            Reply::Taken(Ok(taken)) if taken.restarted > 0 => self.reach("a sweep restarted a task"),
            Reply::Read(Answered::Absent) | Reply::Written(Written::Absent) => {
                if let Kind::Client { id, own, .. } = flight.kind {
                    let there = self.shelf.row(self.now, id).is_some();
                    assert!(!own || !there, "ttl_not_early: its owner does not see {id}");
                    if !own && there {
                        self.reach("a stranger saw nothing");
                    }
                }
            }
            Reply::Read(Answered::Unavailable(_))
            | Reply::Written(Written::Unavailable(_))
            | Reply::Expired(_)
            | Reply::Taken(_) => {}
        }
    }

    /// After every move.
    pub(crate) fn check(&mut self) {
        for name in ["ann", "bob"] {
            let live = self
                .shelf
                .rows()
                .filter(|row| row.live().is_some() && row.is_visible(self.now) && *row.origin.owner.principal == *name);
            assert!(live.count() <= LIMIT as usize, "quota_holds: {name} has too many live tasks");
        }
        for node in &self.nodes {
            for (id, run) in node.host.runs() {
                let states = self.history.get(id).map_or(&[][..], Vec::as_slice);
                let last = states.last();
                let true_reason = match run.stop() {
                    None => true,
                    Some(Stop::Cancelled) => last.is_some_and(|last| last.phase == Phase::Cancelled),
                    Some(Stop::Expired) => last.is_none_or(|last| !last.is_visible(self.now)),
                    Some(Stop::Lost) => last.is_some_and(|last| {
                        last.attempt > run.attempt() || matches!(last.phase, Phase::Completed(_) | Phase::Failed(_))
                    }),
                    Some(Stop::LeaseLost | Stop::Shutdown | Stop::Drain) => false,
                };
                assert!(true_reason, "a run was stopped without a reason: {run:?}, while its task is {last:?}");
                if let Some(seen) = run.seen() {
                    assert!(states.contains(seen), "a run was shown what was never stored: {seen:?}");
                }
            }
        }
    }

    /// When nothing more can happen, and each node has looked at the store.
    pub(crate) fn check_settled(&mut self) {
        for tool in self.runs.clone() {
            let stop = self.stop_of(tool);
            let Some(row) = self.shelf.row(self.now, tool.id).cloned() else {
                assert!(stop.is_some(), "cancel_reaches_run: {tool:?} has expired and does not know");
                continue;
            };
            if row.status().is_terminal() || row.attempt != tool.attempt {
                assert!(stop.is_some(), "cancel_reaches_run: {tool:?} does not know of {row:?}");
                continue;
            }
            let run = self.nodes[tool.node].host.run_of(tool.id, tool.attempt);
            for (key, question) in row.live().into_iter().flat_map(|live| &live.questions) {
                let known = run.as_ref().and_then(|run| run.answer(key));
                assert_eq!(known, question.answer.as_ref(), "no_lost_wakeup: {tool:?} waits for {key}");
            }
        }
        self.stop_what_has_to_stop();
        let now = self.now;
        for row in self.shelf.rows().filter(|row| row.is_visible(now) && row.live().is_some()) {
            let is_run = self.runs.iter().any(|tool| (tool.id, tool.attempt) == (row.id, row.attempt));
            assert!(is_run || self.ghosts.contains(&row.id), "orphan_ends: nobody runs {row:?}");
        }
        for node in &self.nodes {
            for (id, run) in node.host.runs() {
                let is_run = self.runs.iter().any(|tool| (tool.id, tool.attempt) == (*id, run.attempt()));
                assert!(is_run, "a place was reserved for {id} and never given back: {run:?}");
            }
        }
    }

    fn was_stored(&self, task: &Arc<Task<Number>>) -> bool {
        self.history.get(&task.id).is_some_and(|states| states.contains(task))
    }

    fn only_its_owner(&self, flight: &Flight) {
        let stranger = matches!(flight.kind, Kind::Client { own: false, .. });
        assert!(!stranger, "stranger_sees_nothing: {:?}", flight.kind);
    }

    /// The words by which a script says where it got.
    pub(crate) const REACHED: [&'static str; 13] = [
        Status::InputRequired.as_str(),
        Status::Completed.as_str(),
        Status::Failed.as_str(),
        Status::Cancelled.as_str(),
        "restarted",
        "a sweep restarted a task",
        "a stale attempt was refused",
        "a command was refused",
        "a create met a store that was away",
        "at the limit",
        "a stranger saw nothing",
        "a look brought news",
        "a lease was lost",
    ];
}
