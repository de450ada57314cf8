//! Random sequences of requests, each answered as the reference answers it at the same moment.

use tokkuri_core::id::{Attempt, NodeId, Revision, TaskId};
use tokkuri_core::store::{Answer, Load, Outcome, Request, Shelf};
use tokkuri_core::task::{Command, Draft, Fault, Status};
use tokkuri_core::time::Millis;
use tokkuri_core::wire::Json;

use super::Verdict;
use super::samples::{
    Dice, LONG_MS, NODE, OTHER_NODE, Shared, answer, draft, everything, holds, id, joining, json, owner, question,
    short,
};
use super::trial::{Trial, applied};

const SEEDS: u64 = 6;
const REQUESTS: u64 = 400;

pub(super) async fn any_sequence_of_requests_is_answered_as_by_the_reference(trial: Trial) -> Verdict {
    // All in one store: what one sequence leaves behind is in the way of the next.
    let mut shelf = Shelf::default();
    for seed in 0..SEEDS {
        sequence(&trial, &mut shelf, seed).await.map_err(|why| format!("seed {seed}: {why}"))?;
    }
    Ok(())
}

async fn sequence(trial: &Trial, shelf: &mut Shelf<Json>, seed: u64) -> Verdict {
    let mut dice = Dice(seed);
    let mut now = trial.now().await?;
    let mut last = String::new();
    for _ in 0..REQUESTS {
        if let Some(clock) = trial.clock().filter(|_| dice.one_in(3)) {
            clock.advance(dice.below(30));
        }
        let request = request(&mut dice, shelf, now);
        let asked = short(&request);
        let answer = trial.ask(request.clone()).await.map_err(|why| format!("{why}; after {last}, then {asked}"))?;
        now = answer.now;
        judge(&request, answer, shelf).map_err(|why| format!("{why}; after {last}, then {asked}"))?;
        last = asked;
    }
    Ok(())
}

/// Compares an answer with the reference's, as far as the protocol says what it is: an order that is not promised is not asked
/// for, nor which of several are meant where a limit cuts.
fn judge(request: &Request<Json>, answer: Answer<Json>, shelf: &mut Shelf<Json>) -> Verdict {
    let Answer { now, outcome } = answer;
    let unlimited = match request {
        Request::Due { .. } => Request::Due { limit: u32::MAX },
        Request::Orphans { .. } => Request::Orphans { limit: u32::MAX },
        Request::Load { .. }
        | Request::Insert { .. }
        | Request::Commit { .. }
        | Request::Count { .. }
        | Request::Remove { .. }
        | Request::TouchedSince { .. }
        | Request::Page { .. }
        | Request::Join { .. }
        | Request::Renew { .. }
        | Request::Resign { .. }
        | Request::Nodes
        | Request::Drain { .. } => request.clone(),
    };
    let wanted = shelf.carry_out(now, unlimited).outcome;
    let agrees = match (request, &outcome, &wanted) {
        (Request::Due { limit }, Outcome::Due(rows), Outcome::Due(all)) => {
            let end = |id: TaskId| shelf.rows().find(|task| task.id == id).map(|task| task.expires());
            let length = all.len().min(*limit as usize);
            rows.iter().all(|row| all.contains(row))
                && rows.iter().map(|row| end(row.id)).eq(all[..length].iter().map(|row| end(row.id)))
        }
        (Request::Orphans { limit }, Outcome::Orphans(tasks), Outcome::Orphans(all)) => {
            tasks.len() == all.len().min(*limit as usize) && tasks.iter().all(|task| all.contains(task))
        }
        (_, Outcome::Touched(rows), Outcome::Touched(all)) => same(rows, all),
        (_, Outcome::Removed(ids), Outcome::Removed(all)) => same(ids, all),
        (_, outcome, wanted) => outcome == wanted,
    };
    holds(agrees, || format!("at {}: {}, the reference says {}", now.0, short(&outcome), short(&wanted)))
}

fn same<T: Ord + Clone>(some: &[T], others: &[T]) -> bool {
    let sorted = |of: &[T]| {
        let mut of = of.to_vec();
        of.sort_unstable();
        of
    };
    sorted(some) == sorted(others)
}

fn request(dice: &mut Dice, shelf: &Shelf<Json>, now: Millis) -> Request<Json> {
    let rows: Vec<Shared> = shelf.rows().cloned().collect();
    let some_id = |dice: &mut Dice| match dice.pick(&rows) {
        Some(row) if !dice.one_in(8) => row.id,
        Some(_) | None => id(dice.roll()),
    };
    let lasting = if dice.one_in(2) { NODE } else { OTHER_NODE };
    // Nodes whose lease ran out never come back: others begin.
    let node = if dice.one_in(2) { NodeId(3 + now.0 / 200) } else { lasting };
    let limit = u32::try_from(dice.below(6)).unwrap_or(0);
    match dice.below(21) {
        0..=4 => {
            let draft = Draft {
                id: if dice.one_in(10) { some_id(dice) } else { id(dice.roll()) },
                owner: owner(["a", "b", "c"][dice.below(3) as usize]),
                tool: ["x", "y"][dice.below(2) as usize].into(),
                node,
                restartable: dice.one_in(2),
                ttl_ms: if dice.one_in(3) { LONG_MS } else { dice.below(100) },
                keep_ms: dice.below(100),
                ..draft(0)
            };
            Request::Insert { draft: Box::new(draft), limit: dice.one_in(3).then_some(limit) }
        }
        5..=9 => match dice.pick(&rows) {
            Some(row) => {
                let row = row.clone();
                let next = applied(&row, now, command(dice, &row)).unwrap_or_else(|_| row.clone());
                let expected = if dice.one_in(5) { Revision(dice.below(4)) } else { row.revision };
                // What found nothing to change is not committed by any procedure, and would be a second state of a revision.
                if next.revision == row.revision {
                    Request::Load { id: row.id }
                } else {
                    Request::Commit { expected, task: next }
                }
            }
            None => Request::Load { id: id(0) },
        },
        10 => Request::Count { owner: owner(["a", "b", "c"][dice.below(3) as usize]) },
        11 => Request::Due { limit },
        12 => {
            let some = rows.iter().filter(|_| dice.one_in(4));
            let some: Vec<_> = some.map(|row| (row.id, row.revision)).collect();
            let shifted = |(id, revision): (TaskId, Revision), dice: &mut Dice| match dice.one_in(6) {
                true => (id, revision.next()),
                false => (id, revision),
            };
            Request::Remove { rows: some.into_iter().map(|row| shifted(row, dice)).collect() }
        }
        13 => Request::Orphans { limit },
        14 => Request::TouchedSince { node, since: now.before(dice.below(60)) },
        15 => {
            let mut filter = everything();
            if dice.one_in(3) {
                filter.owner = Some(owner("a"));
            }
            if dice.one_in(3) {
                filter.statuses = vec![Status::Working, Status::Completed];
            }
            if dice.one_in(3) {
                filter.node = Some(node);
            }
            if dice.one_in(3) {
                filter.created_before = Some(now.before(dice.below(40)));
            }
            Request::Page { filter, after: dice.one_in(2).then(|| some_id(dice)), limit }
        }
        16 => Request::Join { node: Box::new(joining(node)), lease_ms: dice.below(60) },
        17 => {
            let load = Load {
                runs: u32::try_from(dice.below(5)).unwrap_or(0),
                queued: limit,
                heeds: (limit > 2).then_some(Millis(u64::from(limit))),
            };
            Request::Renew { node, load, lease_ms: dice.below(60) }
        }
        18 => match dice.below(4) {
            0 => Request::Resign { node },
            1 | 2 => Request::Drain { node, drain: dice.one_in(2).then(|| dice.below(60)) },
            _ => Request::Nodes,
        },
        _ => Request::Load { id: some_id(dice) },
    }
}

fn command(dice: &mut Dice, row: &Shared) -> Command<Json> {
    let by = row.attempt;
    let key = ["k", "l"][dice.below(2) as usize];
    match dice.below(10) {
        0 | 1 => Command::Progress { by, message: format!("{}", dice.below(100)).into() },
        2 | 3 => Command::Ask { by, key: key.into(), request: question() },
        4 => Command::Answer { answers: [(key.into(), answer())].into() },
        5 => Command::Complete { by, result: json("[1]"), message: None },
        6 => Command::Fail { by, fault: Fault::internal("no") },
        7 => Command::Cancel,
        8 => Command::Lose {
            attempt: by,
            heir: Some(if dice.one_in(2) { NODE } else { OTHER_NODE }),
            why: "lost".into(),
        },
        _ => Command::Note { by: Attempt(by.0), slot: json("\"slot\"") },
    }
}
