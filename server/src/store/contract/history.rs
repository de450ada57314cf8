//! What was seen of each task so far, and what it says about every later answer.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use tokkuri_core::id::{Revision, TaskId};
use tokkuri_core::task::invariant;
use tokkuri_core::time::Millis;

use super::samples::{Shared, holds, short};

/// The states of tasks that a store showed or acknowledged, by revision.
#[derive(Debug, Default)]
pub(super) struct History(Mutex<HashMap<TaskId, BTreeMap<Revision, Shared>>>);

impl History {
    /// A state that the store showed, or that it said it stored.
    pub(super) fn observe(&self, state: &Shared) -> Result<(), String> {
        invariant::check(state).map_err(|broken| format!("{broken}: {}", short(state)))?;
        let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let states = tasks.entry(state.id).or_default();
        if let Some(known) = states.get(&state.revision) {
            let why = || format!("two states under one revision: {} and {}", short(known), short(state));
            return holds(known == state, why);
        }
        let before = states.range(..state.revision).next_back();
        let after = states.range(state.revision..).next();
        for (earlier, later) in before.map(|(_, it)| (it, state)).into_iter().chain(after.map(|(_, it)| (state, it))) {
            invariant::check_step(earlier, later)
                .map_err(|broken| format!("{broken}: first {}, then {}", short(earlier), short(later)))?;
        }
        states.insert(state.revision, state.clone());
        Ok(())
    }

    /// The newest state that is known of a task.
    pub(super) fn newest(&self, id: TaskId) -> Option<Shared> {
        let tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.get(&id)?.last_key_value().map(|(_, state)| state.clone())
    }

    /// A load was answered with `loaded` at `now`; when it was sent, `known` was the newest known state.
    pub(super) fn loaded(known: Option<&Shared>, now: Millis, loaded: Option<&Shared>) -> Result<(), String> {
        match (known, loaded) {
            (Some(known), Some(loaded)) => holds(loaded.revision >= known.revision, || {
                format!("an older state after a newer one: {} after {}", short(loaded), short(known))
            }),
            (Some(known), None) => holds(!known.is_visible(now), || {
                format!("at {} there is no task, though it lives until {}: {}", now.0, known.expires().0, short(known))
            }),
            (None, _) => Ok(()),
        }
    }
}
