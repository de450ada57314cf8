//! What a node asks about its own tasks, and others about a node's.

use tokkuri_core::id::{Attempt, NodeId};
use tokkuri_core::store::{Outcome, Request};
use tokkuri_core::task::{Command, Draft};
use tokkuri_core::time::Millis;
use tokkuri_core::wire::Json;

use super::Verdict;
use super::samples::{LONG_MS, NODE, OTHER_NODE, SHORT_MS, draft, holds, short, unexpected};
use super::trial::{Trial, applied};

fn on(node: NodeId, n: u64) -> Draft<Json> {
    Draft { node, restartable: true, ..draft(n) }
}

pub(super) async fn touched_tasks_are_those_of_the_node_ended_ones_included(trial: Trial) -> Verdict {
    // Each with the moment of its insert or last commit.
    let mut tasks = Vec::new();
    for n in 1..=6 {
        let moment = trial.now().await?.after(2);
        trial.pass(moment).await?;
        let task = trial.inserted(on(if n % 3 == 0 { OTHER_NODE } else { NODE }, n)).await?;
        tasks.push((task.origin.created, task));
    }
    let by = Attempt::FIRST;
    let commands = [
        (0, Command::Cancel),
        (1, Command::Progress { by, message: "1".into() }),
        (3, Command::Lose { attempt: by, heir: Some(OTHER_NODE), why: "lost".into() }),
    ];
    for (n, command) in commands {
        // The writer sleeps between its load and its commit: it is the commit that a node has to learn of.
        let loaded = &tasks[n].1;
        let loaded_at = trial.now().await?;
        trial.pass(loaded_at.after(3)).await?;
        let next = applied(loaded, loaded_at, command)?;
        tasks[n] = (trial.committed(loaded, &next).await?, next);
    }
    let mut moments: Vec<_> =
        tasks.iter().flat_map(|(touched, task)| [task.updated, *touched, touched.after(1)]).collect();
    moments.extend([Millis(0), Millis(u64::MAX)]);
    for since in moments {
        for node in [NODE, OTHER_NODE, NodeId(3)] {
            let of_node = tasks.iter().filter(|(touched, task)| task.node == node && *touched >= since);
            let mut wanted: Vec<_> = of_node.map(|(_, task)| (task.id, task.revision)).collect();
            wanted.sort_unstable();
            let (_, touched) = trial.touched(node, since).await?;
            holds(touched == wanted, || {
                format!("touched on {node} since {}: {}, wanted {}", since.0, short(&touched), short(&wanted))
            })?;
        }
    }
    Ok(())
}

pub(super) async fn a_task_is_orphaned_unless_its_node_holds_a_lease(trial: Trial) -> Verdict {
    let mine = trial.inserted(on(NODE, 1)).await?;
    let ended = trial.inserted(on(NODE, 2)).await?;
    trial.change(&ended, Command::Cancel).await?;
    let other = trial.inserted(on(OTHER_NODE, 3)).await?;
    let also = trial.inserted(on(OTHER_NODE, 4)).await?;
    let orphaned = async |wanted: &[&super::samples::Shared]| {
        let mut wanted: Vec<_> = wanted.iter().map(|task| (*task).clone()).collect();
        wanted.sort_by_key(|task| task.id);
        let (_, orphans) = trial.orphans(10).await?;
        holds(orphans == wanted, || format!("orphans {}, wanted {}", short(&orphans), short(&wanted)))
    };
    orphaned(&[&mine, &other, &also]).await?;
    let (_, some) = trial.orphans(2).await?;
    holds(some.len() == 2, || format!("{} orphans, wanted no more and no less than 2", some.len()))?;
    trial.lease(NODE, LONG_MS).await?;
    orphaned(&[&other, &also]).await?;
    trial.lease(OTHER_NODE, LONG_MS).await?;
    orphaned(&[]).await?;
    let outcome = trial.ask(Request::Resign { node: OTHER_NODE }).await?.outcome;
    holds(outcome == Outcome::Released, || unexpected("Released", &outcome))?;
    orphaned(&[&other, &also]).await?;
    // A node that holds none may resign all the same.
    trial.ask(Request::Resign { node: OTHER_NODE }).await?;
    let lose = Command::Lose { attempt: Attempt::FIRST, heir: Some(NODE), why: "lost".into() };
    trial.change(&other, lose).await?;
    orphaned(&[&also]).await?;
    let lose = Command::Lose { attempt: Attempt::FIRST, heir: None, why: "lost".into() };
    trial.change(&also, lose).await?;
    orphaned(&[]).await
}

pub(super) async fn a_lease_runs_out(trial: Trial) -> Verdict {
    let task = trial.inserted(on(NODE, 1)).await?;
    let first = trial.lease(NODE, SHORT_MS).await?;
    let judge = async |until: Millis| {
        let (now, orphans) = trial.orphans(10).await?;
        let is_orphan = orphans == [task.clone()];
        holds(is_orphan == (until <= now), || {
            format!("at {}, leased until {}: orphans are {}", now.0, until.0, short(&orphans))
        })
    };
    judge(first).await?;
    let second = trial.lease(NODE, 2 * SHORT_MS).await?;
    for moment in [first, second.before(1), second] {
        trial.pass(moment).await?;
        judge(second).await?;
    }
    let third = trial.lease(NODE, LONG_MS).await?;
    judge(third).await?;
    // A shorter lease takes the place of a longer one: the last word of a node counts.
    let fourth = trial.lease(NODE, 1).await?;
    trial.pass(fourth).await?;
    judge(fourth).await
}
