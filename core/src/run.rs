//! What the run of one attempt is owed.
//!
//! A run's monitor knows the newest reading of its task that this node has. Everything follows from that reading: which answers
//! are there, and whether the run has to stop. So a lost, late or doubled signal changes nothing but when it is seen, and there
//! is no moment at which an answer could arrive too early to be waited for.

use alloc::sync::Arc;

use crate::Text;
use crate::id::{Attempt, Key, TaskId};
use crate::lease::Draining;
use crate::payload::Payload;
use crate::procedure::Seen;
use crate::task::{Command, Fault, Phase, Task};
use crate::time::Millis;

/// At most one progress write per so many milliseconds: what comes in between is conflated.
pub const PROGRESS_INTERVAL_MS: u64 = 250;

/// Why a run has to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stop {
    /// The task's owner cancelled it.
    Cancelled,
    /// The task's time to live is over.
    Expired,
    /// The task was failed by somebody else, or another attempt runs it: this run's node was thought dead.
    Lost,
    /// This node's lease ran out, so others may have taken the task over.
    LeaseLost,
    /// This node drains, and the task can be run elsewhere.
    Drain,
    /// The node shuts down.
    Shutdown,
}

impl Stop {
    /// Whether the tool gets its grace: the task is not this attempt's to end any more, so nobody waits for what is left of the
    /// run. A node that shuts down does, and so does whoever is to run again what is handed over.
    pub const fn leaves_grace(self) -> bool {
        match self {
            Self::Cancelled | Self::Expired | Self::Lost | Self::LeaseLost => true,
            Self::Drain | Self::Shutdown => false,
        }
    }

    /// What the node still has to store about a task whose run it stopped for this reason, whatever its tool returned by then: that
    /// may be nothing but its answer to the stop. Nothing if the store knows of the end already, if it is no longer this node's to
    /// store, or if the task is an orphan as soon as this node is gone.
    ///
    /// `began` says whether the run's tool was begun, `restartable` whether it may be run again.
    pub fn end<P>(self, by: Attempt, began: bool, restartable: bool) -> Option<Command<P>> {
        match self {
            Self::Drain => Some(Command::HandOver { by, began }),
            // It waited for a place: whoever takes it over runs it for the first time.
            Self::Shutdown if !began => Some(Command::HandOver { by, began }),
            Self::Shutdown if !restartable => {
                Some(Command::Fail { by, fault: Fault::internal("The server shut down before the task ended.") })
            }
            Self::Shutdown | Self::Cancelled | Self::Expired | Self::Lost | Self::LeaseLost => None,
        }
    }
}

/// The monitor of one attempt.
///
/// # Contract
/// * [`reserve`](Self::reserve) before the task is stored; [`start`](Self::start) with the stored task.
/// * [`observe`](Self::observe) every reading of the task, in any order, however often.
/// * [`stop`](Self::stop) and [`answer`](Self::answer) are what the run may ask at any time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Run<P> {
    id: TaskId,
    attempt: Attempt,
    seen: Option<Arc<Task<P>>>,
    started: bool,
    began: bool,
    stop: Option<Stop>,
    progress: Progress,
}

/// Progress on its way to the store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Progress {
    /// Not taken up yet.
    pending: Option<Text>,
    /// Being written: it may not arrive.
    in_flight: Option<Text>,
    /// No write before this moment, by the process's clock.
    not_before: Millis,
}

/// What is to be done about a run's progress.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ProgressDue {
    /// Nothing until the run says more.
    Nothing,
    /// Something, but not before this moment.
    At(Millis),
    /// Write this now, then say [`Run::progress_written`].
    Write(Text),
}

impl<P: Payload> Run<P> {
    /// The monitor of a run that is about to be stored.
    pub fn reserve(id: TaskId, attempt: Attempt) -> Self {
        Self { id, attempt, seen: None, started: false, began: false, stop: None, progress: Progress::default() }
    }

    /// The attempt that it watches over.
    pub const fn attempt(&self) -> Attempt {
        self.attempt
    }

    /// Whether the run was started, rather than only reserved.
    pub const fn is_started(&self) -> bool {
        self.started
    }

    /// The newest reading of the task.
    pub const fn seen(&self) -> Option<&Arc<Task<P>>> {
        self.seen.as_ref()
    }

    /// The task is stored and this attempt runs it. False if it was started before.
    pub fn start(&mut self, task: &Arc<Task<P>>) -> bool {
        self.observe(&Seen::Task(Arc::clone(task)));
        !core::mem::replace(&mut self.started, true)
    }

    /// Whether its tool was begun. If not, it waits for a place.
    pub const fn has_begun(&self) -> bool {
        self.began
    }

    /// The run has its place, and is about to run its tool. False if it has to stop instead.
    pub fn begin(&mut self) -> bool {
        self.began |= self.stop.is_none();
        self.began
    }

    /// The node drains, or no longer does. Stops the run if it is better run elsewhere: one that waits for a place at once, one
    /// that may be run again when the time to wait is over. Returns whether it is news.
    pub fn drain(&mut self, draining: Draining) -> bool {
        let Some(task) = self.seen.as_ref().filter(|_| self.started) else { return false };
        let may_run_again = task.origin.restartable || mutant!(HandsOverWhatRunsOnce);
        match draining {
            Draining::No => false,
            Draining::Waits if mutant!(DrainHandsOverAtOnce) => self.halt(Stop::Drain),
            Draining::Waits => !self.began && self.halt(Stop::Drain),
            Draining::HandsOver => (!self.began || may_run_again) && self.halt(Stop::Drain),
        }
    }

    /// A reading of the store. Returns whether it was news to the run.
    pub fn observe(&mut self, seen: &Seen<P>) -> bool {
        let stop = match seen {
            // A reading from before the task was stored. If the task has really gone since, the clock will tell.
            Seen::Gone if self.seen.is_none() => return false,
            Seen::Gone => Some(Stop::Expired),
            Seen::Task(task) => {
                // A reading from before this attempt, of a task that is just being taken over, says nothing about it: a place
                // is reserved before the take-over is stored, and whatever was stored earlier may still arrive.
                let earlier = task.attempt < self.attempt && !mutant!(EarlierAttemptCounts);
                let older = self.seen.as_ref().is_some_and(|known| known.revision >= task.revision);
                if earlier || (older && !mutant!(OldReadingWins)) {
                    return false;
                }
                self.seen = Some(Arc::clone(task));
                self.verdict(task)
            }
        };
        match stop {
            Some(stop) => self.halt(stop),
            None => true,
        }
    }

    /// What a reading means for this attempt.
    fn verdict(&self, task: &Task<P>) -> Option<Stop> {
        if task.attempt != self.attempt {
            return Some(Stop::Lost);
        }
        match &task.phase {
            Phase::Live(_) => None,
            Phase::Cancelled if mutant!(CancelStopsNoRun) => None,
            Phase::Cancelled => Some(Stop::Cancelled),
            // Its own end, or one that somebody else gave it: either way there is nothing more to do.
            Phase::Completed(_) | Phase::Failed(_) => Some(Stop::Lost),
        }
    }

    /// The store's time, as some answer of the store told it. Returns whether it stops the run.
    pub fn clock(&mut self, now: Millis) -> bool {
        match &self.seen {
            Some(task) if !task.is_visible(now) && !mutant!(ClockIgnored) => self.halt(Stop::Expired),
            Some(_) | None => false,
        }
    }

    /// When the task expires, as far as this node knows.
    pub fn expires(&self) -> Option<Millis> {
        self.seen.as_ref().map(|task| task.expires())
    }

    /// Stops the run for this reason, unless it was stopped before. Returns whether it is news.
    pub const fn halt(&mut self, stop: Stop) -> bool {
        if self.stop.is_some() {
            return false;
        }
        self.stop = Some(stop);
        true
    }

    /// Whether the run has to stop, and why. The first reason stays.
    pub const fn stop(&self) -> Option<Stop> {
        self.stop
    }

    /// The recorded answer to a question, once there is one.
    pub fn answer(&self, key: &Key) -> Option<&P> {
        self.seen.as_ref()?.live()?.questions.get(key)?.answer.as_ref()
    }

    /// The run says how far it is.
    pub fn progress(&mut self, message: Text) {
        self.progress.pending = Some(message);
    }

    /// What to do about progress at `now`, by the process's own clock: it decides only how often, never what.
    pub fn progress_due(&mut self, now: Millis) -> ProgressDue {
        if self.progress.in_flight.is_some() || self.stop.is_some() {
            return ProgressDue::Nothing;
        }
        match self.progress.pending.take() {
            None => ProgressDue::Nothing,
            Some(message) if now < self.progress.not_before => {
                self.progress.pending = Some(message);
                ProgressDue::At(self.progress.not_before)
            }
            Some(message) => {
                self.progress.in_flight = Some(message.clone());
                self.progress.not_before = now.after(PROGRESS_INTERVAL_MS);
                ProgressDue::Write(message)
            }
        }
    }

    /// The write that [`ProgressDue::Write`] asked for is over, whatever came of it, and what it read of the store was
    /// [observed](Self::observe). If the store does not have the text, it is still to be written, unless there is newer.
    pub fn progress_written(&mut self) {
        let stored = self.seen.as_ref().and_then(|task| task.status_message.as_deref()).unwrap_or_default();
        if let Some(written) = self.progress.in_flight.take()
            && self.progress.pending.is_none()
            && stored != written
        {
            self.progress.pending = Some(written);
        }
    }

    /// The run has ended: the progress that has to stand before the end, if some may not be stored yet.
    pub fn finish(&mut self) -> Option<Text> {
        let in_flight = self.progress.in_flight.take();
        self.progress.pending.take().or(in_flight)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::task::Command;
    use crate::task::samples::{Number, T0, TTL_MS, answer, ask, restartable, task};

    fn started(task: Task<Number>) -> Run<Number> {
        let mut run = Run::reserve(task.id, task.attempt);
        run.start(&Arc::new(task));
        run
    }

    #[test]
    fn a_drain_stops_what_waits_at_once_and_what_may_run_again_in_the_end() {
        for (sample, stops) in [(task(), false), (restartable(), true)] {
            let mut waits = started(sample.clone());
            assert!(!waits.drain(Draining::No) && waits.drain(Draining::Waits) && !waits.drain(Draining::HandsOver));
            assert_eq!(waits.stop(), Some(Stop::Drain));
            assert!(!waits.begin(), "it is on its way to another node");
            let mut runs = started(sample);
            assert!(runs.begin() && !runs.drain(Draining::Waits));
            assert_eq!(runs.drain(Draining::HandsOver), stops);
        }
        assert!(!Run::<Number>::reserve(task().id, Attempt::FIRST).drain(Draining::HandsOver), "it may not be stored");
    }

    #[test]
    fn what_is_stored_of_a_stop_says_whether_the_tool_was_begun() {
        let by = Attempt::FIRST;
        for restartable in [true, false] {
            let handed_over = |began| Some(Command::<Number>::HandOver { by, began });
            for began in [true, false] {
                assert_eq!(Stop::Drain.end(by, began, restartable), handed_over(began));
                for stop in [Stop::Cancelled, Stop::Expired, Stop::Lost, Stop::LeaseLost] {
                    assert_eq!(stop.end::<Number>(by, began, restartable), None);
                    assert!(stop.leaves_grace());
                }
            }
            assert_eq!(Stop::Shutdown.end(by, false, restartable), handed_over(false));
        }
        assert_eq!(Stop::Shutdown.end::<Number>(by, true, true), None);
        assert!(matches!(Stop::Shutdown.end::<Number>(by, true, false), Some(Command::Fail { .. })));
    }

    fn reading(task: &Task<Number>) -> Seen<Number> {
        Seen::Task(Arc::new(task.clone()))
    }

    #[test]
    fn an_answer_that_was_stored_before_the_run_waits_is_there() {
        let mut task = task();
        let mut run = Run::reserve(task.id, task.attempt);
        run.start(&Arc::new(task.clone()));
        task.apply(T0, ask("a"), &mut Vec::new()).unwrap();
        task.apply(T0, answer([("a", Number(4))]), &mut Vec::new()).unwrap();
        assert!(run.observe(&reading(&task)));
        assert_eq!(run.answer(&"a".into()), Some(&Number(4)));
    }

    #[test]
    fn an_older_reading_changes_nothing() {
        let mut task = task();
        let mut run = Run::reserve(task.id, task.attempt);
        let old = reading(&task);
        task.apply(T0, ask("a"), &mut Vec::new()).unwrap();
        run.observe(&reading(&task));
        let before = run.clone();
        assert!(!run.observe(&old));
        assert_eq!(run, before);
    }

    #[test]
    fn a_reading_from_before_the_take_over_does_not_stop_the_new_attempt() {
        let mut task = restartable();
        let before = reading(&task);
        let mut run = Run::reserve(task.id, task.attempt.next());
        assert!(!run.observe(&before));
        let lose = Command::Lose { attempt: task.attempt, heir: Some(task.node), why: "lost".into() };
        task.apply(T0, lose, &mut Vec::new()).unwrap();
        assert!(run.start(&Arc::new(task)));
        assert_eq!(run.stop(), None);
    }

    #[test]
    fn a_cancel_that_comes_before_the_start_is_not_missed() {
        let mut task = task();
        let created = Arc::new(task.clone());
        let mut run = Run::reserve(task.id, task.attempt);
        task.apply(T0, Command::Cancel, &mut Vec::new()).unwrap();
        run.observe(&reading(&task));
        run.start(&created);
        assert_eq!(run.stop(), Some(Stop::Cancelled));
    }

    #[test]
    fn a_reading_from_before_the_task_was_stored_does_not_stop_its_run() {
        let task = task();
        let mut run = Run::reserve(task.id, task.attempt);
        assert!(!run.observe(&Seen::Gone));
        run.start(&Arc::new(task));
        assert_eq!(run.stop(), None);
        assert!(run.observe(&Seen::Gone));
        assert_eq!(run.stop(), Some(Stop::Expired));
    }

    #[test]
    fn the_clock_of_the_store_ends_a_run_whose_task_expired() {
        let task = task();
        let mut run = Run::reserve(task.id, task.attempt);
        run.start(&Arc::new(task));
        assert!(!run.clock(T0.after(TTL_MS - 1)));
        assert!(run.clock(T0.after(TTL_MS)));
        assert_eq!(run.stop(), Some(Stop::Expired));
    }

    #[test]
    fn progress_is_conflated_and_the_last_one_stands_before_the_end() {
        let task = task();
        let mut run = Run::<Number>::reserve(task.id, task.attempt);
        run.progress("1".into());
        assert_eq!(run.progress_due(T0), ProgressDue::Write("1".into()));
        run.progress("2".into());
        assert_eq!(run.progress_due(T0.after(1)), ProgressDue::Nothing, "one write at a time");
        run.progress_written();
        assert_eq!(run.progress_due(T0.after(1)), ProgressDue::At(T0.after(PROGRESS_INTERVAL_MS)));
        run.progress("3".into());
        assert_eq!(run.progress_due(T0.after(PROGRESS_INTERVAL_MS)), ProgressDue::Write("3".into()));
        // The write is dropped half-way: its text is not lost.
        assert_eq!(run.finish(), Some("3".into()));
    }

    #[test]
    fn progress_that_the_store_did_not_take_is_written_again_and_stands_before_the_end() {
        let mut task = task();
        let mut run = Run::reserve(task.id, task.attempt);
        run.start(&Arc::new(task.clone()));
        run.progress("1".into());
        assert_eq!(run.progress_due(T0), ProgressDue::Write("1".into()));
        run.progress_written();
        assert_eq!(run.clone().finish(), Some("1".into()));

        let again = T0.after(PROGRESS_INTERVAL_MS);
        assert_eq!(run.progress_due(T0.after(1)), ProgressDue::At(again));
        assert_eq!(run.progress_due(again), ProgressDue::Write("1".into()));
        task.apply(T0, Command::Progress { by: task.attempt, message: "1".into() }, &mut Vec::new()).unwrap();
        run.observe(&reading(&task));
        run.progress_written();
        assert_eq!(run.progress_due(again.after(PROGRESS_INTERVAL_MS)), ProgressDue::Nothing);
        assert_eq!(run.finish(), None);
    }
}
