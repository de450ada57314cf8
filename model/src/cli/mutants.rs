//! `tokkuri-model mutants`: the table of wrong rules and of the claims that notice them.

use std::path::Path;

/// Whether every wrong rule is noticed, and every claim notices one.
#[cfg(tokkuri_mutants)]
pub(super) fn run(names: &[String], traces: Option<&Path>) -> anyhow::Result<bool> {
    use crate::mutants::{Outcome, TABLE};

    println!("{:<26} {:<28} {:<18} {:>9} {:>7}", "wrong rule", "is noticed by", "in", "states", "ms");
    let outcomes = crate::mutants::run(names, |Outcome { expected, states, elapsed_ms, .. }| {
        let place = format!("{}/{}", expected.world, expected.part);
        let states = states.map_or("SURVIVES".to_owned(), |states| states.to_string());
        println!("{:<26} {:<28} {place:<18} {states:>9} {elapsed_ms:>7}", expected.mutant, expected.claim);
    });
    if let Some(traces) = traces {
        std::fs::create_dir_all(traces)?;
        for Outcome { expected, trace, .. } in &outcomes {
            if let Some(trace) = trace {
                std::fs::write(traces.join(format!("{}_{}.txt", expected.claim, expected.mutant)), trace)?;
            }
        }
    }
    let survivors = outcomes.iter().filter(|outcome| outcome.states.is_none()).count();
    if !names.is_empty() {
        println!("\n{} times a wrong rule, {survivors} survive", outcomes.len());
        return Ok(survivors == 0);
    }
    let noticed: Vec<_> = outcomes.iter().filter(|it| it.states.is_some()).map(|it| &it.expected).collect();
    let idle = crate::mutants::idle(&noticed);
    let unknown: Vec<_> = TABLE.iter().filter(|row| !outcomes.iter().any(|it| it.expected == **row)).collect();
    println!("\n{} times a wrong rule, {survivors} survive; claims that notice none: {idle:?}", outcomes.len());
    anyhow::ensure!(unknown.is_empty(), "the table names rules that core does not have: {unknown:?}");
    Ok(survivors == 0 && idle.is_empty())
}

/// Says how to build it.
#[cfg(not(tokkuri_mutants))]
pub(super) fn run(_: &[String], _: Option<&Path>) -> anyhow::Result<bool> {
    anyhow::bail!(
        "this build knows only the right rules; build the wrong ones with it: \
         RUSTFLAGS=\"--cfg tokkuri_mutants\" cargo run --release --target-dir target/mutants -p tokkuri-model -- mutants"
    )
}
