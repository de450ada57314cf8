//! A wait is registered before or after the store's change, before or after its signal: it ends all the same. Readings that
//! come late, older than what is known, take nothing back.

use std::collections::HashSet;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Waker};

use loom::future::block_on;
use loom::thread;
use tokkuri_core::run::Stop;
use tokkuri_core::task::Command;

use crate::frame::{A, FIRST, FOUR, Node, ask, explore, key, reply};

#[test]
fn an_answer_between_the_commit_of_the_question_and_the_reading_of_it_is_there() {
    let outcomes = explore(|| {
        let node = Node::idle(1);
        node.registry.start(&node.create(A));
        let (asked, _) = node.commit(A, ask(FIRST));
        let client = thread::spawn({
            let node = Arc::clone(&node);
            move || assert!(node.write(A, reply()))
        });
        node.signal(&asked);
        let answer = node.answer(A, FIRST);
        client.join().unwrap();
        answer
    });
    assert_eq!(outcomes, HashSet::from([Ok(FOUR)]));
}

#[test]
fn a_reading_from_before_the_change_takes_neither_answer_nor_stop_back() {
    for command in [reply(), Command::Cancel] {
        let outcomes = explore(move || {
            let node = Node::running([A]);
            let before = node.row(A);
            let late = thread::spawn({
                let node = Arc::clone(&node);
                move || node.signal(&before)
            });
            let client = thread::spawn({
                let (node, command) = (Arc::clone(&node), command.clone());
                move || assert!(node.write(A, command))
            });
            let answer = node.answer(A, FIRST);
            late.join().unwrap();
            client.join().unwrap();
            assert_eq!(node.answer(A, FIRST), answer);
            answer
        });
        assert_eq!(outcomes.len(), 1);
    }
}

#[test]
fn whoever_waits_for_an_answer_is_woken_by_the_one_that_comes_with_an_end_of_another_kind() {
    let outcomes = explore(|| {
        let node = Node::running([A]);
        // Two doors: the answer's signal may arrive after the cancel's, although it was stored before.
        let (answered, _) = node.commit(A, reply());
        let (cancelled, _) = node.commit(A, Command::Cancel);
        let doors = [answered, cancelled].map(|reading| {
            let node = Arc::clone(&node);
            thread::spawn(move || node.signal(&reading))
        });
        let answer = node.answer(A, FIRST);
        doors.into_iter().for_each(|door| door.join().unwrap());
        assert_eq!(node.registry.stop(A, FIRST), Some(Stop::Cancelled));
        answer
    });
    assert_eq!(outcomes, HashSet::from([Ok(FOUR), Err(Stop::Cancelled)]));
}

#[test]
fn a_waiter_that_moved_to_another_async_task_is_woken_there() {
    let outcomes = explore(|| {
        let node = Node::running([A]);
        let client = thread::spawn({
            let node = Arc::clone(&node);
            move || assert!(node.write(A, reply()))
        });
        let (key, mut waiter) = (key(), node.registry.waiter(A, FIRST));
        let at_once = waiter.poll_answer(&key, &mut Context::from_waker(Waker::noop())).is_ready();
        assert_eq!(block_on(poll_fn(|cx| waiter.poll_answer(&key, cx))), Ok(FOUR));
        client.join().unwrap();
        at_once
    });
    assert_eq!(outcomes, HashSet::from([true, false]));
}
