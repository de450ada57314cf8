//! An answer, a cancel, the run's end, the node's lost lease and the task's expiry race for one waiting run.
//!
//! Whichever comes first: who waits for the answer and who waits for the stop are both woken; what they see has happened;
//! of cancel and end the store takes one; the first reason to stop stays; after a stop nobody sees an answer.

use std::collections::HashSet;
use std::sync::Arc;

use loom::thread;
use tokkuri_core::run::Stop;
use tokkuri_core::task::{Command, Status};

use crate::frame::{A, FIRST, FOUR, Node, T0, complete, explore, reply};
use crate::payload::{Number, TTL_MS};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Answer,
    Cancel,
    End,
    LeaseLost,
    Expiry,
}
use Event::{Answer, Cancel, End, Expiry, LeaseLost};

impl Event {
    /// Lets it happen. Returns whether it was in time to change anything.
    fn happen(self, node: &Node) -> bool {
        match self {
            Answer => node.write(A, reply()),
            Cancel => node.write(A, Command::Cancel),
            End => {
                let ended = node.write(A, complete(FIRST));
                node.registry.release(A, FIRST);
                ended
            }
            LeaseLost => node.registry.halt(Stop::LeaseLost) == 1,
            Expiry => node.registry.clock(T0.after(TTL_MS)) == 1,
        }
    }
}

/// All events at once, against one who waits for the answer and, if `and_stop`, another who waits for the stop.
fn race<const N: usize>(events: [Event; N], and_stop: bool) -> HashSet<Result<Number, Stop>> {
    explore(move || {
        let node = Node::running([A]);
        let threads = events.map(|event| {
            let node = Arc::clone(&node);
            thread::spawn(move || event.happen(&node))
        });
        let stop = and_stop.then(|| {
            let node = Arc::clone(&node);
            thread::spawn(move || node.stop(A, FIRST))
        });
        let outcome = node.answer(A, FIRST);
        let stop = stop.map(|stop| stop.join().unwrap());
        let happened = threads.map(|thread| thread.join().unwrap());
        let did = |event| events.iter().zip(happened).any(|(it, happened)| *it == event && happened);

        match outcome {
            Ok(answer) => assert!(did(Answer) && answer == FOUR),
            Err(stop) => assert_seen(stop, &did, events.contains(&End)),
        }
        if let Some(stop) = stop {
            assert_seen(stop, &did, events.contains(&End));
        }
        let ends = [(Cancel, Status::Cancelled), (End, Status::Completed)].map(|(event, status)| {
            assert_eq!(did(event), node.row(A).status() == status, "{event:?}");
            did(event)
        });
        assert!(!(ends[0] && ends[1]), "two ends");
        assert!(ends[0] || ends[1] || !(events.contains(&Cancel) || events.contains(&End)), "no end");

        // Once the run has left the table it is lost, whatever it was before.
        let last = node.registry.stop(A, FIRST);
        if events.contains(&End) {
            assert_eq!(last, Some(Stop::Lost));
        } else {
            assert!([outcome.err(), stop].into_iter().flatten().all(|seen| last == Some(seen)), "{last:?}");
        }
        outcome
    })
}

fn assert_seen(stop: Stop, did: &dyn Fn(Event) -> bool, ends: bool) {
    match stop {
        Stop::Cancelled => assert!(did(Cancel)),
        Stop::LeaseLost => assert!(did(LeaseLost)),
        Stop::Expired => assert!(did(Expiry)),
        // Of the run's end, or of its having left the table.
        Stop::Lost => assert!(ends),
        Stop::Shutdown | Stop::Drain => panic!("nobody shut down"),
    }
}

#[test]
fn an_answer_and_a_cancel() {
    assert_eq!(race([Answer, Cancel], true), HashSet::from([Ok(FOUR), Err(Stop::Cancelled)]));
}

#[test]
fn an_answer_and_the_end() {
    assert_eq!(race([Answer, End], true), HashSet::from([Ok(FOUR), Err(Stop::Lost)]));
}

#[test]
fn an_answer_and_a_lost_lease() {
    assert_eq!(race([Answer, LeaseLost], true), HashSet::from([Ok(FOUR), Err(Stop::LeaseLost)]));
}

#[test]
fn an_answer_and_the_expiry() {
    assert_eq!(race([Answer, Expiry], true), HashSet::from([Ok(FOUR), Err(Stop::Expired)]));
}

#[test]
fn a_cancel_and_the_end() {
    assert_eq!(race([Cancel, End], true), HashSet::from([Err(Stop::Cancelled), Err(Stop::Lost)]));
}

#[test]
fn a_cancel_and_a_lost_lease() {
    assert_eq!(race([Cancel, LeaseLost], true), HashSet::from([Err(Stop::Cancelled), Err(Stop::LeaseLost)]));
}

#[test]
fn the_end_and_a_lost_lease() {
    assert_eq!(race([End, LeaseLost], true), HashSet::from([Err(Stop::Lost), Err(Stop::LeaseLost)]));
}

#[test]
fn an_answer_a_cancel_and_the_end() {
    let all = HashSet::from([Ok(FOUR), Err(Stop::Cancelled), Err(Stop::Lost)]);
    assert_eq!(race([Answer, Cancel, End], false), all);
}

#[test]
fn an_answer_a_cancel_and_a_lost_lease() {
    let all = HashSet::from([Ok(FOUR), Err(Stop::Cancelled), Err(Stop::LeaseLost)]);
    assert_eq!(race([Answer, Cancel, LeaseLost], false), all);
}

#[test]
fn an_answer_the_end_and_a_lost_lease() {
    let all = HashSet::from([Ok(FOUR), Err(Stop::Lost), Err(Stop::LeaseLost)]);
    assert_eq!(race([Answer, End, LeaseLost], false), all);
}

#[test]
fn a_cancel_the_end_and_a_lost_lease() {
    let all = HashSet::from([Err(Stop::Cancelled), Err(Stop::Lost), Err(Stop::LeaseLost)]);
    assert_eq!(race([Cancel, End, LeaseLost], false), all);
}
