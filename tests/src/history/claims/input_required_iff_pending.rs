//! A task is `input_required` exactly when a question is outstanding.

use crate::history::Tasks;

/// What breaks it.
pub fn check(tasks: &Tasks<'_>) -> Vec<String> {
    tasks.each(|task| {
        let wrong = task.states().filter(|(_, state)| (state.status == "input_required") == state.questions.is_empty());
        wrong
            .map(|(entry, state)| {
                format!("{} with {} questions at {}", state.status, state.questions.len(), entry.sent)
            })
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::history::State;
    use crate::history::forged::{Forged, asking, state};

    #[test]
    fn a_status_without_its_question_is_noticed() {
        Forged::new().read(0, asking(&[("q1", "{}")])).read(100, state("working")).holds(check);
        Forged::new().read(0, state("input_required")).breaks(check);
        Forged::new().told(0, 1, State { status: "working".into(), ..asking(&[("q1", "{}")]) }).breaks(check);
    }
}
