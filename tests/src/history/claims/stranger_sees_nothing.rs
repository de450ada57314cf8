//! Nobody but its owner ever sees a task.

use crate::history::Tasks;

/// What breaks it.
pub fn check(tasks: &Tasks<'_>) -> Vec<String> {
    tasks.each(|task| {
        let Some(created) = task.created else { return Vec::new() };
        let strangers = task.states().filter(|(entry, _)| entry.by != created.entry.by);
        strangers.map(|(entry, _)| format!("{} sees a task of {}", entry.by, created.entry.by)).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::history::Life;
    use crate::history::forged::{Forged, state};

    #[test]
    fn a_stranger_who_sees_is_noticed() {
        let forged = || Forged::new().created(0, Life::default()).read(100, state("working"));
        forged().by("bob").not_found(200).holds(check);
        forged().by("bob").read(200, state("working")).breaks(check);
    }
}
