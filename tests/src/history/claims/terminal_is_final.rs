//! Once a task has ended, every later read on every node says the same.

use crate::history::Tasks;

/// What breaks it.
pub fn check(tasks: &Tasks<'_>) -> Vec<String> {
    tasks.each(|task| {
        let Some((first, end)) = task.end() else { return Vec::new() };
        let later = task.reads.iter().filter(|(entry, _)| entry.sent > first.heard);
        let changed = later.filter(|(_, state)| state.end() != end.end() || state.updated != end.updated);
        changed
            .map(|(entry, state)| {
                format!(
                    "{} on node {} at {}, {} on node {} at {}",
                    end.status, first.node, first.heard, state.status, entry.node, entry.sent
                )
            })
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::history::forged::{Forged, said, state};

    #[test]
    fn a_later_read_that_differs_is_noticed() {
        let forged = || Forged::new().read(0, state("working")).read(100, said("a"));
        forged().read(105, state("working")).on(1).read(200, said("a")).holds(check);
        forged().on(1).read(200, state("working")).breaks(check);
        forged().read(200, said("b")).breaks(check);
        forged().read(200, state("cancelled")).breaks(check);
    }

    #[test]
    fn what_a_follower_heard_counts() {
        Forged::new().told(100, 1, said("a")).on(1).read(200, state("working")).breaks(check);
    }
}
