//! No task works for ever: when all faults are over and everybody has waited, the last that is heard of each is its end.

use crate::history::Tasks;

/// What breaks it.
pub fn check(tasks: &Tasks<'_>) -> Vec<String> {
    tasks.each(|task| {
        let Some(created) = task.created else { return Vec::new() };
        let last = task.reads.iter().max_by_key(|(entry, _)| entry.sent);
        let gone = task.not_found.iter().filter(|entry| entry.by == created.entry.by).map(|entry| entry.sent).max();
        match last {
            _ if gone > last.map(|(entry, _)| entry.sent) => Vec::new(),
            None => vec!["nobody has read it".into()],
            Some((_, state)) if state.is_terminal() => Vec::new(),
            Some((entry, state)) => vec![format!("{} at {}, and that was the last", state.status, entry.sent)],
        }
    })
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::history::Life;
    use crate::history::forged::{Forged, said, state};

    #[test]
    fn a_task_that_works_for_ever_is_noticed() {
        let forged = || Forged::new().created(0, Life::default()).read(100, state("working"));
        forged().on(1).read(200, said("a")).holds(check);
        forged().not_found(60_100).holds(check);
        forged().breaks(check);
        Forged::new().created(0, Life::default()).breaks(check);
    }
}
