//! Any commands on one task.

use std::collections::BTreeMap;

use tokkuri_core::access::Owner;
use tokkuri_core::id::{Attempt, Key, NodeId, TaskId};
use tokkuri_core::task::{Command, Draft, Fault, Task, invariant};
use tokkuri_core::time::Millis;
use tokkuri_core::wire::Json;

/// A task that lives for a minute and may ask four questions.
pub(super) fn task(restartable: bool) -> Task<Json> {
    let owner = Owner { principal: "p".into(), server: "s".into(), client: "".into(), resource: "".into() };
    let arguments = Json::parse("{}").expect("JSON");
    let draft = Draft {
        restartable,
        ttl_ms: 60_000,
        keep_ms: 1_000,
        max_questions: 4,
        ..Draft::new(TaskId::from_bytes([1; 18]), owner, "t", arguments, NodeId(1))
    };
    draft.created(Millis(1_000))
}

/// A sequence of commands, three bytes each: what, by whom or with what, and how much later. The task's claims hold after each.
pub fn commands(data: &[u8]) {
    let (&first, rest) = data.split_first().unwrap_or((&0, &[]));
    let mut task = task(first & 1 == 1);
    let mut now = Millis(1_000);
    for three in rest.chunks_exact(3) {
        let &[what, with, later] = three else { continue };
        // Clocks of stores may stand still or go back.
        now = if later & 0x80 == 0 { now.after(u64::from(later) * 16) } else { now.before(u64::from(later & 0x7f)) };
        let before = task.clone();
        let mut effects = Vec::new();
        match task.apply(now, command(what, with, task.attempt), &mut effects) {
            Ok(()) => {
                assert_eq!(invariant::check(&task), Ok(()));
                assert!(task.revision >= before.revision && task.updated >= before.updated, "it never goes back");
                assert_eq!(task.revision == before.revision, task == before, "a change has a new revision");
                assert!(task != before || effects.is_empty(), "no change, no effects");
                if before.status().is_terminal() {
                    assert_eq!(task, before, "an end is final");
                }
                assert!(task.ttl_ms >= before.ttl_ms, "time to live only grows");
            }
            Err(_) => {
                assert_eq!(task, before, "a refused command changes nothing");
                assert!(effects.is_empty());
            }
        }
    }
}

fn command(what: u8, with: u8, attempt: Attempt) -> Command<Json> {
    let by = if with & 0x40 == 0 { attempt } else { Attempt(u32::from(with & 7)) };
    let key = Key::from(["a", "b", "c", "d", "e", "A", "", "\u{0}"][usize::from(with & 7)]);
    let json = |text: &str| Json::parse(text).expect("JSON");
    match what % 9 {
        0 => Command::Progress { by, message: ["", "1/2", "2/2"][usize::from(with % 3)].into() },
        1 => Command::Ask { by, key, request: json(REQUESTS[usize::from(with >> 3) % REQUESTS.len()]) },
        2 => {
            Command::Answer { answers: BTreeMap::from([(key, json(ANSWERS[usize::from(with >> 3) % ANSWERS.len()]))]) }
        }
        3 => {
            Command::Complete { by, result: json("{\"content\":[]}"), message: (with & 8 != 0).then(|| "done".into()) }
        }
        4 => Command::Fail { by, fault: Fault::internal("no") },
        5 => Command::Cancel,
        6 => {
            let heir = (with & 8 != 0).then(|| NodeId(u64::from(with & 3)));
            Command::Lose { attempt: by, heir, why: "lost".into() }
        }
        7 if with & 0x20 != 0 => Command::HandOver { by, began: with & 8 != 0 },
        7 => Command::Note { by, slot: json("1") },
        _ => {
            let all = ["a", "b", "c", "d"].map(|key| (Key::from(key), json(ANSWERS[0])));
            Command::Answer { answers: BTreeMap::from(all) }
        }
    }
}

const REQUESTS: [&str; 4] = [
    r#"{"method":"elicitation/create","params":{"mode":"form","message":"m","requestedSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}}}"#,
    r#"{"method":"elicitation/create","params":{"mode":"url","message":"m","url":"https://example.com","elicitationId":"e"}}"#,
    r#"{"method":"roots/list"}"#,
    "7",
];

const ANSWERS: [&str; 5] = [
    r#"{"action":"accept","content":{"n":1}}"#,
    r#"{"action":"decline"}"#,
    r#"{"roots":[]}"#,
    r#"{"action":"accept","content":{}}"#,
    "null",
];
