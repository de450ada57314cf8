//! `tokkuri config check`: what is wrong with a configuration file, and where.

use std::{io::Write as _, path::PathBuf};

use clap::{Args, Subcommand};

use super::Exit;
use crate::cluster::may_listen;
use crate::config::{Config, GrpcConfig, unavailable};

#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Say what is wrong with a configuration file, and where.
    #[command(after_help = "\
Example:
  tokkuri config check tokkuri.toml

Prints `FILE: ok` and exits with 0, or prints one line that names file, line, key and what would be right, and exits
with 2. Only the file is looked at, not the environment.")]
    Check {
        /// The file (TOML).
        file: PathBuf,
    },
}

pub(crate) fn run(args: &ConfigArgs) -> anyhow::Result<Exit> {
    let ConfigCommand::Check { file } = &args.command;
    let config = Config::load(Some(file), std::iter::empty())?;
    let mut missing = unavailable(&config);
    if let Some(address) = config.grpc.listen.address(GrpcConfig::DEFAULT_LISTEN)
        && let Err(exposed) = may_listen(address, &config.grpc)
    {
        missing.push(format!("grpc.listen: {exposed}"));
    }
    for line in &missing {
        eprintln!("error: {}: {line}", file.display());
    }
    if !missing.is_empty() {
        return Ok(Exit::Usage);
    }
    writeln!(std::io::stdout(), "{}: ok", file.display())?;
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> anyhow::Result<Exit> {
        let directory = tempfile::tempdir()?;
        let file = directory.path().join("t.toml");
        std::fs::write(&file, text)?;
        run(&ConfigArgs { command: ConfigCommand::Check { file } })
    }

    #[test]
    fn a_good_file_is_ok_a_bad_one_is_told_and_one_that_this_build_cannot_keep_is_refused() {
        assert_eq!(check("[tasks]\nttl_ms = 1").unwrap(), Exit::Ok);
        let error = check("[tasks]\nttl = 1").unwrap_err();
        assert!(error.to_string().ends_with("t.toml:2: there is no setting tasks.ttl; did you mean ttl_ms?"));
        assert_eq!(check("[[tool]]\nname = 't'\ncommand = ['true']").unwrap(), Exit::Usage);
        assert_eq!(check("grpc.listen = '0.0.0.0:8090'").unwrap(), Exit::Usage);
        assert_eq!(check("grpc.listen = '0.0.0.0:8090'\ngrpc.token = 't'").unwrap(), Exit::Ok);
    }
}
