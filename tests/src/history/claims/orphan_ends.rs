//! The tasks of a node that is lost end, unless they run again elsewhere; those of a node that lives are not taken for lost.

use crate::history::{Micros, TaskHistory, Tasks};

/// What breaks it.
pub fn check(tasks: &Tasks<'_>) -> Vec<String> {
    tasks.each(|task| left_behind(tasks, task).into_iter().chain(taken_from_the_living(tasks, task)).collect())
}

/// A task of a lost node that is live long after.
fn left_behind(tasks: &Tasks<'_>, task: &TaskHistory<'_>) -> Option<String> {
    let created = task.created.filter(|created| !created.life.restartable)?;
    let lost = tasks
        .faults
        .iter()
        .find(|fault| fault.loses && fault.nodes.contains(&created.entry.node) && fault.from > created.entry.heard)?;
    let by = deadline(tasks, lost.from);
    let (entry, state) = task.reads.iter().find(|(entry, state)| entry.sent > by && !state.is_terminal())?;
    Some(format!(
        "node {} was lost at {} ({}), and the task is {} at {}",
        created.entry.node, lost.from, lost.what, state.status, entry.sent
    ))
}

/// When the tasks of a node lost at `from` have ended. While nobody reaches the database, or another fault strikes those that
/// would take over, nothing can be asked of them.
fn deadline(tasks: &Tasks<'_>, from: Micros) -> Micros {
    let mut faults: Vec<_> = tasks.faults.iter().collect();
    faults.sort_by_key(|fault| fault.from);
    faults.iter().fold(from + tasks.rules.orphans_end_within, |by, fault| {
        if fault.until > from && fault.from < by { by.max(fault.until + tasks.rules.orphans_end_within) } else { by }
    })
}

/// A task that is failed as lost though nothing happened to its node.
fn taken_from_the_living(tasks: &Tasks<'_>, task: &TaskHistory<'_>) -> Option<String> {
    let created = task.created?;
    let (heard, _) = task.end().filter(|(_, end)| end.is_lost())?;
    // A restartable one may be lost anywhere.
    let meant = |nodes: &[usize]| created.life.restartable || nodes.contains(&created.entry.node);
    // A fault that is just over may still have its consequences.
    let before = created.entry.sent.saturating_sub(tasks.rules.orphans_end_within);
    let struck =
        tasks.faults.iter().any(|fault| meant(fault.nodes) && fault.from < heard.heard && fault.until > before);
    (!struck).then(|| format!("lost at {}, though nothing happened to node {}", heard.heard, created.entry.node))
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::history::Life;
    use crate::history::forged::{Forged, lost, state};

    fn forged() -> Forged {
        Forged::new().on(1).created(0, Life::default()).read(100, state("working"))
    }

    #[test]
    fn a_task_left_behind_is_noticed() {
        let killed = || forged().fault(200, 200, &[1], true);
        killed().read(800, state("working")).read(1500, lost()).holds(check);
        killed().on(2).read(1500, state("working")).breaks(check);
        // Meanwhile the database was away.
        killed().fault(500, 1500, &[0, 1, 2], false).read(2000, state("working")).holds(check);
        killed().fault(500, 1500, &[0, 1, 2], false).read(2600, state("working")).breaks(check);
        forged().fault(200, 200, &[0], true).read(1500, state("working")).holds(check);
    }

    #[test]
    fn a_task_that_runs_again_may_live() {
        let again = Life { restartable: true, ..Life::default() };
        Forged::new().on(1).created(0, again).fault(200, 200, &[1], true).read(1500, state("working")).holds(check);
    }

    #[test]
    fn a_task_taken_from_a_living_node_is_noticed() {
        forged().fault(200, 200, &[0], true).read(1500, lost()).breaks(check);
        forged().fault(2000, 2100, &[1], true).read(1500, lost()).breaks(check);
        forged().fault(200, 900, &[1], false).read(1500, lost()).holds(check);
    }
}
