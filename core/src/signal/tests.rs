//! The registry, single-threaded: who is woken, and when.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

use super::*;
use crate::task::samples::{Number, T0, answer, ask, task};

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn whoever_waits_is_woken_by_the_answer_and_by_nothing_older() {
    let registry = Registry::new(2);
    let mut task = task();
    let (id, attempt, key) = (task.id, task.attempt, Key::from("a"));
    let created = Arc::new(task.clone());
    assert!(registry.start(&created));
    let count = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&count));
    let mut cx = Context::from_waker(&waker);

    task.apply(T0, ask("a"), &mut Vec::new()).unwrap();
    registry.observe(id, &Seen::Task(Arc::new(task.clone())));
    assert!(registry.poll_answer(id, attempt, &key, &mut cx).is_pending());
    registry.observe(id, &Seen::Task(created));
    assert_eq!(count.0.load(Ordering::SeqCst), 0);

    task.apply(T0, answer([("a", Number(4))]), &mut Vec::new()).unwrap();
    registry.observe(id, &Seen::Task(Arc::new(task)));
    assert_eq!(count.0.load(Ordering::SeqCst), 1);
    assert_eq!(registry.poll_answer(id, attempt, &key, &mut cx), Poll::Ready(Ok(Number(4))));
}

#[test]
fn a_run_that_left_the_table_is_lost() {
    let registry = Registry::new(1);
    let task = Arc::new(task());
    registry.start(&task);
    let waker = Waker::noop();
    let mut cx = Context::from_waker(waker);
    assert!(registry.poll_stop(task.id, task.attempt, &mut cx).is_pending());
    registry.release(task.id, task.attempt);
    assert_eq!(registry.poll_stop(task.id, task.attempt, &mut cx), Poll::Ready(Stop::Lost));
    assert!(registry.is_empty());
}

#[test]
fn a_start_that_comes_twice_wakes_whoever_waits_for_what_it_brings() {
    let registry = Registry::new(1);
    let mut task = task();
    let (id, attempt, key) = (task.id, task.attempt, Key::from("a"));
    assert!(registry.start(&Arc::new(task.clone())));
    let count = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&count));
    let mut cx = Context::from_waker(&waker);
    assert!(registry.poll_answer(id, attempt, &key, &mut cx).is_pending());

    task.apply(T0, ask("a"), &mut Vec::new()).unwrap();
    task.apply(T0, answer([("a", Number(4))]), &mut Vec::new()).unwrap();
    assert!(!registry.start(&Arc::new(task)));
    assert_eq!(count.0.load(Ordering::SeqCst), 1);
}

#[test]
fn progress_that_was_said_during_a_write_is_due_after_it() {
    let registry = Registry::new(1);
    let task = Arc::new(task());
    let (id, attempt) = (task.id, task.attempt);
    registry.start(&task);
    let count = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&count));
    let mut cx = Context::from_waker(&waker);
    registry.progress(id, attempt, "1".into());
    assert_eq!(registry.poll_progress(id, attempt, T0, &mut cx), Poll::Ready(ProgressDue::Write("1".into())));
    registry.progress(id, attempt, "2".into());
    assert!(registry.poll_progress(id, attempt, T0, &mut cx).is_pending());
    registry.progress_written(id, attempt);
    assert_eq!(count.0.load(Ordering::SeqCst), 1);
    assert!(matches!(registry.poll_progress(id, attempt, T0, &mut cx), Poll::Ready(ProgressDue::At(_))));
}
