use super::*;
use crate::store::Shelf;
use crate::task::samples::{Number, T0, draft, restartable};
use crate::task::{Draft, Phase};
use crate::time::Millis;

fn stored() -> (Shelf<Number>, Attempt, TaskId) {
    let draft = Draft { restartable: true, ..draft(1) };
    let id = draft.id;
    let mut shelf = Shelf::default();
    shelf.carry_out(T0, Request::Insert { draft: alloc::boxed::Box::new(draft), limit: None });
    (shelf, Attempt::FIRST, id)
}

/// What the store says when its answer was lost on the way.
fn unsure(now: Millis) -> Input<Number> {
    let outcome = Outcome::Unavailable(Unavailable { why: "lost".into(), maybe_done: true });
    Input::Store(Answer { now, outcome })
}

/// Drives a write to its end. The answer to its first commit is lost; the commit is carried out only if `carried_out`.
fn with_a_lost_answer(
    shelf: &mut Shelf<Number>,
    mut write: Write<Number>,
    carried_out: bool,
) -> (Written<Number>, Vec<After<Number>>, Vec<Local>) {
    let (mut input, mut lost, mut locals) = (Input::Begin, false, Vec::new());
    loop {
        input = match write.step(input) {
            Step::Store(request @ Request::Commit { .. }) if !lost => {
                lost = true;
                if carried_out {
                    shelf.carry_out(T0, request);
                }
                unsure(T0)
            }
            Step::Store(request) => Input::Store(shelf.carry_out(T0, request)),
            Step::Pause { .. } => Input::Paused,
            Step::Host(local) => {
                locals.push(local);
                Input::Host
            }
            Step::Done { reply, after } => return (reply, after, locals),
        }
    }
}

#[test]
fn a_take_over_whose_answer_was_lost_starts_its_run_all_the_same() {
    for carried_out in [true, false] {
        let (mut shelf, attempt, id) = stored();
        let heir = NodeId(2);
        let lose = Write::lose(id, attempt, Some(heir), "lost".into());
        let (reply, after, locals) = with_a_lost_answer(&mut shelf, lose, carried_out);
        assert!(matches!(reply, Written::Done(task) if (task.node, task.attempt) == (heir, attempt.next())));
        let start = Effect::Start { node: heir, attempt: attempt.next() };
        assert!(after[0].effects.contains(&start), "{after:?}");
        let reserve = Local::Reserve { id, attempt: attempt.next() };
        assert_eq!(locals.last(), Some(&reserve), "the place is kept, or reserved again");
    }
}

#[test]
fn an_end_whose_answer_was_lost_is_known_for_its_own() {
    for carried_out in [true, false] {
        let (mut shelf, by, id) = stored();
        let end = Write::end(id, Command::Complete { by, result: Number(9), message: None });
        let (reply, after, _) = with_a_lost_answer(&mut shelf, end, carried_out);
        assert!(matches!(reply, Written::Done(task) if task.phase == Phase::Completed(Number(9))));
        assert_eq!(after[0].effects, [Effect::Publish]);
    }
}

#[test]
fn an_operators_cancel_asks_for_no_owner_and_does_what_the_owners_would() {
    let (mut shelf, node, id) = {
        let (shelf, _, id) = stored();
        (shelf, draft(1).node, id)
    };
    let mut drive = |mut write: Write<Number>| {
        let mut input = Input::Begin;
        loop {
            input = match write.step(input) {
                Step::Store(request) => Input::Store(shelf.carry_out(T0, request)),
                Step::Pause { .. } => Input::Paused,
                Step::Host(_) => Input::Host,
                Step::Done { reply, after } => return (reply, after),
            }
        }
    };
    let (reply, after) = drive(Write::cancel_by_operator(id));
    assert!(matches!(reply, Written::Done(task) if task.phase == Phase::Cancelled));
    assert_eq!(after[0].effects, [Effect::Publish, Effect::Signal { node, attempt: Attempt::FIRST }]);
    let (reply, after) = drive(Write::cancel_by_operator(id));
    assert!(matches!(reply, Written::Done(task) if task.phase == Phase::Cancelled), "acknowledged again");
    assert!(after.iter().all(|after| after.effects.is_empty()));
    let (reply, _) = drive(Write::cancel_by_operator(TaskId::from_bytes([9; 18])));
    assert_eq!(reply, Written::Absent);
}

#[test]
fn a_take_over_that_was_not_stored_gives_its_place_back() {
    let (mut shelf, attempt, id) = stored();
    let heir = Some(NodeId(2));
    let mut write = Write::lose(id, attempt, heir, "lost".into());
    let Step::Store(load) = write.step(Input::Begin) else { panic!("it loads") };
    let Step::Host(Local::Reserve { .. }) = write.step(Input::Store(shelf.carry_out(T0, load))) else {
        panic!("it reserves");
    };
    // Another node is faster.
    let mut other = restartable();
    other.apply(T0, Command::Lose { attempt, heir: Some(NodeId(3)), why: "lost".into() }, &mut Vec::new()).unwrap();
    let expected = crate::id::Revision::FIRST;
    shelf.carry_out(T0, Request::Commit { expected, task: Arc::new(other) });
    let Step::Store(commit) = write.step(Input::Host) else { panic!("it commits") };
    let conflict = shelf.carry_out(T0, commit);
    assert_eq!(write.step(Input::Store(conflict)), Step::Host(Local::Abandon { id, attempt: attempt.next() }));
    let Step::Store(load) = write.step(Input::Host) else { panic!("it loads again") };
    let last = write.step(Input::Store(shelf.carry_out(T0, load)));
    assert!(matches!(last, Step::Done { reply: Written::Rejected(Rejected::StaleAttempt, _), .. }));
}
