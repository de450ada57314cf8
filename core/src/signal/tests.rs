//! The registry, single-threaded: who is woken, and when.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake};

use super::*;
use crate::id::Key;
use crate::run::ProgressDue;
use crate::task::samples::{Number, T0, answer, ask, restartable, task};

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn whoever_waits_is_woken_by_the_answer_and_by_nothing_older() {
    let registry = Registry::new(2, NodeId(1));
    let mut task = task();
    let (id, attempt, key) = (task.id, task.attempt, Key::from("a"));
    let created = Arc::new(task.clone());
    assert!(registry.start(&created));
    let mut waiter = registry.waiter(id, attempt);
    let count = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&count));
    let mut cx = Context::from_waker(&waker);

    task.apply(T0, ask("a"), &mut Vec::new()).unwrap();
    registry.observe(id, &Seen::Task(Arc::new(task.clone())));
    assert!(waiter.poll_answer(&key, &mut cx).is_pending());
    registry.observe(id, &Seen::Task(created));
    assert_eq!(count.0.load(Ordering::SeqCst), 0);

    task.apply(T0, answer([("a", Number(4))]), &mut Vec::new()).unwrap();
    registry.observe(id, &Seen::Task(Arc::new(task)));
    assert_eq!(count.0.load(Ordering::SeqCst), 1);
    assert_eq!(waiter.poll_answer(&key, &mut cx), Poll::Ready(Ok(Number(4))));
}

#[test]
fn a_run_that_left_the_table_is_lost() {
    let registry = Registry::new(1, NodeId(1));
    let task = Arc::new(task());
    registry.start(&task);
    let mut waiter = registry.waiter(task.id, task.attempt);
    let mut cx = Context::from_waker(Waker::noop());
    assert!(waiter.poll_stop(&mut cx).is_pending());
    registry.release(task.id, task.attempt);
    assert_eq!(waiter.poll_stop(&mut cx), Poll::Ready(Stop::Lost));
    assert!(registry.is_empty());
}

#[test]
fn a_start_that_comes_twice_wakes_whoever_waits_for_what_it_brings() {
    let registry = Registry::new(1, NodeId(1));
    let mut task = task();
    let (id, attempt, key) = (task.id, task.attempt, Key::from("a"));
    assert!(registry.start(&Arc::new(task.clone())));
    let mut waiter = registry.waiter(id, attempt);
    let count = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&count));
    let mut cx = Context::from_waker(&waker);
    assert!(waiter.poll_answer(&key, &mut cx).is_pending());

    task.apply(T0, ask("a"), &mut Vec::new()).unwrap();
    task.apply(T0, answer([("a", Number(4))]), &mut Vec::new()).unwrap();
    assert!(!registry.start(&Arc::new(task)));
    assert_eq!(count.0.load(Ordering::SeqCst), 1);
}

#[test]
fn progress_that_was_said_during_a_write_is_due_after_it() {
    let registry = Registry::new(1, NodeId(1));
    let task = Arc::new(task());
    let (id, attempt) = (task.id, task.attempt);
    registry.start(&task);
    let mut waiter = registry.waiter(id, attempt);
    let count = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&count));
    let mut cx = Context::from_waker(&waker);
    registry.progress(id, attempt, "1".into());
    assert_eq!(waiter.poll_progress(T0, &mut cx), Poll::Ready(ProgressDue::Write("1".into())));
    registry.progress(id, attempt, "2".into());
    assert!(waiter.poll_progress(T0, &mut cx).is_pending());
    registry.progress_written(id, attempt);
    assert_eq!(count.0.load(Ordering::SeqCst), 1);
    assert!(matches!(waiter.poll_progress(T0, &mut cx), Poll::Ready(ProgressDue::At(_))));
}

#[test]
fn a_waiter_that_is_dropped_leaves_no_waker_behind() {
    let registry = Registry::new(1, NodeId(1));
    let task = Arc::new(task());
    registry.start(&task);
    let dropped = Arc::new(Count::default());
    let stays = Arc::new(Count::default());
    let mut waiting = registry.waiter(task.id, task.attempt);
    assert!(waiting.poll_stop(&mut Context::from_waker(&Waker::from(Arc::clone(&stays)))).is_pending());
    for _ in 0..3 {
        let mut waiter = registry.waiter(task.id, task.attempt);
        assert!(waiter.poll_stop(&mut Context::from_waker(&Waker::from(Arc::clone(&dropped)))).is_pending());
    }
    assert_eq!(Arc::strong_count(&dropped), 1);
    registry.halt(Stop::Shutdown);
    assert_eq!((dropped.0.load(Ordering::SeqCst), stays.0.load(Ordering::SeqCst)), (0, 1));
    assert_eq!(Arc::strong_count(&stays), 1);
}

#[test]
fn a_waiter_has_one_place_and_the_latest_waker_counts() {
    let registry = Registry::new(1, NodeId(1));
    let task = Arc::new(task());
    registry.start(&task);
    let before = Arc::new(Count::default());
    let after = Arc::new(Count::default());
    let mut waiter = registry.waiter(task.id, task.attempt);
    for count in [&before, &after, &after] {
        assert!(waiter.poll_stop(&mut Context::from_waker(&Waker::from(Arc::clone(count)))).is_pending());
    }
    assert_eq!(Arc::strong_count(&before), 1);
    registry.halt(Stop::Shutdown);
    assert_eq!((before.0.load(Ordering::SeqCst), after.0.load(Ordering::SeqCst)), (0, 1));
}

#[test]
fn what_lives_is_told_by_status_as_it_was_seen_last() {
    let registry = Registry::new(2, NodeId(1));
    let mut task = task();
    let live = |working, input_required| Live { working, input_required };
    registry.local(Local::Reserve { id: task.id, attempt: task.attempt });
    assert_eq!(registry.live(), live(0, 0), "it is not stored yet");
    registry.start(&Arc::new(task.clone()));
    assert_eq!(registry.live(), live(1, 0));
    task.apply(T0, ask("a"), &mut Vec::new()).unwrap();
    registry.observe(task.id, &Seen::Task(Arc::new(task.clone())));
    assert_eq!(registry.live(), live(0, 1));
    task.apply(T0, crate::task::Command::Cancel, &mut Vec::new()).unwrap();
    registry.observe(task.id, &Seen::Task(Arc::new(task.clone())));
    assert_eq!(registry.live(), live(0, 0), "the run is there, but its task has ended");
}

/// Begins a run as soon as it is woken: the place of the one that stopped is free.
struct Next {
    registry: Arc<Registry<Number>>,
    id: TaskId,
    begun: AtomicUsize,
}

impl Wake for Next {
    fn wake(self: Arc<Self>) {
        let begins = self.registry.begin(self.id, Attempt::FIRST);
        self.begun.fetch_add(usize::from(begins), Ordering::SeqCst);
    }
}

#[test]
fn nothing_begins_on_the_place_of_a_run_that_is_stopped_with_it() {
    let stops: [fn(&Registry<Number>) -> usize; 3] = [
        |registry| registry.halt(Stop::Shutdown),
        |registry| registry.rejoin(NodeId(7)),
        |registry| registry.drain(Draining::HandsOver),
    ];
    for stop in stops {
        let registry = Arc::new(Registry::new(2, NodeId(1)));
        // The one that runs is told first.
        let [runs, waits] = [0, 1].map(|shard| Task { id: TaskId::from_bytes([shard; 18]), ..restartable() });
        for task in [&runs, &waits] {
            assert!(registry.start(&Arc::new(task.clone())));
        }
        assert!(registry.begin(runs.id, runs.attempt));
        let next = Arc::new(Next { registry: Arc::clone(&registry), id: waits.id, begun: AtomicUsize::new(0) });
        let mut waiter = registry.waiter(runs.id, runs.attempt);
        assert!(waiter.poll_stop(&mut Context::from_waker(&Waker::from(Arc::clone(&next)))).is_pending());
        assert_eq!(stop(&registry), 2);
        assert_eq!(next.begun.load(Ordering::SeqCst), 0);
        assert!(registry.stop(runs.id, runs.attempt).is_some() && registry.stop(waits.id, waits.attempt).is_some());
    }
}
