//! The test bed: the conformance fixtures and the probe tools, with the flags of `tokkuri serve`.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser;
use tokkuri_server::Tokkuri;
use tokkuri_server::cli::{Exit, ServeArgs, run_to_exit, serve};
use tokkuri_server::config::{Config, StoreUrl};
use tokkuri_server::engine::recorder::Recorder;
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
    let mut config = args.load()?;
    cut_notifications(&mut config);
    if let Some(offset_ms) = clock_offset()? {
        tokkuri_server::wall_clock::shift(offset_ms);
    }
    let bed = testbed::Bed::new();
    let app = Tokkuri::wrap(Fixtures::new())
        .task("wrapped_slow", TaskMode::Optional)
        .task("wrapped_ask", TaskMode::Optional)
        .task("wrapped_boom", TaskMode::Required)
        .task_asking_first("wrapped_first", TaskMode::Optional)
        .tools(testbed::tools(&bed))
        .probe(bed.probe());
    let app = match recorder(&config)? {
        Some(recorder) => app.recorder(recorder),
        None => app,
    };
    let app = match std::env::var("TOKKURI_TEST_NO_SIGNALS").as_deref() {
        Ok("1") => app.without_signals(),
        _ => app,
    };
    serve(app, &config, args).await
}

/// With `TOKKURI_TEST_CLOCK_OFFSET_MS=MS`, this process takes the time of day to be so much later (or earlier) than it is.
fn clock_offset() -> anyhow::Result<Option<i64>> {
    let Some(offset) = std::env::var_os("TOKKURI_TEST_CLOCK_OFFSET_MS") else { return Ok(None) };
    let offset = offset.to_str().and_then(|offset| offset.parse().ok());
    Ok(Some(offset.context("TOKKURI_TEST_CLOCK_OFFSET_MS: a whole number of milliseconds")?))
}

/// With `TOKKURI_TEST_TRACE=DIR`, what the node stores is recorded into a file of that directory. On the memory store only: a
/// process that goes on with another one's tasks has no beginning to tell.
fn recorder(config: &Config) -> anyhow::Result<Option<Recorder>> {
    let Some(directory) = std::env::var_os("TOKKURI_TEST_TRACE") else { return Ok(None) };
    if config.tasks.store != StoreUrl::Memory {
        return Ok(None);
    }
    let file = Path::new(&directory).join(format!("{}.jsonl", std::process::id()));
    Ok(Some(Recorder::create(&file).with_context(|| format!("recording into {}", file.display()))?))
}

/// With `TOKKURI_TEST_NO_NOTIFY=1`, nodes on Postgres neither send nor hear what it carries from one to another.
fn cut_notifications(config: &mut Config) {
    if std::env::var_os("TOKKURI_TEST_NO_NOTIFY").is_some_and(|value| value == "1")
        && let StoreUrl::Postgres(url) = &mut config.tasks.store
    {
        url.push_str(if url.contains('?') { "&notify=off" } else { "?notify=off" });
    }
}
