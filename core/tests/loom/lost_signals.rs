//! Every signal is lost, and only the node's look at the store brings what was stored. Looks may coincide with each other and with
//! the signal after all; a look that comes too early does not make the next one miss.

use std::collections::HashSet;
use std::sync::Arc;

use loom::thread;
use tokkuri_core::run::Stop;
use tokkuri_core::task::Command;

use crate::frame::{A, FIRST, FOUR, Node, explore, reply};
use crate::payload::Number;

/// The command is stored and nobody is told; the node looks once at any time and once more afterwards.
fn lost(command: Command<Number>) -> HashSet<(Result<Number, Stop>, bool)> {
    explore(move || {
        let node = Node::running([A]);
        let client = thread::spawn({
            let (node, command) = (Arc::clone(&node), command.clone());
            move || assert!(node.commit(A, command).1)
        });
        let looks = thread::spawn({
            let node = Arc::clone(&node);
            move || {
                node.look(A);
                let early = !node.registry.is_behind(A, tokkuri_core::id::Revision::FIRST.next().next());
                client.join().unwrap();
                node.look(A);
                early
            }
        });
        let answer = node.answer(A, FIRST);
        (answer, looks.join().unwrap())
    })
}

#[test]
fn an_answer_whose_signal_is_lost_is_found() {
    assert_eq!(lost(reply()), HashSet::from([(Ok(FOUR), true), (Ok(FOUR), false)]));
}

#[test]
fn a_cancel_whose_signal_is_lost_is_found() {
    let cancelled = Err(Stop::Cancelled);
    assert_eq!(lost(Command::Cancel), HashSet::from([(cancelled, true), (cancelled, false)]));
}

#[test]
fn a_signal_that_comes_twice_is_as_good_as_one() {
    let outcomes = explore(|| {
        let node = Node::running([A]);
        let client = thread::spawn({
            let node = Arc::clone(&node);
            move || {
                let (task, changed) = node.commit(A, reply());
                assert!(changed);
                node.signal(&task);
                node.signal(&task);
            }
        });
        let look = thread::spawn({
            let node = Arc::clone(&node);
            move || node.look(A)
        });
        let answer = node.answer(A, FIRST);
        client.join().unwrap();
        look.join().unwrap();
        assert!(!node.registry.is_behind(A, node.row(A).revision));
        answer
    });
    assert_eq!(outcomes, HashSet::from([Ok(FOUR)]));
}
