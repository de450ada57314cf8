//! The test bed: the conformance fixtures and the probe tools, with the flags of `tokkuri serve`.

use std::process::ExitCode;

use clap::Parser;
use tokkuri_server::Tokkuri;
use tokkuri_server::cli::{Exit, ServeArgs, run_to_exit, serve};
use tokkuri_server::tool::TaskMode;
use tokkuri_tests::fixtures::Fixtures;
use tokkuri_tests::testbed;

/// Serves the conformance fixtures and the probe tools.
#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    serve: ServeArgs,
}

fn main() -> ExitCode {
    let args = Cli::parse().serve;
    run_to_exit(run(&args))
}

async fn run(args: &ServeArgs) -> anyhow::Result<Exit> {
    let config = args.load()?;
    let bed = testbed::Bed::new();
    let app = Tokkuri::wrap(Fixtures::new())
        .task("wrapped_slow", TaskMode::Optional)
        .task("wrapped_ask", TaskMode::Optional)
        .task("wrapped_boom", TaskMode::Required)
        .task_asking_first("wrapped_first", TaskMode::Optional)
        .tools(testbed::tools(&bed))
        .probe(bed.probe());
    serve(app, &config, args).await
}
