//! Whatever happens, a client hears what it asked for, that it should try again, or nothing.

use crate::history::{Tasks, What};

/// What breaks it.
pub fn check(tasks: &Tasks<'_>) -> Vec<String> {
    let wrong = tasks.entries.iter().filter_map(|entry| match &entry.what {
        What::Unexpected { what, answer } => Some(format!("{what} on node {} at {}: {answer}", entry.node, entry.sent)),
        _ => None,
    });
    wrong.collect()
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::history::What;
    use crate::history::forged::Forged;

    #[test]
    fn another_error_is_noticed() {
        let later = What::Later { what: "tasks/get".into() };
        let unheard = What::Unheard { what: "tasks/get".into(), why: "reset".into() };
        Forged::new().entry(0, later).entry(100, unheard).holds(check);
        let answer = "internal error".into();
        Forged::new().entry(0, What::Unexpected { what: "tasks/get".into(), answer }).breaks(check);
    }
}
