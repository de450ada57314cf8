//! A waiter is dropped at any point, also while it is being woken: it takes nobody's wake-up with it, and leaves no waker behind.

use std::collections::HashSet;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

use loom::thread;
use tokkuri_core::run::Stop;
use tokkuri_core::task::Command;

use crate::frame::{A, FIRST, FOUR, Node, complete, explore, key, reply};

struct Nobody;

impl Wake for Nobody {
    fn wake(self: Arc<Self>) {}
}

/// Polls once and is dropped, while the command is carried out and another waits. Returns whether it had to wait, and what
/// the other one got.
fn drop_during(command: Command<crate::payload::Number>) -> HashSet<(bool, Result<crate::payload::Number, Stop>)> {
    explore(move || {
        let node = Node::running([A]);
        let nobody = Arc::new(Nobody);
        let dropped = thread::spawn({
            let (node, nobody) = (Arc::clone(&node), Arc::clone(&nobody));
            move || {
                let waker = Waker::from(nobody);
                node.registry.waiter(A, FIRST).poll_answer(&key(), &mut Context::from_waker(&waker)).is_pending()
            }
        });
        let client = thread::spawn({
            let (node, command) = (Arc::clone(&node), command.clone());
            move || assert!(node.write(A, command))
        });
        let answer = node.answer(A, FIRST);
        let waited = dropped.join().unwrap();
        client.join().unwrap();
        assert_eq!(Arc::strong_count(&nobody), 1, "a waker was left behind");
        (waited, answer)
    })
}

#[test]
fn a_waiter_dropped_around_an_answer() {
    assert_eq!(drop_during(reply()), HashSet::from([(true, Ok(FOUR)), (false, Ok(FOUR))]));
}

#[test]
fn a_waiter_dropped_around_an_end() {
    let lost = Err(Stop::Lost);
    assert_eq!(drop_during(complete(FIRST)), HashSet::from([(true, lost), (false, lost)]));
}

#[test]
fn a_waiter_dropped_before_anything_happens_leaves_no_waker_behind() {
    let outcomes = explore(|| {
        let node = Node::running([A]);
        let nobody = Arc::new(Nobody);
        let threads = [(), ()].map(|()| {
            let (node, waker) = (Arc::clone(&node), Waker::from(Arc::clone(&nobody)));
            thread::spawn(move || {
                let mut waiter = node.registry.waiter(A, FIRST);
                assert!(waiter.poll_stop(&mut Context::from_waker(&waker)).is_pending());
            })
        });
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        Arc::strong_count(&nobody)
    });
    assert_eq!(outcomes, HashSet::from([1]));
}
