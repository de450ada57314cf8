//! A task has one outcome, whoever looks, wherever, and however often.

use std::collections::BTreeSet;

use crate::history::Tasks;

/// What breaks it.
pub fn check(tasks: &Tasks<'_>) -> Vec<String> {
    tasks.each(|task| {
        let ends: BTreeSet<_> =
            task.states().filter(|(_, state)| state.is_terminal()).map(|(_, state)| state.end()).collect();
        if ends.len() > 1 { vec![format!("{ends:?}")] } else { Vec::new() }
    })
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::history::forged::{Forged, said, state};

    #[test]
    fn two_outcomes_are_noticed_even_at_the_same_time() {
        let forged = || Forged::new().read(100, said("a"));
        forged().on(1).read(100, said("a")).told(100, 1, said("a")).holds(check);
        forged().on(1).read(100, said("b")).breaks(check);
        forged().on(1).told(100, 1, state("cancelled")).breaks(check);
    }
}
