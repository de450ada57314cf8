//! `tokkuri-model check`: explores parts of worlds side by side, and says what came of it.

use std::collections::VecDeque;
use std::io::IsTerminal as _;
use std::path::Path;
use std::sync::Mutex;

use anyhow::Context as _;
use serde_json::json;

use crate::check::{Progress, Report, Until, check};
use crate::regression;
use crate::worlds::{Part, pinned};

/// Whether every claim holds.
pub(super) fn run(
    parts: &[(&'static str, Part)],
    pinned: bool,
    json: Option<&Path>,
    traces: &Path,
    jobs: usize,
) -> anyhow::Result<bool> {
    let terminal = std::io::stderr().is_terminal();
    let queue = Mutex::new(parts.iter().enumerate().collect::<VecDeque<_>>());
    let reports = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..jobs.min(parts.len()) {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner).pop_front();
                    let Some((at, (world, part))) = next else { return };
                    let name = format!("{world}/{}", part.name());
                    let mut lines = 0_u32;
                    let report = check(part.clone(), Until::AnyViolation, |progress| {
                        lines += 1;
                        if terminal {
                            eprint!("\r\x1b[2K{}", say(&name, progress));
                        } else if lines.is_multiple_of(20) {
                            eprintln!("{}", say(&name, progress));
                        }
                    });
                    if terminal {
                        eprint!("\r\x1b[2K");
                    }
                    print(&name, &report);
                    reports.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((at, *world, report));
                }
            });
        }
    });
    let mut reports = reports.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    reports.sort_by_key(|(at, ..)| *at);
    let mut ok = true;
    for (at, world, report) in &reports {
        ok &= report.is_ok();
        for violation in &report.violations {
            println!("\n{world}/{}: {} does not hold", report.scene, violation.claim);
            println!("  it says: {}", violation.says);
            println!("  but: {}\n", violation.why);
            for (number, step) in violation.steps.iter().enumerate() {
                println!("{:>4}. {step}", number + 1);
            }
            if let Part::Tasks(scene) = &parts[*at].1 {
                let file = traces.join(format!("{}_{world}_{}.txt", violation.claim, report.scene));
                let text = regression::write(world, scene, violation);
                std::fs::create_dir_all(traces).with_context(|| format!("making {}", traces.display()))?;
                std::fs::write(&file, text).with_context(|| format!("writing {}", file.display()))?;
                println!("\nwritten to {}: core's tests replay it from there", file.display());
            }
        }
        let pin = pinned::distinct(world, report.scene).filter(|_| pinned && report.violations.is_empty());
        if let Some(pin) = pin.filter(|pin| *pin != report.distinct) {
            ok = false;
            println!(
                "\n{world}/{}: {} distinct states; {pin} are pinned. What changed?",
                report.scene, report.distinct
            );
        }
        for premise in &report.unreached {
            println!("\n{world}/{}: not {premise}. The claim says nothing here.", report.scene);
        }
    }
    let distinct: usize = reports.iter().map(|(.., report)| report.distinct).sum();
    let generated: usize = reports.iter().map(|(.., report)| report.generated).sum();
    let peak = peak_mb().map_or(String::new(), |mb| format!(", at most {mb} MB of memory"));
    let verdict = if ok { "every claim holds" } else { "NOT all is as it should be" };
    println!("\n{distinct} distinct states of {generated} generated in {} parts{peak}: {verdict}", reports.len());
    if let Some(json) = json {
        let text = serde_json::to_string_pretty(&reports.iter().map(as_json).collect::<Vec<_>>())?;
        std::fs::write(json, text).with_context(|| format!("writing {}", json.display()))?;
    }
    Ok(ok)
}

fn say(name: &str, Progress { distinct, generated, depth, elapsed_ms }: Progress) -> String {
    let rate = generated as u64 * 1_000 / elapsed_ms.max(1);
    format!("{name}: {distinct} states, depth {depth}, {rate} generated/s")
}

fn print(name: &str, report: &Report) {
    let verdict = if report.is_ok() { "ok" } else { "BROKEN" };
    println!(
        "{name:<20} {verdict:<6} {:>9} distinct {:>10} generated  depth {:>3} {:>7.1} s {:>7}/s",
        report.distinct,
        report.generated,
        report.depth,
        report.elapsed_ms as f64 / 1_000.0,
        report.rate()
    );
}

fn as_json((_, world, report): &(usize, &'static str, Report)) -> serde_json::Value {
    let violations = report.violations.iter();
    let violations: Vec<_> =
        violations.map(|it| json!({"claim": it.claim, "says": it.says, "why": it.why, "steps": it.steps})).collect();
    json!({
        "world": world, "part": report.scene, "ok": report.is_ok(), "distinct": report.distinct,
        "generated": report.generated, "depth": report.depth, "elapsedMs": report.elapsed_ms, "rate": report.rate(),
        "violations": violations, "unreached": report.unreached,
    })
}

/// The most memory that this process has had, where the system tells.
fn peak_mb() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? / 1_024)
}
