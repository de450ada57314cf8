//! Progress is said and written while the run ends.
//!
//! The last thing said before the end stands at the end, whichever of its writes arrived; whoever writes progress is woken for
//! what is said and by the run's end.

use std::collections::HashSet;
use std::future::poll_fn;
use std::sync::Arc;

use loom::future::block_on;
use loom::thread;
use tokkuri_core::run::ProgressDue;
use tokkuri_core::task::{Command, Status};

use crate::frame::{A, FIRST, Node, T0, explore};
use crate::payload::Number;

#[test]
fn the_last_progress_stands_at_the_end() {
    let outcomes = explore(|| {
        let node = Node::running([A]);
        let writer = writer(&node, 0);
        node.registry.progress(A, FIRST, "1".into());
        node.registry.progress(A, FIRST, "2".into());
        assert!(end(&node));
        assert_eq!(node.row(A).status_message.as_deref(), Some("2"));
        writer.join().unwrap()
    });
    let written = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    assert_eq!(outcomes, HashSet::from([written(&[]), written(&["1"]), written(&["2"]), written(&["1", "2"])]));
}

#[test]
fn progress_whose_write_failed_stands_at_the_end() {
    let outcomes = explore(|| {
        let node = Node::running([A]);
        let writer = writer(&node, 1);
        node.registry.progress(A, FIRST, "1".into());
        assert!(end(&node));
        assert_eq!(node.row(A).status_message.as_deref(), Some("1"));
        writer.join().unwrap().len()
    });
    assert_eq!(outcomes, HashSet::from([0, 1]), "it is written again, or stands before the end");
}

#[test]
fn whoever_writes_progress_of_a_run_that_waits_is_woken_for_it_and_by_the_end() {
    let outcomes = explore(|| {
        let node = Node::running([A]);
        let writer = writer(&node, 0);
        node.registry.progress(A, FIRST, "1".into());
        let client = thread::spawn({
            let node = Arc::clone(&node);
            move || assert!(node.write(A, Command::Cancel))
        });
        node.stop(A, FIRST);
        assert!(!end(&node));
        client.join().unwrap();
        let row = node.row(A);
        assert_eq!(row.status(), Status::Cancelled);
        let written = writer.join().unwrap();
        assert_eq!(
            row.status_message.is_some(),
            !written.is_empty(),
            "what was written stays, and nothing comes later"
        );
        written.len()
    });
    assert_eq!(outcomes, HashSet::from([0, 1]));
}

#[test]
fn whoever_writes_progress_is_woken_for_what_is_said_and_after_the_write_of_another() {
    let outcomes = explore(|| {
        let node = Node::running([A]);
        let says = thread::spawn({
            let node = Arc::clone(&node);
            move || node.registry.progress(A, FIRST, "1".into())
        });
        let others = [(), ()].map(|()| {
            let node = Arc::clone(&node);
            thread::spawn(move || {
                let text = next_write(&node);
                // The store is away: the text is due again, for whoever waits.
                node.registry.progress_written(A, FIRST);
                text
            })
        });
        says.join().unwrap();
        others.map(|other| other.join().unwrap())
    });
    assert_eq!(outcomes, HashSet::from([["1".to_owned(), "1".to_owned()]]));
}

/// Waits until there is something to write.
fn next_write(node: &Node) -> String {
    let mut waiter = node.registry.waiter(A, FIRST);
    let mut now = T0;
    loop {
        match block_on(poll_fn(|cx| waiter.poll_progress(now, cx))) {
            ProgressDue::Write(message) => return message.to_string(),
            ProgressDue::At(moment) => now = moment,
            ProgressDue::Nothing => panic!("the run is still there"),
        }
    }
}

/// Writes progress until the run is over, as a node does; the store is away for the first `away` writes. Returns what was stored.
fn writer(node: &Arc<Node>, mut away: usize) -> thread::JoinHandle<Vec<String>> {
    let node = Arc::clone(node);
    thread::spawn(move || {
        let mut waiter = node.registry.waiter(A, FIRST);
        let (mut now, mut written) = (T0, Vec::new());
        loop {
            match block_on(poll_fn(|cx| waiter.poll_progress(now, cx))) {
                ProgressDue::Write(_) if away > 0 => {
                    away -= 1;
                    node.registry.progress_written(A, FIRST);
                }
                ProgressDue::Write(message) => {
                    if node.write(A, Command::Progress { by: FIRST, message: message.clone() }) {
                        written.push(message.to_string());
                    }
                    node.registry.progress_written(A, FIRST);
                }
                ProgressDue::At(moment) => now = moment,
                ProgressDue::Nothing => return written,
            }
        }
    })
}

/// The run returns. Whether the store took its result.
fn end(node: &Node) -> bool {
    let message = node.registry.finish(A, FIRST);
    let ended = node.write(A, Command::Complete { by: FIRST, result: Number(9), message });
    node.registry.release(A, FIRST);
    ended
}
