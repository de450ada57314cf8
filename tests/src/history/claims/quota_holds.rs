//! Nobody has more live tasks than the limit allows, however many nodes admit at once.
//!
//! A task is certainly live from the answer to its create until a read that found it live was sent.

use std::collections::BTreeMap;

use crate::history::Tasks;

/// What breaks it.
pub fn check(tasks: &Tasks<'_>) -> Vec<String> {
    let mut changes: BTreeMap<&str, Vec<(u64, i64)>> = BTreeMap::new();
    for task in tasks.tasks.values() {
        let Some(created) = task.created else { continue };
        let from = created.entry.heard;
        let live = task.reads.iter().filter(|(_, state)| !state.is_terminal()).map(|(entry, _)| entry.sent).max();
        if let Some(until) = live.filter(|until| *until > from) {
            changes.entry(&created.entry.by).or_default().extend([(from, 1), (until, -1)]);
        }
    }
    let limit = i64::try_from(tasks.rules.limit).unwrap_or(i64::MAX);
    let passed = changes.into_iter().filter_map(|(owner, mut changes)| {
        changes.sort_unstable();
        let mut live = 0;
        let (at, most) = changes
            .into_iter()
            .map(|(at, change)| {
                live += change;
                (at, live)
            })
            .max_by_key(|(_, live)| *live)?;
        (most > limit).then(|| format!("{owner} had {most} live tasks at {at}, and the limit is {limit}"))
    });
    passed.collect()
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::history::Life;
    use crate::history::forged::{Forged, state};

    fn live(forged: Forged, task: &str, from: u64, until: u64) -> Forged {
        forged.of(task).created(from, Life::default()).read(until, state("working"))
    }

    #[test]
    fn one_task_too_many_is_noticed() {
        let two = || live(live(Forged::new(), "a", 0, 500), "b", 100, 600);
        live(two(), "c", 500, 900).holds(check);
        live(two().by("bob"), "c", 200, 900).holds(check);
        live(two(), "c", 200, 900).breaks(check);
    }
}
