use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::access::Scopes;
use crate::task::samples::{Number, T0, answer, ask, owner, task};
use crate::task::{Command, Status};

const ME: FollowerId = FollowerId(1);

fn caller(principal: &str) -> Arc<Caller> {
    Arc::new(Caller { owner: owner(principal), scopes: Scopes::Unrestricted })
}

fn seen(task: &Task<Number>) -> Seen<Number> {
    Seen::Task(Arc::new(task.clone()))
}

fn apply(task: &mut Task<Number>, command: Command<Number>) -> Seen<Number> {
    task.apply(T0, command, &mut Vec::new()).unwrap();
    seen(task)
}

fn table(task: &Task<Number>) -> Table<Number> {
    let mut table = Table::default();
    table.join(task.id, ME, &caller("a"));
    table
}

fn told(owed: Owed<Number>) -> Option<Status> {
    match owed {
        Owed::Snapshot(task) => Some(task.status()),
        Owed::Nothing | Owed::Over => None,
    }
}

#[test]
fn whoever_joins_is_told_the_current_state_first() {
    let mut task = task();
    let mut table = table(&task);
    assert_eq!(table.next(task.id, ME), Owed::Nothing);
    let read = seen(&task);
    let changed = apply(&mut task, ask("a"));
    // The change overtakes the reading that the join is followed by.
    assert!(table.observe(task.id, &changed));
    assert!(!table.observe(task.id, &read));
    assert_eq!(told(table.next(task.id, ME)), Some(Status::InputRequired));
    assert_eq!(table.next(task.id, ME), Owed::Nothing);
}

#[test]
fn whoever_does_not_read_is_owed_one_snapshot_the_latest() {
    let mut task = task();
    let mut table = table(&task);
    for message in ["1", "2", "3"] {
        let progress = Command::Progress { by: task.attempt, message: message.into() };
        let seen = apply(&mut task, progress);
        table.observe(task.id, &seen);
    }
    let Owed::Snapshot(snapshot) = table.next(task.id, ME) else { panic!("it is owed one") };
    assert_eq!(snapshot.revision, task.revision);
    assert_eq!(table.next(task.id, ME), Owed::Nothing);
}

#[test]
fn nothing_follows_the_terminal_snapshot() {
    let mut task = task();
    let mut table = table(&task);
    let before = seen(&task);
    let after = apply(&mut task, Command::Cancel);
    table.observe(task.id, &after);
    table.observe(task.id, &before);
    assert_eq!(told(table.next(task.id, ME)), Some(Status::Cancelled));
    assert_eq!(table.next(task.id, ME), Owed::Over);
    assert!(!table.observe(task.id, &before));
    table.observe(task.id, &Seen::Gone);
    assert_eq!(table.next(task.id, ME), Owed::Over);
}

#[test]
fn the_removal_of_a_live_task_is_told_to_nobody() {
    let task = task();
    let mut table = table(&task);
    table.observe(task.id, &seen(&task));
    assert!(table.observe(task.id, &Seen::Gone));
    assert!(!table.observe(task.id, &Seen::Gone), "once");
    assert_eq!(table.next(task.id, ME), Owed::Over);
}

#[test]
fn an_end_that_raised_the_time_to_live_is_told_although_it_is_read_after_the_old_one() {
    let mut task = task();
    let old = task.expires();
    let mut table = table(&task);
    table.observe(task.id, &seen(&task));
    assert_eq!(told(table.next(task.id, ME)), Some(Status::Working));
    task.apply(old.before(1), Command::Cancel, &mut Vec::new()).unwrap();
    assert!(task.is_visible(old));
    // The node has the time, and not yet the reading.
    assert_eq!(table.open(old, |_| true).collect::<Vec<_>>(), [task.id], "the store is asked");
    assert_eq!(table.next(task.id, ME), Owed::Nothing);
    table.observe(task.id, &seen(&task));
    assert_eq!(told(table.next(task.id, ME)), Some(Status::Cancelled));
}

#[test]
fn the_store_is_asked_of_what_may_change_unseen() {
    let mut task = task();
    let mut table = table(&task);
    let open = |table: &Table<Number>, now, fed| table.open(now, |_| fed).count();
    assert_eq!((open(&table, T0, false), open(&table, T0, true)), (1, 0), "nothing is known of it");
    table.observe(task.id, &seen(&task));
    assert_eq!((open(&table, T0, false), open(&table, T0, true)), (1, 0), "it lives");
    let over = task.expires();
    assert_eq!((open(&table, over, false), open(&table, over, true)), (1, 1), "its time is over");
    let mut gone = table.clone();
    gone.observe(task.id, &Seen::Gone);
    assert_eq!((open(&gone, over, false), open(&gone, over, true)), (0, 0), "it is gone");
    let ended = apply(&mut task, Command::Cancel);
    table.observe(task.id, &ended);
    assert_eq!((open(&table, over, false), open(&table, over, true)), (0, 0), "it has ended");
}

#[test]
fn a_terminal_snapshot_that_was_not_taken_in_time_is_still_owed() {
    let mut task = task();
    let mut table = table(&task);
    let ended = apply(&mut task, Command::Cancel);
    table.observe(task.id, &ended);
    table.observe(task.id, &Seen::Gone);
    assert_eq!(told(table.next(task.id, ME)), Some(Status::Cancelled));
    assert_eq!(table.next(task.id, ME), Owed::Over);
}

#[test]
fn a_reading_from_before_the_task_was_stored_ends_nothing() {
    let task = task();
    let mut table = table(&task);
    assert!(!table.observe(task.id, &Seen::Gone));
    table.observe(task.id, &seen(&task));
    assert_eq!(told(table.next(task.id, ME)), Some(Status::Working));
}

#[test]
fn access_is_checked_at_delivery() {
    let task = task();
    let mut table = table(&task);
    let stranger = FollowerId(2);
    table.join(task.id, stranger, &caller("b"));
    table.observe(task.id, &seen(&task));
    assert_eq!(table.next(task.id, stranger), Owed::Over);
    assert_eq!(told(table.next(task.id, ME)), Some(Status::Working));
}

#[test]
fn the_last_one_to_leave_takes_the_task_out_of_the_table() {
    let task = task();
    let mut table = table(&task);
    table.join(task.id, FollowerId(2), &caller("a"));
    table.leave(task.id, ME);
    assert_eq!(table.next(task.id, ME), Owed::Over);
    assert!(table.is_behind(task.id, Revision::FIRST));
    table.leave(task.id, FollowerId(2));
    assert_eq!(table, Table::default());
}

#[derive(Clone, Copy, Debug)]
enum Move {
    Join(u8),
    Leave(u8),
    /// This state of the history is read, or read again.
    Observe(usize),
    Gone,
    Next(u8),
}

fn moves() -> impl Strategy<Value = Move> {
    prop_oneof![
        1 => (0..3_u8).prop_map(Move::Join),
        1 => (0..3_u8).prop_map(Move::Leave),
        6 => (0..6_usize).prop_map(Move::Observe),
        1 => Just(Move::Gone),
        6 => (0..3_u8).prop_map(Move::Next),
    ]
}

/// Every state of one task that asks, is answered, asks again and is cancelled.
fn history() -> Vec<Arc<Task<Number>>> {
    let mut task = task();
    let mut states = vec![Arc::new(task.clone())];
    let commands = [ask("a"), answer([("a", Number(1))]), ask("b"), answer([("b", Number(1))]), Command::Cancel];
    for command in commands {
        task.apply(T0, command, &mut Vec::new()).unwrap();
        states.push(Arc::new(task.clone()));
    }
    states
}

proptest! {
    #[test]
    fn readings_in_any_order_reach_followers_forwards_and_to_the_end(moves in prop::collection::vec(moves(), 0..60)) {
        let states = history();
        let id = states[0].id;
        let mut table = Table::default();
        // What each follower was told last since it joined; `Some(None)` if nothing yet.
        let mut told: BTreeMap<u8, Option<Revision>> = BTreeMap::new();
        let mut newest: Option<usize> = None;
        let mut gone = false;
        for step in moves {
            match step {
                Move::Join(who) => {
                    table.join(id, FollowerId(who.into()), &caller("a"));
                    told.entry(who).or_insert(None);
                }
                Move::Leave(who) => {
                    table.leave(id, FollowerId(who.into()));
                    told.remove(&who);
                    if told.is_empty() {
                        (newest, gone) = (None, false);
                    }
                }
                Move::Observe(state) => {
                    table.observe(id, &Seen::Task(Arc::clone(&states[state])));
                    if !told.is_empty() && !gone {
                        newest = newest.max(Some(state));
                    }
                }
                Move::Gone => {
                    table.observe(id, &Seen::Gone);
                    gone |= !told.is_empty() && newest.is_some();
                }
                Move::Next(who) => {
                    let owed = table.next(id, FollowerId(who.into()));
                    let Some(last) = told.get_mut(&who) else {
                        prop_assert_eq!(owed, Owed::Over);
                        continue;
                    };
                    let newest = newest.map(|at| &states[at]);
                    let fresh = newest.filter(|task| last.is_none_or(|last| last < task.revision));
                    let fresh = fresh.filter(|task| !gone || task.live().is_none());
                    match owed {
                        Owed::Snapshot(task) => {
                            prop_assert_eq!(Some(&task), fresh, "the latest and nothing else");
                            *last = Some(task.revision);
                        }
                        Owed::Nothing => {
                            prop_assert!(fresh.is_none() && !gone);
                            prop_assert!(newest.is_none_or(|task| task.live().is_some()));
                        }
                        Owed::Over => {
                            prop_assert!(fresh.is_none());
                            prop_assert!(gone || newest.is_some_and(|task| task.live().is_none()));
                        }
                    }
                }
            }
        }
        if told.is_empty() {
            prop_assert!(table.is_empty(), "nobody follows, nothing is kept");
        }
    }
}
