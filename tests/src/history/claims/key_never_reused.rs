//! No two different requests come under one key of one task.

use std::collections::{BTreeMap, BTreeSet};

use crate::history::Tasks;

/// What breaks it.
pub fn check(tasks: &Tasks<'_>) -> Vec<String> {
    tasks.each(|task| {
        let mut asked: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (key, request) in task.states().flat_map(|(_, state)| &state.questions) {
            asked.entry(key).or_default().insert(request);
        }
        let twice = asked.into_iter().filter(|(_, requests)| requests.len() > 1);
        twice.map(|(key, requests)| format!("{key} asks {requests:?}")).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::history::forged::{Forged, asking};

    #[test]
    fn another_request_under_the_same_key_is_noticed() {
        let forged = || Forged::new().read(0, asking(&[("q1", "{1}")])).read(100, asking(&[("q2", "{2}")]));
        forged().on(1).read(200, asking(&[("q1", "{1}")])).holds(check);
        forged().on(1).read(200, asking(&[("q1", "{2}")])).breaks(check);
        forged().on(1).told(200, 1, asking(&[("q1", "{2}")])).breaks(check);
    }
}
