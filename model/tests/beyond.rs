//! The simulator walks the same way from the same seed, and a record that core disagrees with is found.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io::Write as _;

use tokkuri_model::{conformance, mutants, simulate};

#[test]
fn the_same_seed_walks_the_same_way() {
    let (one, other) = (simulate::run(7, 3_000), simulate::run(7, 3_000));
    assert_eq!(one, other);
    assert_eq!(one.broken, None);
    assert_ne!(one.reached, simulate::run(8, 3_000).reached);
}

#[test]
fn at_least_25_wrong_rules_are_to_be_noticed_and_every_claim_notices_one() {
    assert!(mutants::TABLE.len() >= 25);
    let all: Vec<_> = mutants::TABLE.iter().collect();
    assert!(mutants::idle(&all).is_empty(), "claims that notice nothing: {:?}", mutants::idle(&all));
    assert!(!mutants::idle(&all[..all.len() / 2]).is_empty(), "half of the wrong rules are not enough");
}

/// A task that is inserted, cancelled, and then said to be completed.
#[test]
fn a_late_result_in_a_trace_diverges_at_its_line() {
    let insert = concat!(
        r#"{"task":"AQEBAQEBAQEBAQEBAQEBAQEB","now":1000,"did":{"insert":{"id":"AQEBAQEBAQEBAQEBAQEBAQEB","revision":1,"#,
        r#""origin":{"owner":{"principal":"a","server":"s","client":"","resource":""},"tool":"t","scopes":[],"#,
        r#""capabilities":{},"traceparent":null,"restartable":false,"created":1000,"poll_interval_ms":10,"keep_ms":50,"#,
        r#""max_questions":3},"node":1,"attempt":1,"phase":{"live":{"arguments":{"x":1},"questions":{}}},"#,
        r#""status_message":null,"updated":1000,"ttl_ms":100,"slot":null}},"came":"stored","revision":1,"status":"working"}"#
    );
    let cancel = r#"{"task":"AQEBAQEBAQEBAQEBAQEBAQEB","now":1001,"did":"cancel","came":"stored","revision":2,"status":"cancelled"}"#;
    let late = r#"{"task":"AQEBAQEBAQEBAQEBAQEBAQEB","now":1002,"did":{"complete":[1,{"ok":true},null]},"came":"stored","revision":3,"status":"completed"}"#;

    let good = file("good.jsonl", &[insert, cancel]);
    let conforming = conformance::replay(&good).unwrap().unwrap();
    assert_eq!((conforming.records, conforming.tasks), (2, 1));

    let bad = file("bad.jsonl", &[insert, cancel, late]);
    let diverging = conformance::replay(&bad).unwrap().unwrap_err();
    assert_eq!(diverging.line, 3);
    assert!(diverging.why.contains("Refused"), "{}", diverging.why);
}

fn file(name: &str, lines: &[&str]) -> std::path::PathBuf {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut file = std::fs::File::create(&path).unwrap();
    for line in lines {
        writeln!(file, "{line}").unwrap();
    }
    path
}
