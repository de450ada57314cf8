//! A newer attempt takes the place of an older one that still waits, while the owner cancels.
//!
//! The older one is woken and lost, and its end does not take the newer one along. If the take-over came to be stored, the newer
//! one runs and hears of the cancel; if the cancel came first, nothing is left of the place.

use std::collections::HashSet;
use std::sync::Arc;

use loom::thread;
use tokkuri_core::id::NodeId;
use tokkuri_core::procedure::Local;
use tokkuri_core::run::Stop;
use tokkuri_core::task::{Command, Status};

use crate::frame::{A, FIRST, FOUR, NODE, Node, explore, reply};

#[test]
fn an_older_attempt_that_waits_is_lost_and_the_newer_hears_of_the_cancel() {
    let outcomes = explore(|| {
        let node = Node::running([A]);
        let client = thread::spawn({
            let node = Arc::clone(&node);
            move || assert!(node.write(A, Command::Cancel))
        });
        let sweep = thread::spawn({
            let node = Arc::clone(&node);
            move || take_over(&node).then(|| node.stop(A, FIRST.next()))
        });
        let older = node.answer(A, FIRST);
        node.registry.release(A, FIRST);
        client.join().unwrap();
        let newer = sweep.join().unwrap();

        assert_eq!(node.row(A).status(), Status::Cancelled);
        assert_eq!(node.registry.stop(A, FIRST), Some(Stop::Lost));
        match newer {
            Some(stop) => {
                assert_eq!(stop, Stop::Cancelled);
                assert_eq!(node.registry.runs(), [(A, FIRST.next())]);
            }
            None => assert!(node.registry.is_empty(), "{:?}", node.registry.runs()),
        }
        (older, newer)
    });
    let (cancelled, lost) = (Err(Stop::Cancelled), Err(Stop::Lost));
    let taken_over = Some(Stop::Cancelled);
    assert_eq!(outcomes, HashSet::from([(cancelled, None), (lost, None), (lost, taken_over)]));
}

#[test]
fn an_answer_reaches_the_newer_attempt_whoever_was_there_when_it_came() {
    let outcomes = explore(|| {
        let node = Node::running([A]);
        let client = thread::spawn({
            let node = Arc::clone(&node);
            move || assert!(node.write(A, reply()))
        });
        let sweep = thread::spawn({
            let node = Arc::clone(&node);
            move || {
                assert!(take_over(&node));
                node.answer(A, FIRST.next())
            }
        });
        let older = node.answer(A, FIRST);
        client.join().unwrap();
        assert_eq!(sweep.join().unwrap(), Ok(FOUR));
        older
    });
    assert_eq!(outcomes, HashSet::from([Ok(FOUR), Err(Stop::Lost)]));
}

#[test]
fn an_attempt_that_another_node_took_over_is_lost() {
    let outcomes = explore(|| {
        let node = Node::running([A]);
        let client = thread::spawn({
            let node = Arc::clone(&node);
            move || assert!(node.write(A, reply()))
        });
        let elsewhere = thread::spawn({
            let node = Arc::clone(&node);
            move || {
                let lose = Command::Lose { attempt: FIRST, heir: Some(NodeId(2)), why: "the node was lost".into() };
                assert!(node.write(A, lose));
            }
        });
        let answer = node.answer(A, FIRST);
        client.join().unwrap();
        elsewhere.join().unwrap();
        assert_eq!(node.stop(A, FIRST), Stop::Lost);
        answer
    });
    assert_eq!(outcomes, HashSet::from([Ok(FOUR), Err(Stop::Lost)]));
}

/// What a sweep does about a task whose node was lost. Returns whether its run is to be spawned.
fn take_over(node: &Node) -> bool {
    let attempt = FIRST.next();
    node.registry.local(Local::Reserve { id: A, attempt });
    let lose = Command::Lose { attempt: FIRST, heir: Some(NODE), why: "the node was lost".into() };
    let (task, taken) = node.commit(A, lose);
    if !taken {
        node.registry.local(Local::Abandon { id: A, attempt });
    }
    node.signal(&task);
    taken && node.registry.start(&task)
}
