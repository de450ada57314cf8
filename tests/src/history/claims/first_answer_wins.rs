//! Of several answers to one question one is taken, and none that was sent after another was acknowledged. What was answered is
//! not asked again.
//!
//! Clients answer only what they have seen asked, so an answer that is acknowledged was either taken or came after one that was.

use crate::history::TaskHistory;
use crate::history::Tasks;

/// What breaks it.
pub fn check(tasks: &Tasks<'_>) -> Vec<String> {
    tasks.each(|task| asked_again(task).chain(taken(task)).collect())
}

/// Questions that are asked after they were answered.
fn asked_again(task: &TaskHistory<'_>) -> impl Iterator<Item = String> {
    let answers = task.answers.iter().filter(|answer| answer.acknowledged);
    answers.filter_map(|answer| {
        let after = |at: u64| at > answer.entry.heard;
        let (entry, _) =
            task.reads.iter().find(|(entry, state)| after(entry.sent) && state.questions.contains_key(answer.key))?;
        Some(format!(
            "{} answered at {}, asked on node {} at {}",
            answer.key, answer.entry.heard, entry.node, entry.sent
        ))
    })
}

/// Answers in the result that cannot be the first.
fn taken(task: &TaskHistory<'_>) -> Vec<String> {
    let questions = task.created.map_or(0, |created| created.life.questions);
    let Some(text) = task.end().and_then(|(_, end)| end.text.as_deref()).filter(|_| questions > 0) else {
        return Vec::new();
    };
    let names: Vec<&str> = text.split(',').collect();
    if names.len() != questions {
        return vec![format!("{questions} questions, and the result is {text:?}")];
    }
    let keys = (1..=questions).map(|n| format!("q{n}"));
    let wrong = keys.zip(names).filter_map(|(key, name)| {
        let mut given = task.answers.iter().filter(|answer| answer.key == key);
        let Some(taken) = given.clone().find(|answer| answer.name == name) else {
            return Some(format!("nobody answered {key} with {name:?}"));
        };
        let before = given.find(|answer| answer.acknowledged && answer.entry.heard < taken.entry.sent)?;
        Some(format!(
            "{key} is {name:?}, sent at {}; {:?} was acknowledged at {}",
            taken.entry.sent, before.name, before.entry.heard
        ))
    });
    wrong.collect()
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::history::Life;
    use crate::history::forged::{Forged, asking, said};

    fn forged() -> Forged {
        let life = Life { questions: 2, ..Life::default() };
        Forged::new().created(0, life).answered(100, "q2", "z", true)
    }

    #[test]
    fn an_answer_that_came_after_an_acknowledged_one_is_noticed() {
        forged().answered(200, "q1", "a", true).answered(300, "q1", "b", true).read(400, said("a,z")).holds(check);
        forged().answered(200, "q1", "a", true).answered(205, "q1", "b", true).read(400, said("b,z")).holds(check);
        forged().answered(200, "q1", "a", false).answered(300, "q1", "b", true).read(400, said("b,z")).holds(check);
        forged().answered(200, "q1", "a", true).answered(300, "q1", "b", true).read(400, said("b,z")).breaks(check);
    }

    #[test]
    fn an_answer_that_nobody_gave_is_noticed() {
        forged().answered(200, "q1", "a", true).read(400, said("c,z")).breaks(check);
        forged().answered(200, "q1", "a", true).read(400, said("a")).breaks(check);
    }

    #[test]
    fn a_question_that_comes_back_is_noticed() {
        forged().answered(200, "q1", "a", true).read(205, asking(&[("q1", "{}")])).holds(check);
        forged().answered(200, "q1", "a", true).read(300, asking(&[("q1", "{}")])).breaks(check);
    }
}
