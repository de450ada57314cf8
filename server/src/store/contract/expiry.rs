//! The end of a task's time to live.

use tokkuri_core::id::{Attempt, Revision, TaskId};
use tokkuri_core::store::Row;
use tokkuri_core::task::{Command, Draft};
use tokkuri_core::time::Millis;
use tokkuri_core::wire::Json;

use super::Verdict;
use super::samples::{LONG_MS, NODE, SHORT_MS, Shared, draft, everything, holds, short};
use super::trial::{Trial, applied};

fn brief(n: u64, ttl_ms: u64) -> Draft<Json> {
    Draft { ttl_ms, ..draft(n) }
}

pub(super) async fn what_expired_is_absent_to_every_request(trial: Trial) -> Verdict {
    let live = trial.inserted(brief(1, SHORT_MS)).await?;
    let ended = trial.inserted(brief(2, SHORT_MS)).await?;
    let ended = trial.change(&ended, Command::Cancel).await?;
    let end = live.expires().max(ended.expires());
    // Asked just before, at and just after each end if time can be moved; otherwise whenever the answers happen to come. Every
    // answer is judged by its own time.
    let first = live.expires().min(ended.expires());
    for moment in [Millis(0), first.before(1), first, end.before(1), end, end.after(1)] {
        trial.pass(moment).await?;
        absent_at_its_end(&trial, &live, true).await?;
        absent_at_its_end(&trial, &ended, false).await?;
    }
    let late = applied(&live, live.updated, Command::Cancel)?;
    let (now, committed) = trial.commit(live.revision, &late).await?;
    holds(!committed, || format!("a commit at {} to what expired at {} went through", now.0, live.expires().0))?;
    let (_, nothing) = trial.load(live.id).await?;
    holds(nothing.is_none(), || "a commit revived what had expired".into())
}

async fn absent_at_its_end(trial: &Trial, task: &Shared, is_live: bool) -> Verdict {
    let judge = |what: &str, now: Millis, is_there: bool| {
        holds(is_there == task.is_visible(now), || {
            let there = if is_there { "is" } else { "is not" };
            format!("{what} at {}: a task that expires at {} {there} there", now.0, task.expires().0)
        })
    };
    let (now, loaded) = trial.load(task.id).await?;
    judge("load", now, loaded.is_some())?;
    let (now, touched) = trial.touched(NODE, Millis(0)).await?;
    judge("touched", now, touched.contains(&(task.id, task.revision)))?;
    let (now, page, _) = trial.page(everything(), None, 10).await?;
    judge("page", now, page.iter().any(|row| row.id == task.id))?;
    let (now, due) = trial.due(10).await?;
    judge("due", now, !due.iter().any(|row| row.id == task.id))?;
    let (now, orphans) = trial.orphans(10).await?;
    let is_orphan = orphans.iter().any(|row| row.id == task.id);
    if is_live {
        judge("orphans", now, is_orphan)?;
        let (now, count) = trial.count(&task.origin.owner).await?;
        judge("count", now, count == 1)?;
    } else {
        holds(!is_orphan, || "a task that ended is no orphan".into())?;
    }
    Ok(())
}

pub(super) async fn due_is_oldest_first_and_only_what_is_due(trial: Trial) -> Verdict {
    let (_, nothing) = trial.due(10).await?;
    holds(nothing.is_empty(), || format!("an empty store has {} due rows", nothing.len()))?;
    let mut tasks = Vec::new();
    for (n, ttl_ms) in (1_u64..).zip([4, 2, 5, 1, 3].map(|nth| nth * SHORT_MS)) {
        tasks.push(trial.inserted(brief(n, ttl_ms)).await?);
    }
    trial.inserted(brief(9, LONG_MS)).await?;
    let by = Attempt::FIRST;
    for task in &mut tasks {
        if task.is_visible(trial.now().await?.after(SHORT_MS)) {
            *task = trial.change(task, Command::Note { by, slot: super::samples::json("\"slot\"") }).await?;
        }
    }
    tasks.sort_by_key(|task| task.expires());
    for moment in tasks.iter().flat_map(|task| [task.expires().before(1), task.expires()]) {
        trial.pass(moment).await?;
        for limit in [100, 2, 0] {
            let (now, due) = trial.due(limit).await?;
            let wanted: Vec<Row<Json>> =
                tasks.iter().filter(|task| !task.is_visible(now)).map(|it| Row::from(&**it)).collect();
            let wanted = &wanted[..wanted.len().min(limit as usize)];
            let ends = |rows: &[Row<Json>]| rows.iter().map(|row| end_of(&tasks, row.id)).collect::<Vec<_>>();
            holds(ends(&due) == ends(wanted), || format!("due {}, wanted {}", short(&due), short(&wanted)))?;
            for row in &due {
                let known = tasks.iter().find(|task| task.id == row.id).map(|task| Row::from(&**task));
                holds(known.as_ref() == Some(row), || format!("due {}, stored {}", short(row), short(&known)))?;
            }
        }
    }
    Ok(())
}

fn end_of(tasks: &[Shared], id: TaskId) -> Option<Millis> {
    tasks.iter().find(|task| task.id == id).map(|task| task.expires())
}

pub(super) async fn removing_takes_only_what_is_due_and_unchanged(trial: Trial) -> Verdict {
    let soon = trial.inserted(brief(1, SHORT_MS)).await?;
    let also = trial.inserted(brief(2, SHORT_MS)).await?;
    let later = trial.inserted(brief(3, LONG_MS)).await?;
    let rows = vec![(later.id, later.revision), (super::samples::id(99), Revision::FIRST)];
    let removed = trial.remove(rows.clone()).await?;
    holds(removed.is_empty(), || format!("{removed:?} was removed and is not due"))?;
    trial.pass(soon.expires().max(also.expires())).await?;
    let removed = trial.remove(vec![(soon.id, soon.revision.next()), (also.id, Revision(0))]).await?;
    holds(removed.is_empty(), || format!("{removed:?} was removed at another revision"))?;
    let (_, due) = trial.due(10).await?;
    holds(due.len() == 2, || format!("{} rows are due, wanted 2", due.len()))?;

    let both = [(soon.id, soon.revision), (also.id, also.revision)];
    let mut removed = trial.remove(both.into_iter().chain(rows).collect()).await?;
    removed.sort_unstable();
    let mut wanted = vec![soon.id, also.id];
    wanted.sort_unstable();
    holds(removed == wanted, || format!("{removed:?} was removed, wanted {wanted:?}"))?;
    let removed = trial.remove(both.to_vec()).await?;
    holds(removed.is_empty(), || format!("{removed:?} was removed twice"))?;
    let (_, due) = trial.due(10).await?;
    holds(due.is_empty(), || format!("still due after it was removed: {}", short(&due)))?;
    let there = trial.there(later.id).await?;
    holds(there == later, || format!("a remove changed another row: {}", short(&there)))
}

pub(super) async fn a_raised_time_to_live_moves_the_end(trial: Trial) -> Verdict {
    // The commit has to come before the first end. A store with a slow way to it gets more time.
    for (n, ttl_ms) in (1_u64..).zip([SHORT_MS, 5 * SHORT_MS, 50 * SHORT_MS]) {
        let mut it = brief(n, ttl_ms);
        it.keep_ms = 2 * ttl_ms;
        let task = trial.inserted(it).await?;
        let complete = Command::Complete { by: Attempt::FIRST, result: super::samples::json("1"), message: None };
        let ended = applied(&task, trial.now().await?, complete)?;
        let (now, committed) = trial.commit(task.revision, &ended).await?;
        if !task.is_visible(now) {
            holds(!committed, || "a commit to what expired went through".into())?;
            continue;
        }
        holds(committed, || "a commit on the newest revision was refused".into())?;
        for moment in [task.expires(), ended.expires().before(1), ended.expires()] {
            trial.pass(moment).await?;
            let (now, loaded) = trial.load(task.id).await?;
            holds(loaded.is_some() == ended.is_visible(now), || {
                format!("at {}, end raised to {}: {}", now.0, ended.expires().0, short(&loaded))
            })?;
            let (now, due) = trial.due(10).await?;
            let is_due = due.iter().any(|row| row.id == task.id);
            holds(is_due != ended.is_visible(now), || {
                format!("at {}, end raised to {}: due is {is_due}", now.0, ended.expires().0)
            })?;
        }
        let removed = trial.remove(vec![(ended.id, ended.revision)]).await?;
        return holds(removed == [ended.id], || "what is due could not be removed".into());
    }
    Err("no commit came before the end of a task that lives for 15 seconds".into())
}
