//! `lastUpdatedAt` never goes back for those who look at one node, one read after the other.

use std::collections::BTreeMap;

use crate::history::Tasks;

/// What breaks it.
pub fn check(tasks: &Tasks<'_>) -> Vec<String> {
    tasks.each(|task| {
        let mut wrong = Vec::new();
        // Reads are in the order of what was heard: of each node, those that were heard before the one at hand was sent.
        let mut by_node: BTreeMap<usize, Vec<_>> = BTreeMap::new();
        for (entry, state) in &task.reads {
            by_node.entry(entry.node).or_default().push((entry, state));
        }
        for (node, mut reads) in by_node {
            let mut heard = reads.clone();
            heard.sort_by_key(|(entry, _)| entry.heard);
            reads.sort_by_key(|(entry, _)| entry.sent);
            let (mut seen, mut newest) = (heard.into_iter().peekable(), i64::MIN);
            for (entry, state) in reads {
                while let Some((_, before)) = seen.next_if(|(before, _)| before.heard < entry.sent) {
                    newest = newest.max(before.updated);
                }
                if state.updated < newest {
                    wrong.push(format!("node {node} showed {newest}, then {} at {}", state.updated, entry.sent));
                }
            }
        }
        wrong
    })
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::history::State;
    use crate::history::forged::{Forged, state};

    fn at(updated: i64) -> State {
        State { updated, ..state("working") }
    }

    #[test]
    fn an_older_state_after_a_newer_one_is_noticed() {
        Forged::new().read(0, at(5)).read(100, at(7)).read(105, at(5)).read(200, at(7)).holds(check);
        Forged::new().read(0, at(5)).read(100, at(7)).read(200, at(5)).breaks(check);
        // The claim is about one node.
        Forged::new().read(100, at(7)).on(1).read(200, at(5)).holds(check);
    }
}
