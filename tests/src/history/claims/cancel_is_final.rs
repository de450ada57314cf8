//! After a cancel of a live task was acknowledged, the task is cancelled, on every node and for ever.
//!
//! A task may have ended before the cancel reached it, which the acknowledgement does not say. Its end tells: it may not be
//! later than the acknowledgement, and a task that never ends by itself has no other end unless its node was lost.

use crate::history::Tasks;

/// What breaks it.
pub fn check(tasks: &Tasks<'_>) -> Vec<String> {
    tasks.each(|task| {
        let acknowledged = task.cancels.iter().filter(|(_, acknowledged)| *acknowledged);
        let Some(first) = acknowledged.map(|(entry, _)| entry.heard).min() else { return Vec::new() };
        let endless = task.created.is_some_and(|created| created.life.endless);
        let live = task.reads.iter().find(|(entry, state)| entry.sent > first && !state.is_terminal());
        let live = live.map(|(entry, state)| {
            format!("acknowledged at {first}, {} on node {} at {}", state.status, entry.node, entry.sent)
        });
        let other = task.end().filter(|(_, end)| end.status != "cancelled").and_then(|(_, end)| {
            let ended = u64::try_from(end.updated).unwrap_or(0) * 1000;
            let late = ended > first;
            let impossible = endless && !end.is_lost();
            (late || impossible).then(|| format!("acknowledged at {first}, {} at {ended}", end.status))
        });
        live.into_iter().chain(other).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::history::forged::{Forged, lost, said, state};
    use crate::history::{Life, State};

    fn at(updated: i64, state: State) -> State {
        State { updated, ..state }
    }

    #[test]
    fn a_task_that_lives_on_is_noticed() {
        let forged = || Forged::new().cancelled(100, true);
        forged().read(105, state("working")).read(200, at(104, state("cancelled"))).holds(check);
        forged().on(1).read(200, state("working")).breaks(check);
        Forged::new().cancelled(100, false).on(1).read(200, state("working")).holds(check);
    }

    #[test]
    fn another_end_is_noticed_unless_it_came_before() {
        let forged = || Forged::new().cancelled(100, true);
        forged().read(200, at(104, said("a"))).holds(check);
        forged().read(200, at(150, said("a"))).breaks(check);
    }

    #[test]
    fn a_task_that_never_ends_by_itself_has_no_other_end() {
        let endless = Life { endless: true, ..Life::default() };
        let forged = || Forged::new().created(0, endless.clone()).cancelled(100, true);
        forged().read(200, at(104, state("cancelled"))).holds(check);
        forged().read(200, at(90, lost())).holds(check);
        forged().read(200, at(90, said("a"))).breaks(check);
    }
}
