//! How many live tasks an owner may have.

use std::sync::Arc;

use tokio::sync::Barrier;
use tokkuri_core::id::Attempt;
use tokkuri_core::store::Outcome;
use tokkuri_core::task::{Command, Draft, Fault};
use tokkuri_core::wire::Json;

use super::Verdict;
use super::samples::{SHORT_MS, draft, holds, json, owner, unexpected};
use super::trial::Trial;

fn of(principal: &str, n: u64) -> Draft<Json> {
    Draft { owner: owner(principal), ..draft(n) }
}

pub(super) async fn the_limit_is_exact(trial: Trial) -> Verdict {
    let outcome = trial.insert(of("a", 1), Some(0)).await?;
    holds(outcome == Outcome::AtTheLimit, || unexpected("AtTheLimit with a limit of 0", &outcome))?;
    for n in 1..=6 {
        let outcome = trial.insert(of("a", n), Some(3)).await?;
        let fits = matches!(outcome, Outcome::Inserted(_));
        holds(fits == (n <= 3) && (fits || outcome == Outcome::AtTheLimit), || {
            unexpected(&format!("the insert of task {n} judged by a limit of 3"), &outcome)
        })?;
        let (_, nothing) = trial.load(draft(n).id).await?;
        holds(nothing.is_some() == fits, || "a refused insert left a row, or an admitted one none".into())?;
    }
    let outcome = trial.insert(of("b", 7), Some(1)).await?;
    holds(matches!(outcome, Outcome::Inserted(_)), || unexpected("Inserted: the limit is each owner's", &outcome))?;
    let outcome = trial.insert(of("a", 8), Some(4)).await?;
    holds(matches!(outcome, Outcome::Inserted(_)), || unexpected("Inserted: one below the limit", &outcome))?;
    let outcome = trial.insert(of("a", 9), None).await?;
    holds(matches!(outcome, Outcome::Inserted(_)), || unexpected("Inserted: there is no limit", &outcome))?;
    let outcome = trial.insert(of("a", 10), Some(2)).await?;
    holds(outcome == Outcome::AtTheLimit, || unexpected("AtTheLimit: far above it", &outcome))?;
    for (who, wanted) in [("a", 5), ("b", 1), ("c", 0)] {
        let (_, live) = trial.count(&owner(who)).await?;
        holds(live == wanted, || format!("{who} has {live} live tasks, wanted {wanted}"))?;
    }
    Ok(())
}

pub(super) async fn the_count_is_of_live_tasks(trial: Trial) -> Verdict {
    let by = Attempt::FIRST;
    let who = owner("a");
    let complete = Command::Complete { by, result: json("1"), message: None };
    let ends = [complete, Command::Cancel, Command::Fail { by, fault: Fault::internal("no") }];
    for n in 1..=4 {
        trial.inserted(of("a", n)).await?;
    }
    for (n, end) in (1_u64..).zip(ends) {
        let outcome = trial.insert(of("a", 10 + n), Some(4)).await?;
        holds(outcome == Outcome::AtTheLimit, || unexpected("AtTheLimit before a task ends", &outcome))?;
        let task = trial.there(draft(n).id).await?;
        trial.change(&task, end).await?;
        let (_, live) = trial.count(&who).await?;
        holds(live == 3, || format!("{live} live tasks after one of 4 ended"))?;
        let outcome = trial.insert(of("a", 10 + n), Some(4)).await?;
        holds(matches!(outcome, Outcome::Inserted(_)), || unexpected("Inserted: an end frees a place", &outcome))?;
    }
    // Ones that expire free theirs at that very moment, whether or not anybody has removed them.
    let brief = trial.inserted(Draft { ttl_ms: SHORT_MS, ..of("a", 20) }).await?;
    for moment in [brief.expires().before(1), brief.expires()] {
        trial.pass(moment).await?;
        let (now, live) = trial.count(&who).await?;
        let wanted = if brief.is_visible(now) { 5 } else { 4 };
        holds(live == wanted, || format!("at {}: {live} live tasks, wanted {wanted}", now.0))?;
    }
    let outcome = trial.insert(of("a", 21), Some(5)).await?;
    holds(matches!(outcome, Outcome::Inserted(_)), || unexpected("Inserted: an expiry frees a place", &outcome))?;
    let removed = trial.remove(vec![(brief.id, brief.revision)]).await?;
    holds(removed == [brief.id], || "what is due could not be removed".into())?;
    let (_, live) = trial.count(&who).await?;
    holds(live == 5, || {
        format!("{live} live tasks once the expired one was removed, wanted 5: its place was freed twice")
    })?;
    let outcome = trial.insert(of("a", 22), Some(5)).await?;
    holds(outcome == Outcome::AtTheLimit, || unexpected("AtTheLimit: a place is freed once", &outcome))
}

pub(super) async fn concurrent_inserts_admit_exactly_the_limit(trial: Trial) -> Verdict {
    const INSERTERS: u64 = 16;
    const LIMIT: u32 = 5;
    for round in 0..20 {
        let who = format!("round {round}");
        let barrier = Arc::new(Barrier::new(INSERTERS as usize));
        let mut inserters = tokio::task::JoinSet::new();
        for n in 0..INSERTERS {
            let it = of(&who, 1 + round * INSERTERS + n);
            let (trial, barrier) = (trial.clone(), Arc::clone(&barrier));
            inserters.spawn(async move {
                barrier.wait().await;
                trial.insert(it, Some(LIMIT)).await
            });
        }
        let mut admitted = 0;
        while let Some(inserted) = inserters.join_next().await {
            match inserted.map_err(|panicked| panicked.to_string())?? {
                Outcome::Inserted(_) => admitted += 1,
                Outcome::AtTheLimit => {}
                outcome => return Err(unexpected("Inserted or AtTheLimit", &outcome)),
            }
        }
        holds(admitted == LIMIT, || format!("{admitted} of {INSERTERS} at once were admitted, wanted {LIMIT}"))?;
        let (_, live) = trial.count(&owner(&who)).await?;
        holds(live == LIMIT, || format!("{live} live tasks after {LIMIT} were admitted"))?;
    }
    Ok(())
}
