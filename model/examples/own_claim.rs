//! One claim of your own, in a scene of your own.
//!
//! `cargo run --release -p tokkuri-model --example own_claim`
//!
//! The claim: no run is stopped by a shutdown in a scene where nobody shuts down. A claim is a function of a state;
//! what it needs to remember of the past has to be in the state (here, the monitor itself remembers).

use tokkuri_core::run::Stop;
use tokkuri_model::check::{Until, check_world};
use tokkuri_model::frame::World;
use tokkuri_model::frame::claim::{self, Claim, Told};
use tokkuri_model::frame::payload::Who;
use tokkuri_model::frame::scene::{Do, Faults, Request, Scene, What};

/// 1. Say it: what must hold in every state, and what shows that it is not an empty claim.
const ONLY_REAL_REASONS: Claim = Claim {
    name: "only_real_reasons",
    says: "no run of this scene is stopped by a shutdown: nobody shuts down here",
    premise: "only_real_reasons, reached: a run is stopped",
    told: Told::OfState {
        holds: |_, state| {
            for node in &state.nodes {
                if let Some((id, run)) = node.host.runs().find(|(_, run)| run.stop() == Some(Stop::Shutdown)) {
                    return Err(format!("run {} of {id} is", run.attempt().0));
                }
            }
            Ok(())
        },
        premise: |_, state| state.nodes.iter().any(|node| node.host.runs().any(|(_, run)| run.stop().is_some())),
    },
};

fn main() -> std::process::ExitCode {
    // 2. Set the scene: who is there, what they may try, what may go wrong, which premises have to be reached.
    let cancel = Request { door: 1, who: Who::Ann, what: What::Cancel { task: 0 } };
    let scene = Scene {
        name: "own",
        about: "a cancel through the other node's door while the tool ends",
        nodes: 2,
        requests: vec![cancel],
        tool: vec![Do::Progress(1), Do::Complete],
        faults: Faults { double: 1, ..Faults::default() },
        reaches: &["only_real_reasons", "cancel_reaches_run"],
        ..Scene::default()
    };
    // 3. Hold it, with the claims of the frame, against every state.
    let mut claims = claim::all();
    claims.push(ONLY_REAL_REASONS);
    let report = check_world(World::with_claims(scene, claims), Until::AnyViolation, |_| {});
    println!("{} distinct states, {} claims broken", report.distinct, report.violations.len());
    for violation in &report.violations {
        println!("{}: {}", violation.claim, violation.why);
        violation.steps.iter().zip(1..).for_each(|(step, number)| println!("{number:>3}. {step}"));
    }
    if report.is_ok() { std::process::ExitCode::SUCCESS } else { std::process::ExitCode::FAILURE }
}
