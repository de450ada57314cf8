//! What a node asks about its own tasks, and others about a node's.

use tokkuri_core::id::{Attempt, NodeId};
use tokkuri_core::store::{Load, NodeState, REMEMBERED_MS};
use tokkuri_core::task::{Command, Draft};
use tokkuri_core::time::Millis;
use tokkuri_core::wire::Json;

use super::Verdict;
use super::samples::{LONG_MS, NODE, OTHER_NODE, SHORT_MS, draft, holds, joining, short};
use super::trial::{Leased, Trial, applied};

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
    trial.resign(OTHER_NODE).await?;
    orphaned(&[&other, &also]).await?;
    // A node that holds none may resign all the same.
    trial.resign(OTHER_NODE).await?;
    let lose = Command::Lose { attempt: Attempt::FIRST, heir: Some(NODE), why: "lost".into() };
    trial.change(&other, lose).await?;
    orphaned(&[&also]).await?;
    // What is given to nobody waits for the next sweep, whoever joins.
    let nobodys = trial.inserted(on(NodeId::NOBODY, 5)).await?;
    let mut both = [&also, &nobodys];
    both.sort_by_key(|task| task.id);
    orphaned(&both).await?;
    let lose = Command::Lose { attempt: Attempt::FIRST, heir: Some(NODE), why: "lost".into() };
    trial.change(&nobodys, lose).await?;
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
    // Joining again is a renewal: the answer to the first time was lost.
    let second = trial.lease(NODE, 2 * SHORT_MS).await?;
    trial.pass(first).await?;
    judge(second).await?;
    let third = renewed(&trial, 2 * SHORT_MS).await?;
    for moment in [second, third.before(1), third] {
        trial.pass(moment).await?;
        judge(third).await?;
    }
    let other = OTHER_NODE;
    let task = trial.inserted(on(other, 2)).await?;
    let long = trial.lease(other, LONG_MS).await?;
    holds(!trial.orphans(10).await?.1.contains(&task), || format!("orphaned before {}", long.0))?;
    // A shorter lease takes the place of a longer one: the last word of a node counts.
    let Some(short) = trial.renew(other, Load::default(), 1).await? else { return Err("a lease was lost".into()) };
    trial.pass(short.until).await?;
    holds(trial.orphans(10).await?.1.contains(&task), || format!("not orphaned at {}", short.until.0))
}

/// Renews the node's lease in time.
async fn renewed(trial: &Trial, lease_ms: u64) -> Result<Millis, String> {
    match trial.renew(NODE, Load::default(), lease_ms).await? {
        Some(leased) => Ok(leased.until),
        None => Err(format!("{NODE} has lost its lease, though it did not run out")),
    }
}

pub(super) async fn a_lost_lease_is_never_revived(trial: Trial) -> Verdict {
    let lost = async |node: NodeId, why: &str| {
        let renewed = trial.renew(node, Load::default(), LONG_MS).await?;
        holds(renewed.is_none(), || format!("a renewal of a node {why}: {renewed:?}"))
    };
    lost(NODE, "that never joined").await?;
    let task = trial.inserted(on(NODE, 1)).await?;
    let until = trial.lease(NODE, SHORT_MS).await?;
    trial.pass(until).await?;
    lost(NODE, "whose lease ran out").await?;
    let joined = trial.join(NODE, LONG_MS).await?;
    holds(joined.is_none(), || format!("a node whose lease ran out joined again: {joined:?}"))?;
    lost(NODE, "whose lease ran out, and which joined again").await?;
    let (now, orphans) = trial.orphans(10).await?;
    holds(orphans == [task.clone()], || format!("at {}: orphans are {}", now.0, short(&orphans)))?;
    // Another incarnation is another node.
    trial.lease(OTHER_NODE, LONG_MS).await?;
    let (now, orphans) = trial.orphans(10).await?;
    holds(orphans == [task], || format!("at {}: orphans are {}", now.0, short(&orphans)))?;
    trial.resign(OTHER_NODE).await?;
    lost(OTHER_NODE, "that resigned").await
}

pub(super) async fn a_drain_is_told_with_each_renewal(trial: Trial) -> Verdict {
    let told = async |wanted: Option<Millis>| {
        let renewed = trial.renew(NODE, Load::default(), LONG_MS).await?;
        let drain = renewed.map(|Leased { drain, .. }| drain);
        holds(drain == Some(wanted), || format!("renewed, and told to drain {drain:?}, wanted {wanted:?}"))?;
        // Whoever joins again is told as well.
        let joined = trial.join(NODE, LONG_MS).await?.map(|Leased { drain, .. }| drain);
        holds(joined == Some(wanted), || format!("joined, and told to drain {joined:?}, wanted {wanted:?}"))?;
        let (_, nodes) = trial.nodes().await?;
        let listed = nodes.iter().find(|state| state.node.id == NODE).map(|state| state.drain);
        holds(listed == Some(wanted), || format!("listed as draining {listed:?}, wanted {wanted:?}"))
    };
    let (_, known) = trial.drain(NODE, Some(5)).await?;
    holds(!known, || "a node that never joined is drained".into())?;
    trial.lease(NODE, LONG_MS).await?;
    trial.lease(OTHER_NODE, LONG_MS).await?;
    told(None).await?;
    for drain in [Some(0), Some(LONG_MS), Some(7), None, Some(9)] {
        let (now, known) = trial.drain(NODE, drain).await?;
        holds(known, || "a node that lives is not known".into())?;
        told(drain.map(|ms| now.after(ms))).await?;
    }
    let others = trial.renew(OTHER_NODE, Load::default(), SHORT_MS).await?;
    let drains = others.and_then(|leased| leased.drain);
    holds(drains.is_none(), || format!("another node is told to drain: {drains:?}"))?;
    let Some(Leased { until, .. }) = others else { return Err("another node lost its lease".into()) };
    trial.pass(until).await?;
    let (_, known) = trial.drain(OTHER_NODE, Some(1)).await?;
    holds(!known, || "a node whose lease ran out is drained".into())?;
    trial.resign(NODE).await?;
    let (_, known) = trial.drain(NODE, Some(1)).await?;
    holds(!known, || "a node that resigned is drained".into())?;
    // It was forgotten, and so was the drain.
    let joined = trial.join(NODE, LONG_MS).await?;
    holds(joined.is_some_and(|leased| leased.drain.is_none()), || format!("joined anew, and told {joined:?}"))
}

pub(super) async fn nodes_are_listed_by_id_with_what_they_said(trial: Trial) -> Verdict {
    let listed = async |wanted: &[NodeState]| {
        let (now, nodes) = trial.nodes().await?;
        holds(nodes == wanted, || format!("at {}: nodes {}, wanted {}", now.0, short(&nodes), short(&wanted)))
    };
    listed(&[]).await?;
    let state = |id, leased_until, load| NodeState { node: joining(id), leased_until, load, drain: None };
    let first = trial.lease(NODE, SHORT_MS).await?;
    let mut mine = state(NODE, first, Load::default());
    listed(std::slice::from_ref(&mine)).await?;
    trial.lease(OTHER_NODE, LONG_MS).await?;
    // Ids are compared as numbers without a sign.
    let load = Load { runs: u32::MAX, queued: 7, heeds: Some(Millis(9)) };
    let Some(leased) = trial.renew(OTHER_NODE, load, LONG_MS).await? else { return Err("a lease was lost".into()) };
    let other = state(OTHER_NODE, leased.until, load);
    listed(&[other.clone(), mine.clone()]).await?;
    let some = Load { runs: 3, ..Load::default() };
    let Some(leased) = trial.renew(NODE, some, SHORT_MS).await? else {
        return Err("a lease was lost".into());
    };
    mine = state(NODE, leased.until, some);
    listed(&[other.clone(), mine.clone()]).await?;
    // Joining again changes the lease alone.
    let until = trial.lease(NODE, SHORT_MS).await?;
    mine.leased_until = until;
    trial.pass(until).await?;
    listed(&[other.clone(), mine.clone()]).await?;
    // What is refused changes nothing.
    trial.renew(NODE, load, LONG_MS).await?;
    trial.join(NODE, LONG_MS).await?;
    trial.drain(NODE, Some(1)).await?;
    listed(&[other.clone(), mine.clone()]).await?;
    // An hour is too long to wait for.
    if trial.clock().is_some() {
        trial.pass(until.after(REMEMBERED_MS - 1)).await?;
        trial.lease(NodeId(3), 1).await?;
        let (_, nodes) = trial.nodes().await?;
        holds(nodes.contains(&mine), || "a node is forgotten too early".into())?;
        trial.pass(until.after(REMEMBERED_MS)).await?;
        let (_, nodes) = trial.nodes().await?;
        holds(!nodes.contains(&mine), || "a node is never forgotten".into())?;
    }
    trial.resign(OTHER_NODE).await?;
    let (_, nodes) = trial.nodes().await?;
    holds(!nodes.iter().any(|it| it.node.id == OTHER_NODE), || "a node that resigned is listed".into())
}
