//! Rows come and change: load, insert, commit.

use std::sync::Arc;

use tokio::sync::Barrier;
use tokkuri_core::id::{Attempt, Revision};
use tokkuri_core::store::Outcome;
use tokkuri_core::task::{Command, Fault};

use super::Verdict;
use super::samples::{draft, holds, id, json, short, unexpected};
use super::trial::{Trial, applied};

pub(super) async fn what_was_inserted_is_loaded(trial: Trial) -> Verdict {
    let (_, nothing) = trial.load(id(1)).await?;
    holds(nothing.is_none(), || "an empty store holds a task".into())?;
    for n in 1..=20 {
        let task = trial.inserted(draft(n)).await?;
        let loaded = trial.there(task.id).await?;
        holds(loaded == task, || format!("loaded {}, inserted {}", short(&loaded), short(&task)))?;
    }
    let (_, unknown) = trial.load(id(99)).await?;
    holds(unknown.is_none(), || "a task under an id that was never inserted".into())
}

pub(super) async fn an_id_is_taken_once(trial: Trial) -> Verdict {
    let first = trial.inserted(draft(1)).await?;
    for limit in [None, Some(10), Some(1)] {
        let mut other = draft(1);
        other.tool = "other".into();
        let outcome = trial.insert(other, limit).await?;
        holds(outcome == Outcome::Exists, || unexpected("Exists", &outcome))?;
    }
    let loaded = trial.there(first.id).await?;
    holds(loaded == first, || format!("a refused insert changed the row: {}", short(&loaded)))
}

pub(super) async fn a_commit_needs_the_revision_that_was_loaded(trial: Trial) -> Verdict {
    let first = trial.inserted(draft(1)).await?;
    let progress = |message: &str| Command::Progress { by: Attempt::FIRST, message: message.into() };
    let second = trial.change(&first, progress("2")).await?;
    let loaded = trial.there(first.id).await?;
    holds(loaded == second, || format!("loaded {}, committed {}", short(&loaded), short(&second)))?;

    let stale = applied(&first, second.updated, progress("stale"))?;
    for expected in [first.revision, second.revision.next(), Revision(0)] {
        let (_, committed) = trial.commit(expected, &stale).await?;
        holds(!committed, || {
            format!("a commit on {expected:?} went through while the row is at {:?}", second.revision)
        })?;
    }
    let loaded = trial.there(first.id).await?;
    holds(loaded == second, || format!("a refused commit changed the row: {}", short(&loaded)))?;

    let fault = Fault { code: -32602, message: "no such row".into(), data: Some(json("[1]")) };
    let third = trial.change(&second, Command::Fail { by: Attempt::FIRST, fault }).await?;
    let loaded = trial.there(first.id).await?;
    holds(loaded == third, || format!("loaded {}, committed {}", short(&loaded), short(&third)))?;

    let never = Arc::new(draft(2).created(third.updated));
    let (_, committed) = trial.commit(Revision::FIRST, &never).await?;
    holds(!committed, || "a commit to a row that is not there went through".into())?;
    let (_, nothing) = trial.load(never.id).await?;
    holds(nothing.is_none(), || "a refused commit made a row".into())
}

pub(super) async fn of_concurrent_commits_on_one_revision_one_wins(trial: Trial) -> Verdict {
    const WRITERS: usize = 8;
    let mut row = trial.inserted(draft(1)).await?;
    for round in 0..30 {
        let barrier = Arc::new(Barrier::new(WRITERS));
        let now = trial.now().await?;
        let mut writers = tokio::task::JoinSet::new();
        for writer in 0..WRITERS {
            let message = format!("{round}/{writer}").into();
            let next = applied(&row, now, Command::Progress { by: Attempt::FIRST, message })?;
            let (trial, barrier, expected) = (trial.clone(), Arc::clone(&barrier), row.revision);
            writers.spawn(async move {
                barrier.wait().await;
                Ok::<_, String>((trial.commit(expected, &next).await?.1, next))
            });
        }
        let mut winners = Vec::new();
        while let Some(written) = writers.join_next().await {
            let (committed, next) = written.map_err(|panicked| panicked.to_string())??;
            if committed {
                winners.push(next);
            }
        }
        holds(winners.len() == 1, || format!("{} of {WRITERS} commits on one revision went through", winners.len()))?;
        let loaded = trial.there(row.id).await?;
        holds(Some(&loaded) == winners.first(), || format!("the row is not the winner's: {}", short(&loaded)))?;
        row = loaded;
    }
    Ok(())
}
