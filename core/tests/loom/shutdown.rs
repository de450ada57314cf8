//! The node shuts down while runs are registered and cancelled: each is told to stop, once, for one reason.

use std::collections::HashSet;
use std::sync::Arc;

use loom::thread;
use tokkuri_core::procedure::Local;
use tokkuri_core::run::Stop;
use tokkuri_core::task::Command;

use crate::frame::{A, B, FIRST, Node, explore};

#[test]
fn a_run_that_is_registered_while_the_node_shuts_down_is_stopped() {
    let outcomes = explore(|| {
        let node = Node::idle(2);
        let other = thread::spawn({
            let node = Arc::clone(&node);
            move || run(&node, B)
        });
        let halt = thread::spawn({
            let node = Arc::clone(&node);
            move || node.registry.halt(Stop::Shutdown)
        });
        assert_eq!((run(&node, A), other.join().unwrap()), (Stop::Shutdown, Stop::Shutdown));
        halt.join().unwrap()
    });
    assert_eq!(outcomes, HashSet::from([0, 1, 2]), "registered before or after it");
}

#[test]
fn a_shutdown_and_a_cancel_are_one_stop() {
    let outcomes = explore(|| {
        let node = Node::running([A]);
        let client = thread::spawn({
            let node = Arc::clone(&node);
            move || assert!(node.write(A, Command::Cancel))
        });
        let halt = thread::spawn({
            let node = Arc::clone(&node);
            move || node.registry.halt(Stop::Shutdown)
        });
        let stop = node.stop(A, FIRST);
        client.join().unwrap();
        assert_eq!(halt.join().unwrap() == 1, stop == Stop::Shutdown);
        assert_eq!(node.registry.stop(A, FIRST), Some(stop), "the first reason stays");
        stop
    });
    assert_eq!(outcomes, HashSet::from([Stop::Cancelled, Stop::Shutdown]));
}

/// Creates and starts a task, and waits for its stop.
fn run(node: &Node, id: tokkuri_core::id::TaskId) -> Stop {
    node.registry.local(Local::Reserve { id, attempt: FIRST });
    assert!(node.registry.start(&node.create(id)));
    node.stop(id, FIRST)
}
