//! The frame itself: a claim that is broken is found by the shortest way, and a way is told as text and back.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use tokkuri_model::check::{Until, check_world};
use tokkuri_model::frame::claim::{Claim, Told};
use tokkuri_model::frame::payload::Who;
use tokkuri_model::frame::scene::{Do, Request, Scene, What};
use tokkuri_model::frame::script::Script;
use tokkuri_model::frame::{World, claim};
use tokkuri_model::regression;

fn scene() -> Scene {
    let cancel = Request { door: 0, who: Who::Ann, what: What::Cancel { task: 0 } };
    Scene { name: "small", requests: vec![cancel], tool: vec![Do::Progress(1), Do::Complete], ..Scene::default() }
}

/// A claim that is false: a task is never cancelled.
fn never_cancelled() -> Claim {
    Claim {
        name: "never_cancelled",
        says: "no task is cancelled",
        premise: "never_cancelled, reached",
        told: Told::OfState {
            holds: |_, state| match state.shelf.rows().find(|row| row.status().as_str() == "cancelled") {
                Some(row) => Err(format!("task {} is", row.id)),
                None => Ok(()),
            },
            premise: |_, _| true,
        },
    }
}

#[test]
fn a_false_claim_is_broken_by_a_shortest_trace() {
    let world = World::with_claims(scene(), vec![never_cancelled()]);
    let report = check_world(world, Until::AnyViolation, |_| {});
    let [violation] = &report.violations[..] else { panic!("one claim is broken: {report:?}") };
    assert_eq!(violation.claim, "never_cancelled");
    assert_eq!(violation.steps.len(), 2, "send, commit: {:?}", violation.steps);
}

#[test]
fn a_trace_is_a_file_that_core_replays() {
    let world = World::with_claims(scene(), vec![never_cancelled()]);
    let report = check_world(world, Until::AnyViolation, |_| {});
    let text = regression::write("test", &scene(), &report.violations[0]);
    let script: Script = text.parse().unwrap();
    assert_eq!(script.claim, "never_cancelled");
    assert_eq!(script.steps().len(), 2, "{text}");
    // The claims of the frame hold, so the way is clean.
    assert_eq!(script.replay(), Ok(()));
}

#[test]
fn a_script_that_means_nothing_is_refused() {
    assert!("nodes many".parse::<Script>().is_err());
    assert!("request 0 ann dance 0".parse::<Script>().is_err());
    let nothing_possible: Script = "nodes 1\nrunning\ntool complete\nstep crash 0".parse().unwrap();
    assert!(nothing_possible.replay().is_err());
}

#[test]
fn the_claims_have_different_names() {
    let mut names: Vec<_> = claim::all().into_iter().map(|claim| claim.name).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
}
