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
    write: Write<Number>,
    carried_out: bool,
) -> (Written<Number>, Vec<After<Number>>, Vec<Local>) {
    with_a_lost_answer_and_then(shelf, write, carried_out, &[])
}

/// The same, and somebody else changes the task before the write reads it again.
fn with_a_lost_answer_and_then(
    shelf: &mut Shelf<Number>,
    mut write: Write<Number>,
    carried_out: bool,
    others: &[Command<Number>],
) -> (Written<Number>, Vec<After<Number>>, Vec<Local>) {
    let id = write.id;
    let (mut input, mut lost, mut locals) = (Input::Begin, false, Vec::new());
    loop {
        input = match write.step(input) {
            Step::Store(request @ Request::Commit { .. }) if !lost => {
                lost = true;
                if carried_out {
                    shelf.carry_out(T0, request);
                }
                others.iter().for_each(|command| change(shelf, id, command.clone()));
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

/// A change by somebody else.
fn change(shelf: &mut Shelf<Number>, id: TaskId, command: Command<Number>) {
    let mut task = Task::clone(shelf.row(T0, id).unwrap());
    let expected = task.revision;
    task.apply(T0, command, &mut Vec::new()).unwrap();
    let commit = shelf.carry_out(T0, Request::Commit { expected, task: Arc::new(task) });
    assert_eq!(commit.outcome, Outcome::Committed);
}

#[test]
fn a_hand_over_whose_answer_was_lost_cannot_tell_whether_it_was_refused_once_the_task_was_changed() {
    let lose = |attempt| Command::Lose { attempt, heir: Some(NodeId(2)), why: "lost".into() };
    for (carried_out, others, refusal) in [
        (true, [Command::Cancel], Rejected::Ended),
        (false, [Command::Cancel], Rejected::Ended),
        (true, [lose(Attempt::FIRST.next())], Rejected::StaleAttempt),
        (false, [lose(Attempt::FIRST)], Rejected::StaleAttempt),
    ] {
        let (mut shelf, by, id) = stored();
        let hand_over = Write::end(id, Command::HandOver { by, began: true });
        let (reply, after, _) = with_a_lost_answer_and_then(&mut shelf, hand_over, carried_out, &others);
        let task = Arc::clone(shelf.row(T0, id).unwrap());
        assert_eq!(reply, Written::Rejected { why: refusal, task: Arc::clone(&task), maybe_done: true });
        assert_eq!(after, [After { id, seen: Seen::Task(task), effects: Vec::new() }], "the run learns of it");
    }
}

#[test]
fn a_question_whose_answer_was_lost_is_asked_if_it_is_there_and_refused_with_a_doubt_if_nobody_can_tell() {
    let ask = |by| Write::question(draft(1).id, Command::Ask { by, key: "a".into(), request: Number(1) });
    let answer = Command::Answer { answers: [("a".into(), Number(2))].into() };
    let (mut shelf, by, _) = stored();
    let (reply, ..) = with_a_lost_answer_and_then(&mut shelf, ask(by), true, core::slice::from_ref(&answer));
    let Written::Done(task) = reply else { panic!("it was answered by then: {reply:?}") };
    assert_eq!(task.live().unwrap().questions["a"].answer, Some(Number(2)));
    let (mut shelf, by, _) = stored();
    let (reply, ..) = with_a_lost_answer_and_then(&mut shelf, ask(by), true, &[answer, Command::Cancel]);
    assert!(matches!(reply, Written::Rejected { why: Rejected::Ended, maybe_done: true, .. }), "{reply:?}");
}

#[test]
fn a_refusal_without_a_lost_answer_leaves_no_doubt() {
    let (mut shelf, by, id) = stored();
    change(&mut shelf, id, Command::Cancel);
    let mut write = Write::end(id, Command::HandOver { by, began: true });
    let Step::Store(load) = write.step(Input::Begin) else { panic!("it loads") };
    let Step::Done { reply, .. } = write.step(Input::Store(shelf.carry_out(T0, load))) else { panic!("it is refused") };
    assert!(matches!(reply, Written::Rejected { why: Rejected::Ended, maybe_done: false, .. }), "{reply:?}");
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
    assert!(matches!(last, Step::Done { reply: Written::Rejected { why: Rejected::StaleAttempt, .. }, .. }));
}
