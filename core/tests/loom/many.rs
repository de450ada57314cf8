//! Many wait at once, at one run and at the runs of one shard: each is woken by what concerns it, none instead of another.

use std::collections::HashSet;
use std::sync::Arc;

use loom::thread;
use tokkuri_core::run::Stop;
use tokkuri_core::task::Command;

use crate::frame::{A, B, FIRST, FOUR, Node, explore, reply};

#[test]
fn everyone_who_waits_at_a_run_is_woken() {
    let outcomes = explore(|| {
        let node = Node::running([A]);
        let others = [(), ()].map(|()| {
            let node = Arc::clone(&node);
            thread::spawn(move || node.answer(A, FIRST))
        });
        let client = thread::spawn({
            let node = Arc::clone(&node);
            move || assert!(node.write(A, reply()))
        });
        assert_eq!(node.answer(A, FIRST), Ok(FOUR));
        client.join().unwrap();
        others.map(|other| other.join().unwrap())
    });
    assert_eq!(outcomes, HashSet::from([[Ok(FOUR), Ok(FOUR)]]));
}

#[test]
fn whoever_waits_for_something_else_is_woken_again() {
    let outcomes = explore(|| {
        let node = Node::running([A]);
        let stop = thread::spawn({
            let node = Arc::clone(&node);
            move || node.stop(A, FIRST)
        });
        let client = thread::spawn({
            let node = Arc::clone(&node);
            move || {
                assert!(node.write(A, reply()));
                assert!(node.write(A, Command::Cancel));
            }
        });
        let answer = node.answer(A, FIRST);
        client.join().unwrap();
        assert_eq!(stop.join().unwrap(), Stop::Cancelled);
        answer
    });
    assert_eq!(outcomes, HashSet::from([Ok(FOUR), Err(Stop::Cancelled)]));
}

#[test]
fn what_happens_to_one_run_wakes_nobody_instead_of_the_other() {
    let outcomes = explore(|| {
        let node = Node::running([A, B]);
        let other = thread::spawn({
            let node = Arc::clone(&node);
            move || node.answer(B, FIRST)
        });
        let clients = [(A, Command::Cancel), (B, reply())].map(|(id, command)| {
            let node = Arc::clone(&node);
            thread::spawn(move || assert!(node.write(id, command)))
        });
        let stop = node.stop(A, FIRST);
        clients.into_iter().for_each(|client| client.join().unwrap());
        (stop, other.join().unwrap())
    });
    assert_eq!(outcomes, HashSet::from([(Stop::Cancelled, Ok(FOUR))]));
}
