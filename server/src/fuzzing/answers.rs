//! `tasks/update` bodies against stored questions of every kind.

use std::sync::LazyLock;

use tokkuri_core::id::Key;
use tokkuri_core::task::{Command, Task, invariant};
use tokkuri_core::time::Millis;
use tokkuri_core::wire::{DetailedTask, Json, UpdateParams};

use super::commands::task;

const NOW: Millis = Millis(2_000);

/// Four questions, under the keys a to d.
static ASKED: LazyLock<Task<Json>> = LazyLock::new(|| {
    let questions = [
        (
            "a",
            r#"{"method":"elicitation/create","params":{"mode":"form","message":"m","requestedSchema":{"type":"object","properties":{
            "s":{"type":"string","minLength":2,"maxLength":4},"e":{"type":"string","format":"email"},"d":{"type":"string","format":"date-time"},
            "i":{"type":"integer","minimum":-3,"maximum":9},"f":{"type":"number"},"b":{"type":"boolean","default":true},
            "c":{"type":"string","enum":["x","y"]},"o":{"type":"string","oneOf":[{"const":"x","title":"X"}]},
            "m":{"type":"array","minItems":1,"maxItems":2,"items":{"type":"string","enum":["x","y","z"]}}},"required":["s"]}}}"#,
        ),
        (
            "b",
            r#"{"method":"elicitation/create","params":{"mode":"url","message":"m","url":"https://example.com","elicitationId":"e"}}"#,
        ),
        ("c", r#"{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}"#),
        ("d", r#"{"method":"roots/list"}"#),
    ];
    let mut task = task(false);
    for (key, request) in questions {
        let request = Json::parse(request).expect("JSON");
        let ask = Command::Ask { by: task.attempt, key: Key::from(key), request };
        task.apply(NOW, ask, &mut Vec::new()).expect("it may be asked");
    }
    task
});

/// The parameters of a `tasks/update`: what is stored of them fits its question, and what is refused changes nothing.
pub fn answers(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(params) = serde_json::from_str::<UpdateParams<'_>>(text) else { return };
    let answers = params.answers();
    let mut task = ASKED.clone();
    let outcome = task.apply(NOW, Command::Answer { answers: answers.clone() }, &mut Vec::new());
    assert_eq!(invariant::check(&task), Ok(()));
    if outcome.is_err() {
        assert_eq!(task, *ASKED, "all or nothing");
        return;
    }
    let live = task.live().expect("an answer does not end a task");
    for (key, question) in &live.questions {
        match answers.get(key) {
            Some(answer) => assert_eq!(question.answer.as_ref(), Some(answer), "it is stored byte for byte"),
            None => assert_eq!(question.answer, None),
        }
    }
    serde_json::to_string(&DetailedTask(&task)).expect("it can be shown");
    let again = task.clone();
    task.apply(NOW, Command::Answer { answers }, &mut Vec::new()).expect("the same again is acknowledged");
    assert_eq!(task, again, "the first answer counts");
}
