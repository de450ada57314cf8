//! A run's registration races a cancel, and sweeps of one node that want the same run.
//!
//! The place is reserved before the task is stored, so whatever is committed from then on finds it: the run is told to stop
//! without anybody's look at the store. It is spawned once, and once spawned it stays.

use std::collections::HashSet;
use std::sync::Arc;

use loom::thread;
use tokkuri_core::procedure::Local;
use tokkuri_core::run::Stop;
use tokkuri_core::task::Command;

use crate::frame::{A, FIRST, FOUR, Node, ask, explore, reply};

#[test]
fn a_cancel_that_is_stored_before_the_run_is_started_stops_it() {
    let outcomes = explore(|| {
        let node = Node::idle(1);
        node.registry.local(Local::Reserve { id: A, attempt: FIRST });
        let created = node.create(A);
        let client = thread::spawn({
            let node = Arc::clone(&node);
            move || {
                assert!(node.write(A, Command::Cancel));
                node.registry.stop(A, FIRST).is_some()
            }
        });
        let early = node.registry.stop(A, FIRST).is_some();
        assert!(node.registry.start(&created));
        assert_eq!(node.stop(A, FIRST), Stop::Cancelled);
        assert!(client.join().unwrap(), "who has cancelled finds the run stopped");
        early
    });
    assert_eq!(outcomes, HashSet::from([true, false]));
}

#[test]
fn a_run_that_two_want_to_start_is_spawned_once_and_stopped() {
    let outcomes = explore(|| {
        let node = Node::idle(1);
        node.registry.local(Local::Reserve { id: A, attempt: FIRST });
        let created = node.create(A);
        let client = thread::spawn({
            let node = Arc::clone(&node);
            move || assert!(node.write(A, Command::Cancel))
        });
        let other = thread::spawn({
            let (node, created) = (Arc::clone(&node), Arc::clone(&created));
            move || node.registry.start(&created)
        });
        let here = node.registry.start(&created);
        let there = other.join().unwrap();
        assert!(here != there, "spawned by exactly one");
        assert_eq!(node.stop(A, FIRST), Stop::Cancelled);
        client.join().unwrap();
        here
    });
    assert_eq!(outcomes, HashSet::from([true, false]));
}

#[test]
fn a_start_that_comes_second_brings_what_it_read() {
    let outcomes = explore(|| {
        let node = Node::idle(1);
        node.registry.local(Local::Reserve { id: A, attempt: FIRST });
        let created = node.create(A);
        node.commit(A, ask(FIRST));
        let (answered, _) = node.commit(A, reply());
        let other = thread::spawn({
            let node = Arc::clone(&node);
            move || node.registry.start(&answered)
        });
        let here = node.registry.start(&created);
        assert_eq!(node.answer(A, FIRST), Ok(FOUR));
        assert!(here != other.join().unwrap(), "spawned by exactly one");
        here
    });
    assert_eq!(outcomes, HashSet::from([true, false]));
}

#[test]
fn a_place_that_is_reserved_and_given_back_does_not_take_a_started_run_along() {
    let outcomes = explore(|| {
        let node = Node::idle(1);
        node.registry.local(Local::Reserve { id: A, attempt: FIRST });
        let created = node.create(A);
        // A sweep whose commit lost against the other's.
        let loser = thread::spawn({
            let node = Arc::clone(&node);
            move || {
                node.registry.local(Local::Reserve { id: A, attempt: FIRST });
                let started = node.registry.runs().len();
                node.registry.local(Local::Abandon { id: A, attempt: FIRST });
                started
            }
        });
        let client = thread::spawn({
            let node = Arc::clone(&node);
            move || assert!(node.write(A, Command::Cancel))
        });
        assert!(node.registry.start(&created));
        let started = loser.join().unwrap();
        assert_eq!(node.registry.runs(), [(A, FIRST)]);
        client.join().unwrap();
        // A place that was given back may have taken the cancel's signal with it: the next look finds it.
        node.look(A);
        assert_eq!(node.stop(A, FIRST), Stop::Cancelled);
        started
    });
    assert_eq!(outcomes, HashSet::from([0, 1]));
}
