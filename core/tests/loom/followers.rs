//! A follower of two tasks reads while their states arrive through several doors, in any order, and they are removed.
//!
//! It sees each task's states in their order, misses some perhaps but never the last, and its stream then ends: it does not wait
//! for what cannot come.

use std::collections::HashSet;
use std::future::poll_fn;
use std::sync::Arc;

use loom::future::block_on;
use loom::thread;
use tokkuri_core::id::{Revision, TaskId};
use tokkuri_core::procedure::Seen;
use tokkuri_core::signal::Followers;
use tokkuri_core::task::Command;

use crate::frame::{A, B, FIRST, Node, complete, explore, reply};
use crate::payload::{Number, caller};

#[test]
fn a_follower_misses_the_end_of_no_task() {
    let outcomes = explore(|| {
        let node = Node::running([A, B]);
        let (answered, _) = node.commit(A, reply());
        let (completed, _) = node.commit(A, complete(FIRST));
        let (cancelled, _) = node.commit(B, Command::Cancel);
        let followers = Arc::new(Followers::new(2));
        let mut subscription = followers.follow(&Arc::new(caller("somebody")), vec![A, B]);
        let doors = [vec![answered], vec![completed, cancelled]].map(|readings| {
            let followers = Arc::clone(&followers);
            thread::spawn(move || {
                for reading in readings {
                    followers.observe(reading.id, &Seen::Task(reading));
                }
            })
        });
        let mut heard: Vec<(TaskId, Revision)> = Vec::new();
        while let Some(task) = block_on(poll_fn(|cx| subscription.poll_next(cx))) {
            let earlier = heard.iter().filter(|(id, _)| *id == task.id);
            assert!(earlier.clone().all(|(_, revision)| *revision < task.revision), "{heard:?}, then {task:?}");
            heard.push((task.id, task.revision));
        }
        for id in [A, B] {
            let last = heard.iter().filter(|(it, _)| *it == id).map(|(_, revision)| *revision).max();
            assert_eq!(last, Some(node.row(id).revision), "the last state of {id}");
        }
        doors.into_iter().for_each(|door| door.join().unwrap());
        assert!(followers.is_empty());
        heard.len()
    });
    assert_eq!(outcomes, HashSet::from([2, 3]), "the answer's state is heard of, or skipped");
}

#[test]
fn a_follower_of_a_task_that_is_removed_waits_no_more() {
    let outcomes = explore(|| {
        let node = Node::running([A]);
        let before = node.row(A);
        let followers = Arc::new(Followers::<Number>::new(1));
        let mut subscription = followers.follow(&Arc::new(caller("somebody")), vec![A]);
        followers.observe(A, &Seen::Task(before));
        let door = thread::spawn({
            let (followers, (answered, _)) = (Arc::clone(&followers), node.commit(A, reply()));
            move || followers.observe(A, &Seen::Task(answered))
        });
        let removal = thread::spawn({
            let followers = Arc::clone(&followers);
            move || followers.observe(A, &Seen::Gone)
        });
        let mut heard = 0;
        while block_on(poll_fn(|cx| subscription.poll_next(cx))).is_some() {
            heard += 1;
        }
        removal.join().unwrap();
        let news = door.join().unwrap();
        assert!(heard <= 1 + usize::from(news));
        heard
    });
    assert_eq!(outcomes, HashSet::from([0, 1, 2]));
}

#[test]
fn a_follower_that_goes_leaves_nothing_behind() {
    let outcomes = explore(|| {
        let node = Node::running([A]);
        let (answered, _) = node.commit(A, reply());
        let followers = Arc::new(Followers::<Number>::new(1));
        let mut stays = followers.follow(&Arc::new(caller("somebody")), vec![A]);
        let mut goes = followers.follow(&Arc::new(caller("somebody")), vec![A]);
        let door = thread::spawn({
            let followers = Arc::clone(&followers);
            move || assert!(followers.observe(A, &Seen::Task(answered)))
        });
        let going = thread::spawn(move || {
            let now = block_on(poll_fn(|cx| std::task::Poll::Ready(goes.poll_next(cx).is_ready())));
            drop(goes);
            now
        });
        assert!(block_on(poll_fn(|cx| stays.poll_next(cx))).is_some());
        drop(stays);
        door.join().unwrap();
        let heard = going.join().unwrap();
        assert!(followers.is_empty());
        heard
    });
    assert_eq!(outcomes, HashSet::from([true, false]));
}
