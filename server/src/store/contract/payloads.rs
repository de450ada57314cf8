//! What passes through a store comes back as it went in.

use std::collections::BTreeMap;

use tokkuri_core::access::Owner;
use tokkuri_core::id::Attempt;
use tokkuri_core::store::{Filter, Outcome};
use tokkuri_core::task::{Command, Fault};

use super::Verdict;
use super::samples::{LONG_MS, draft, holds, json, short, unexpected};
use super::trial::Trial;

/// Values that do not survive being read as numbers and strings and written again.
const AWKWARD: &[&str] = &[
    r#"{"nul":"\u0000","lone":"\ud800","pair":"\ud83d\ude00","slash":"\/"}"#,
    "1e300",
    "-0.0",
    "123456789012345678901234567890",
    "0.1000000000000000055511151231257827",
    "[ 1 ,\t2 ,\n3 ]",
    r#"{"b":1,"a":2,"a":3}"#,
    r#""'; DROP TABLE tasks; -- % _ \\ $1 ?1 :a""#,
    "\"\u{7f}\u{e9}\u{2028}\u{1f600}\"",
    "null",
];

pub(super) async fn payloads_come_back_byte_for_byte(trial: Trial) -> Verdict {
    let megabytes = format!("\"{}\"", "0123456789abcdé\\n".repeat(5 << 20 >> 4));
    let values = AWKWARD.iter().copied().chain([megabytes.as_str()]);
    for (n, text) in (1_u64..).zip(values) {
        let value = json(text);
        let by = Attempt::FIRST;
        let mut it = draft(n);
        it.arguments = value.clone();
        let mut task = trial.inserted(it).await?;
        // The data of the question carries the value too; its answer is one that the question accepts.
        let request = json(&format!(r#"{{"method":"x/any","params":{text}}}"#));
        // No question accepts what cannot be read, a lone surrogate for one.
        let readable = serde_json::from_str::<serde_json::Value>(text).is_ok();
        let answer = json(&format!(r#"{{"any":{}}}"#, if readable { text } else { "0" }));
        let fault = Fault { code: i64::MIN, message: "\u{0}\u{1f600}\"'\\".into(), data: Some(value.clone()) };
        let end = match n % 2 {
            0 => Command::Complete { by, result: value.clone(), message: Some("nul \u{0} and\nlines".into()) },
            _ => Command::Fail { by, fault },
        };
        let commands = [
            Command::Note { by, slot: value.clone() },
            Command::Progress { by, message: "\u{0}'\"\\ %s".into() },
            Command::Ask { by, key: "'k\u{0}".into(), request },
            Command::Answer { answers: BTreeMap::from([("'k\u{0}".into(), answer)]) },
            end,
        ];
        for command in commands {
            let loaded = trial.there(task.id).await?;
            holds(loaded == task, || format!("loaded {}, stored {}", short(&loaded), short(&task)))?;
            task = trial.change(&task, command).await?;
        }
        let loaded = trial.there(task.id).await?;
        holds(loaded == task, || format!("loaded {}, stored {}", short(&loaded), short(&task)))?;
    }
    let mut it = draft(1_000);
    it.ttl_ms = u64::MAX;
    it.keep_ms = LONG_MS;
    let task = trial.inserted(it).await?;
    let loaded = trial.there(task.id).await?;
    holds(loaded == task, || format!("loaded {}, stored {}", short(&loaded), short(&task)))
}

pub(super) async fn owners_are_told_apart_whatever_they_are_called(trial: Trial) -> Verdict {
    let owner = |principal: &str, server: &str, client: &str, resource: &str| Owner {
        principal: principal.into(),
        server: server.into(),
        client: client.into(),
        resource: resource.into(),
    };
    let long = "x".repeat(2_000);
    let owners = [
        owner("", "", "", ""),
        owner("ab", "c", "", ""),
        owner("a", "bc", "", ""),
        owner("a", "b", "c", ""),
        owner("a", "b", "", "c"),
        owner("A", "b", "c", ""),
        owner("a\u{0}", "b", "c", ""),
        owner("a\u{0}b", "", "c", ""),
        owner("a\"", "',", "\\", "\n"),
        owner("é", "", "", ""),
        owner("e\u{301}", "", "", ""),
        owner("a ", "b", "c", ""),
        owner(&long, &long, &long, &long),
    ];
    for (n, owner) in (1_u64..).zip(&owners) {
        let mut it = draft(n);
        it.owner = owner.clone();
        let outcome = trial.insert(it.clone(), Some(1)).await?;
        holds(matches!(outcome, Outcome::Inserted(_)), || unexpected("Inserted, the owner's first", &outcome))?;
        it.id = draft(n + 100).id;
        let outcome = trial.insert(it, Some(1)).await?;
        holds(outcome == Outcome::AtTheLimit, || unexpected("AtTheLimit", &outcome))?;
    }
    for (n, owner) in (1_u64..).zip(&owners) {
        let (_, live) = trial.count(owner).await?;
        holds(live == 1, || format!("{} has {live} live tasks, wanted 1", short(owner)))?;
        let (_, tasks, _) = trial.page(Filter { owner: Some(owner.clone()), ..Filter::default() }, None, 10).await?;
        let ids: Vec<_> = tasks.iter().map(|task| task.id).collect();
        holds(ids == [draft(n).id], || format!("the page of {} has {ids:?}", short(owner)))?;
    }
    Ok(())
}
