//! What somebody in this process holds: loaded once more, it is the same one in memory.
//!
//! A result may be large, and those who asked for it slow to read it. Each of them would hold a copy of their own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokkuri_core::id::TaskId;
use tokkuri_core::store::Outcome;
use tokkuri_core::task::Task;
use tokkuri_core::wire::Json;

/// So many entries are kept before the first look for those that nobody holds any more.
const FEW: usize = 64;

/// The tasks that were loaded last, for as long as somebody holds them.
#[derive(Debug, Default)]
pub(super) struct Held(Mutex<Tasks>);

#[derive(Debug, Default)]
struct Tasks {
    by_id: HashMap<TaskId, Weak<Task<Json>>>,
    /// At this number of entries it is looked for those that nobody holds: so often that what is held outweighs them.
    look_at: usize,
}

impl Held {
    /// What was loaded, or what is held if it is the same.
    pub(super) fn in_place_of(&self, outcome: Outcome<Json>) -> Outcome<Json> {
        match outcome {
            Outcome::Loaded(Some(task)) => Outcome::Loaded(Some(self.one(task))),
            outcome => outcome,
        }
    }

    fn one(&self, task: Arc<Task<Json>>) -> Arc<Task<Json>> {
        // No code under this lock panics, so a poisoned lock guards whole state.
        let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let held = tasks.by_id.get(&task.id).and_then(Weak::upgrade);
        // A revision of a task is stored once. A reading that is late is older than what is held, and does not replace it.
        if let Some(held) = held.filter(|held| held.revision >= task.revision) {
            return if held.revision == task.revision { held } else { task };
        }
        tasks.by_id.insert(task.id, Arc::downgrade(&task));
        if tasks.by_id.len() > tasks.look_at.max(FEW) {
            tasks.by_id.retain(|_, task| task.strong_count() > 0);
            tasks.look_at = 2 * tasks.by_id.len();
        }
        task
    }
}

#[cfg(test)]
mod tests {
    use tokkuri_core::access::Owner;
    use tokkuri_core::id::{NodeId, Revision};
    use tokkuri_core::task::Draft;
    use tokkuri_core::time::Millis;

    use super::*;

    fn task(id: u8, revision: u64) -> Arc<Task<Json>> {
        let owner = Owner { principal: "a".into(), server: "s".into(), client: "".into(), resource: "".into() };
        let draft = Draft::new(TaskId::from_bytes([id; 18]), owner, "t", Json::parse("{}").unwrap(), NodeId(1));
        Arc::new(Task { revision: Revision(revision), ..draft.created(Millis(1)) })
    }

    #[test]
    fn the_same_state_is_one_for_as_long_as_it_is_held() {
        let held = Held::default();
        let first = held.one(task(1, 2));
        assert!(Arc::ptr_eq(&first, &held.one(task(1, 2))));
        assert_eq!(held.one(task(1, 1)).revision, Revision(1), "an older one is itself");
        let newer = held.one(task(1, 3));
        assert_eq!(newer.revision, Revision(3));
        assert!(Arc::ptr_eq(&newer, &held.one(task(1, 3))));
        assert!(!Arc::ptr_eq(&newer, &held.one(task(2, 3))), "another task is another one");
        drop((first, newer));
        let again = task(1, 3);
        assert!(Arc::ptr_eq(&again, &held.one(Arc::clone(&again))), "nobody holds it any more");
    }

    #[test]
    fn what_nobody_holds_is_forgotten() {
        let held = Held::default();
        let kept = held.one(task(0, 1));
        for id in 1..=255 {
            held.one(task(id, 1));
        }
        let tasks = held.0.lock().unwrap();
        assert!(tasks.by_id.len() <= FEW + 1, "{}", tasks.by_id.len());
        assert!(tasks.by_id.contains_key(&kept.id));
    }
}
