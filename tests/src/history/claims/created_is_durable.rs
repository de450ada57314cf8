//! A create that was answered means a task that its owner can read until its time to live is over.

use crate::history::Tasks;

/// What breaks it.
pub fn check(tasks: &Tasks<'_>) -> Vec<String> {
    tasks.each(|task| {
        let Some(created) = task.created else { return Vec::new() };
        let owners = task.not_found.iter().filter(|entry| entry.by == created.entry.by);
        let early = owners.filter(|entry| entry.sent > created.entry.heard && entry.heard < created.expires);
        early
            .map(|entry| {
                format!("created at {}, not found on node {} at {}", created.entry.heard, entry.node, entry.sent)
            })
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::history::Life;
    use crate::history::forged::{Forged, state};

    #[test]
    fn a_task_that_is_gone_before_its_time_is_noticed() {
        let forged = || Forged::new().created(0, Life::default()).read(100, state("working"));
        forged().not_found(60_001).holds(check).by("bob").not_found(200).holds(check);
        forged().on(1).not_found(200).breaks(check);
    }
}
