//! The store's time.

use tokkuri_core::id::Attempt;
use tokkuri_core::task::Command;

use super::Verdict;
use super::samples::{draft, holds, id};
use super::trial::Trial;

/// [`Trial::ask`] judges every answer by the latest one that anybody had before the question was sent.
pub(super) async fn time_never_goes_back(trial: Trial) -> Verdict {
    let mut askers = tokio::task::JoinSet::new();
    for asker in 0..8_u64 {
        let trial = trial.clone();
        askers.spawn(async move {
            let mut task = trial.inserted(draft(asker)).await?;
            for n in 0..50 {
                if let Some(clock) = trial.clock() {
                    clock.advance(n % 3);
                }
                let message = format!("{n}").into();
                task = trial.change(&task, Command::Progress { by: Attempt::FIRST, message }).await?;
                trial.load(id(n % 8)).await?;
                trial.due(1).await?;
            }
            Ok::<_, String>(())
        });
    }
    while let Some(asked) = askers.join_next().await {
        asked.map_err(|panicked| panicked.to_string())??;
    }
    Ok(())
}

pub(super) async fn time_stands_still_when_its_source_goes_back(trial: Trial) -> Verdict {
    let Some(clock) = trial.clock() else { return Ok(()) };
    let before = trial.now().await?;
    clock.set(before.before(10_000));
    let task = trial.inserted(draft(1)).await?;
    holds(task.origin.created >= before, || format!("created at {}, after {}", task.origin.created.0, before.0))?;
    clock.set(before.after(5));
    let now = trial.now().await?;
    holds(now == before.after(5), || format!("{} once the source shows {} again", now.0, before.after(5).0))
}
