//! The node loses its lease while runs are started: each is told, or is not started at all.
//!
//! A task that was stored for the incarnation whose lease is lost is an orphan, and may be run elsewhere at once. A run of it that
//! started here after everything was stopped would never hear of that.

use std::collections::HashSet;
use std::sync::Arc;

use loom::thread;
use tokkuri_core::id::{NodeId, TaskId};
use tokkuri_core::procedure::Local;
use tokkuri_core::run::Stop;
use tokkuri_core::task::Command;

use crate::frame::{A, B, FIRST, Node, explore};

const AGAIN: NodeId = NodeId(2);

#[test]
fn a_run_that_is_started_while_the_lease_is_lost_is_stopped_or_never_runs() {
    let outcomes = explore(|| {
        let node = Node::idle(2);
        let other = thread::spawn({
            let node = Arc::clone(&node);
            move || run(&node, B)
        });
        let lost = thread::spawn({
            let node = Arc::clone(&node);
            move || node.registry.rejoin(AGAIN)
        });
        let here = run(&node, A);
        let there = other.join().unwrap();
        // A place that was only reserved is stopped with the rest, and then given back.
        assert!(lost.join().unwrap() >= usize::from(here) + usize::from(there));
        assert_eq!(node.registry.len(), usize::from(here) + usize::from(there), "places are given back");
        (here, there)
    });
    assert_eq!(outcomes, HashSet::from([(true, true), (true, false), (false, true), (false, false)]));
}

#[test]
fn a_cancel_and_a_lost_lease_are_one_stop() {
    let outcomes = explore(|| {
        let node = Node::running([A]);
        let client = thread::spawn({
            let node = Arc::clone(&node);
            move || assert!(node.write(A, Command::Cancel))
        });
        let lost = thread::spawn({
            let node = Arc::clone(&node);
            move || node.registry.rejoin(AGAIN)
        });
        let stop = node.stop(A, FIRST);
        client.join().unwrap();
        assert_eq!(lost.join().unwrap() == 1, stop == Stop::LeaseLost);
        assert_eq!(node.registry.stop(A, FIRST), Some(stop), "the first reason stays");
        stop
    });
    assert_eq!(outcomes, HashSet::from([Stop::Cancelled, Stop::LeaseLost]));
}

/// Creates and starts a task, and waits for its stop. Whether it came to run.
fn run(node: &Node, id: TaskId) -> bool {
    node.registry.local(Local::Reserve { id, attempt: FIRST });
    let starts = node.registry.start(&node.create(id));
    if starts {
        assert_eq!(node.stop(id, FIRST), Stop::LeaseLost);
    }
    starts
}
