//! The command `tokkuri-model`.

mod check;
mod mutants;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};

use crate::frame::World;
use crate::small::Explored;
use crate::worlds::{self, Bounds, Part};

/// Checks the machines of tokkuri-core: the code that is shipped, not a drawing of it.
#[derive(Debug, Parser)]
#[command(name = "tokkuri-model", version)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Explores worlds to their end; exits 1 if a claim does not hold.
    Check {
        /// Which worlds, or parts of them (`cancel`, `cancel/races`); all if none is named.
        worlds: Vec<String>,
        /// How large they are.
        #[arg(long, value_enum, default_value_t)]
        bounds: Size,
        /// Where to write what came of it, as JSON.
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
        /// Where to write the trace of a violation.
        #[arg(long, value_name = "DIR", default_value = "core/tests/regressions")]
        traces: PathBuf,
        /// How many parts to explore side by side.
        #[arg(long, default_value_t = 2)]
        jobs: usize,
    },
    /// Shows a part of a world in stateright's explorer, in a browser.
    Explore {
        /// Which (`cancel/races`).
        part: String,
        /// The loopback port.
        #[arg(long, default_value_t = 3000)]
        port: u16,
        /// How large it is.
        #[arg(long, value_enum, default_value_t)]
        bounds: Size,
    },
    /// Puts wrong rules in force and looks for the claims that notice them. Needs a build with `--cfg tokkuri_mutants`.
    Mutants {
        /// Which, by name; all if none is named. Only all of them show whether every claim notices one.
        rules: Vec<String>,
        /// Where to write the trace by which each is noticed.
        #[arg(long, value_name = "DIR")]
        traces: Option<PathBuf>,
    },
    /// Walks at random through worlds of hundreds of tasks.
    Simulate {
        /// Where to start; the same seed walks the same way.
        #[arg(long)]
        seed: Option<u64>,
        /// How many steps in all.
        #[arg(long, default_value_t = 200_000)]
        steps: u64,
    },
    /// Runs what a server recorded through core, and reports the first divergence.
    Replay {
        /// JSON lines.
        file: PathBuf,
    },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Size {
    /// What CI checks: minutes.
    #[default]
    Small,
    /// What a long run checks.
    Large,
}

impl From<Size> for Bounds {
    fn from(size: Size) -> Self {
        match size {
            Size::Small => Self::Small,
            Size::Large => Self::Large,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// What is wrong with the arguments or with a file.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let ok = match arguments.command {
        Command::Check { worlds, bounds, json, traces, jobs } => {
            let pinned = bounds == Size::Small;
            check::run(&chosen(&worlds, bounds.into())?, pinned, json.as_deref(), &traces, jobs.max(1))?
        }
        Command::Explore { part, port, bounds } => explore(&part, port, bounds.into())?,
        Command::Mutants { rules, traces } => mutants::run(&rules, traces.as_deref())?,
        Command::Simulate { seed, steps } => simulate(seed, steps),
        Command::Replay { file } => replay(&file)?,
    };
    Ok(if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The parts of these names, with their worlds.
fn chosen(names: &[String], bounds: Bounds) -> anyhow::Result<Vec<(&'static str, Part)>> {
    let all = || {
        worlds::ALL.iter().flat_map(move |world| (world.parts)(bounds).into_iter().map(move |part| (world.name, part)))
    };
    if names.is_empty() {
        return Ok(all().collect());
    }
    let mut chosen = Vec::new();
    for name in names {
        let before = chosen.len();
        chosen.extend(all().filter(|(world, part)| name == world || *name == format!("{world}/{}", part.name())));
        if chosen.len() == before {
            let known: Vec<_> = all().map(|(world, part)| format!("{world}/{}", part.name())).collect();
            anyhow::bail!("there is no world {name:?}; there are {}", known.join(", "));
        }
    }
    Ok(chosen)
}

fn explore(name: &str, port: u16, bounds: Bounds) -> anyhow::Result<bool> {
    use stateright::Model as _;
    let (_, part) = chosen(&[name.to_owned()], bounds)?.swap_remove(0);
    eprintln!("{name}: open http://127.0.0.1:{port} in a browser");
    match part {
        Part::Tasks(scene) => {
            World::new(*scene).checker().serve(("127.0.0.1", port));
        }
        Part::Inline(inline) => {
            Explored::new(inline).checker().serve(("127.0.0.1", port));
        }
        Part::Follow(listeners) => {
            Explored::new(*listeners).checker().serve(("127.0.0.1", port));
        }
        Part::Queue(places) => {
            Explored::new(*places).checker().serve(("127.0.0.1", port));
        }
    }
    Ok(true)
}

fn simulate(seed: Option<u64>, steps: u64) -> bool {
    let seed = seed.unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.map_or(1, |now| now.as_nanos() as u64)
    });
    println!("seed {seed}, {steps} steps");
    let outcome = crate::simulate::run(seed, steps);
    for (what, times) in &outcome.reached {
        println!("  {times:>9} × {what}");
    }
    match &outcome.broken {
        None => {
            println!("{} steps in {} walks, {} tasks: every claim holds", outcome.steps, outcome.walks, outcome.tasks);
            true
        }
        Some(broken) => {
            println!("\n{} does not hold: {}\n", broken.claim, broken.why);
            for (number, step) in broken.last.iter().enumerate() {
                println!("{:>4}. {step}", broken.at + 1 - broken.last.len() + number);
            }
            println!("\nto see it again: tokkuri-model simulate --seed {} --steps {}", broken.seed, broken.at);
            false
        }
    }
}

fn replay(file: &std::path::Path) -> anyhow::Result<bool> {
    match crate::conformance::replay(file)? {
        Ok(conforming) => {
            println!("{} records of {} tasks: core does what the server did", conforming.records, conforming.tasks);
            Ok(true)
        }
        Err(divergence) => {
            println!("{divergence}");
            Ok(false)
        }
    }
}
