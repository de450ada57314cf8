//! The command `tokkuri-model`.

use std::process::ExitCode;

use clap::Parser;
use tokkuri_model::cli::{Arguments, run};

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("tokkuri-model: {error:#}");
            ExitCode::from(2)
        }
    }
}
