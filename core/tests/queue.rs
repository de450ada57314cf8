//! The queue of runs, whatever comes and goes: checked against a log of what happened.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use tokkuri_core::queue::{Admitted, Queue};

type Owner = u8;
type Run = u16;

#[derive(Clone, Debug)]
enum Move {
    Come { run: Run, owner: Owner },
    Go(Run),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        (0..24u16, 0..4u8).prop_map(|(run, owner)| Move::Come { run, owner }),
        (0..24u16).prop_map(Move::Go),
    ];
    proptest::collection::vec(one, 0..120)
}

/// What has happened, told by the queue's answers alone.
#[derive(Default)]
struct Log {
    running: BTreeSet<Run>,
    /// Waiting runs in the order in which they came.
    waiting: Vec<(Run, Owner)>,
    /// For each owner that waits, how often each other owner was served since it began to.
    served: BTreeMap<Owner, BTreeMap<Owner, u32>>,
}

impl Log {
    fn start(&mut self, run: Run) {
        let at =
            self.waiting.iter().position(|(waiting, _)| *waiting == run).expect("only a run that waits is started");
        let (_, owner) = self.waiting.remove(at);
        let earlier = self.waiting[..at].iter().any(|(_, other)| *other == owner);
        assert!(!earlier, "the runs of one owner start in the order in which they came");
        self.running.insert(run);
        self.served.remove(&owner);
        for (waiting, served) in &mut self.served {
            let times = served.entry(owner).or_default();
            *times += 1;
            assert!(*times <= 1, "owner {owner} is served twice while {waiting} waits");
        }
        self.wait(owner);
    }

    /// The owner's wait begins, if it has something that waits and is not waiting yet.
    fn wait(&mut self, owner: Owner) {
        if self.waiting.iter().any(|(_, other)| *other == owner) {
            self.served.entry(owner).or_default();
        } else {
            self.served.remove(&owner);
        }
    }
}

proptest! {
    #[test]
    fn nobody_starves_nothing_idles_and_the_limit_holds(limit in 1..5usize, moves in moves()) {
        let mut queue = Queue::new(limit);
        let mut log = Log::default();
        let mut owners = BTreeMap::new();
        for it in moves {
            match it {
                Move::Come { run, owner } => {
                    // A run has one owner for as long as it is here.
                    let here = log.running.contains(&run) || log.waiting.iter().any(|(waiting, _)| *waiting == run);
                    let owner = if here { owners[&run] } else { owner };
                    owners.insert(run, owner);
                    match queue.admit(run, owner) {
                        Admitted::Starts => { log.running.insert(run); }
                        Admitted::Waits if here => {}
                        Admitted::Waits => {
                            log.waiting.push((run, owner));
                            log.wait(owner);
                        }
                    }
                }
                Move::Go(run) => {
                    let ran = log.running.remove(&run);
                    let left = log.waiting.iter().find(|(waiting, _)| *waiting == run).map(|(_, owner)| *owner);
                    log.waiting.retain(|(waiting, _)| *waiting != run);
                    if let Some(owner) = left {
                        log.wait(owner);
                    }
                    if let Some(next) = queue.leave(&run) {
                        prop_assert!(ran, "only an end frees a place");
                        log.start(next);
                    }
                }
            }
            prop_assert!(log.running.len() <= limit);
            prop_assert!(log.waiting.is_empty() || log.running.len() == limit, "nobody waits while a place is free");
            prop_assert_eq!((queue.running(), queue.waiting()), (log.running.len(), log.waiting.len()));
        }
        // Whatever it went through, an empty queue is as good as new.
        let all: Vec<Run> = log.waiting.iter().map(|(run, _)| *run).chain(log.running).collect();
        for run in all {
            queue.leave(&run);
        }
        prop_assert_eq!(queue, Queue::new(limit));
    }
}
