//! The flags of `tokkuri serve`, which other binaries that serve (the test bed) take too.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, ValueEnum};

use crate::config::{Config, ConfigError, Listener, StoreUrl, flag};

/// Flags of a server; those that are settings go before environment and file.
///
/// A binary flattens them into its own command line:
///
/// ```
/// use clap::Parser;
/// use tokkuri_server::cli::ServeArgs;
///
/// #[derive(Parser)]
/// struct Cli {
///     #[command(flatten)]
///     serve: ServeArgs,
/// }
///
/// let cli = Cli::parse_from(["testbed", "--http", "127.0.0.1:0", "--store", "memory"]);
/// let config = cli.serve.overlay(Default::default());
/// assert_eq!(config.server.http.port(), 0);
/// ```
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  tokkuri serve --tools demo --root .      the demo tools, on your files below the working directory
  tokkuri serve --config tokkuri.toml      everything that can be set, from a file
  tokkuri serve --http 127.0.0.1:0         on a free port; the line `listening http=…` says which

A setting may also be given as TOKKURI_SECTION_KEY (TOKKURI_TASKS_TTL_MS=60000).
A flag goes before the environment, the environment before the file.")]
pub struct ServeArgs {
    /// Configuration file (TOML).
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where MCP is served, at /mcp [default: 127.0.0.1:8080; port 0 lets the system choose].
    #[arg(long, value_name = "ADDR", value_parser = flag::address)]
    pub http: Option<SocketAddr>,
    /// Where other nodes and `tokkuri admin` connect, or "off" [default: 127.0.0.1:8090].
    #[arg(long, value_name = "ADDR", value_parser = flag::listener)]
    pub grpc: Option<Listener>,
    /// Where metrics, health and console are, or "off" [default: 127.0.0.1:8091].
    #[arg(long, value_name = "ADDR", value_parser = flag::listener)]
    pub admin: Option<Listener>,
    /// Where tasks are kept: memory, sqlite:PATH or postgres://… [default: sqlite:tokkuri.db].
    #[arg(long, value_name = "URL")]
    pub store: Option<StoreUrl>,
    /// Name of this node [default: host name and random characters].
    #[arg(long, value_name = "NAME", value_parser = flag::node_name)]
    pub node: Option<String>,
    /// Tools that are built in [default: demo, or none if the configuration brings tools of its own].
    #[arg(long, value_enum, value_name = "SET")]
    pub tools: Option<ToolSet>,
    /// Directory that the demo tools work in, and never leave [default: the working directory].
    #[arg(long, value_name = "DIR", default_value = ".", hide_default_value = true)]
    pub root: PathBuf,
    /// Serve one client over standard input and output as well.
    #[arg(long)]
    pub stdio: bool,
}

/// The tools that are built in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ToolSet {
    /// `hash_files`, `export_files`, `ask_name`.
    Demo,
    /// None.
    None,
}

impl Default for ServeArgs {
    /// No flag given.
    fn default() -> Self {
        Self {
            config: None,
            http: None,
            grpc: None,
            admin: None,
            store: None,
            node: None,
            tools: None,
            root: PathBuf::from("."),
            stdio: false,
        }
    }
}

impl ServeArgs {
    /// The configuration that file, environment and these flags make together.
    ///
    /// # Errors
    /// The first thing that is wrong, as [`ConfigError`].
    pub fn load(&self) -> Result<Config, ConfigError> {
        let environment = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.to_string_lossy().into_owned())));
        Config::load(self.config.as_deref(), environment).map(|config| self.overlay(config))
    }

    /// Lays the flags that were given over `config`.
    #[must_use]
    pub fn overlay(&self, mut config: Config) -> Config {
        if let Some(http) = self.http {
            config.server.http = http;
        }
        if let Some(grpc) = self.grpc {
            config.grpc.listen = grpc;
        }
        if let Some(admin) = self.admin {
            config.admin.listen = admin;
        }
        if let Some(store) = &self.store {
            config.tasks.store = store.clone();
        }
        if let Some(node) = &self.node {
            config.server.node = Some(node.clone());
        }
        config
    }

    /// The built-in tools to serve beside those of `config`.
    #[must_use]
    pub fn tool_set(&self, config: &Config) -> ToolSet {
        match self.tools {
            Some(tools) => tools,
            None if config.tools.is_empty() && config.upstreams.is_empty() => ToolSet::Demo,
            None => ToolSet::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_goes_before_the_file() {
        let file = "[server]\nhttp = '127.0.0.1:1'\nnode = 'a'\n[grpc]\nlisten = '127.0.0.1:2'\n\
                    [admin]\nlisten = '127.0.0.1:3'\n[tasks]\nstore = 'sqlite:a'\n";
        let config = Config::from_toml(file, "t").unwrap();
        let nothing = ServeArgs::default();
        assert_eq!(nothing.overlay(config.clone()), config);
        let all = ServeArgs {
            http: Some("127.0.0.1:10".parse().unwrap()),
            grpc: Some(Listener::Off),
            admin: Some(Listener::Off),
            store: Some(StoreUrl::Memory),
            node: Some("b".into()),
            ..ServeArgs::default()
        };
        let over = all.overlay(config);
        assert_eq!(over.server.http.port(), 10);
        assert_eq!(over.server.node.as_deref(), Some("b"));
        assert_eq!((over.grpc.listen, over.admin.listen), (Listener::Off, Listener::Off));
        assert_eq!(over.tasks.store, StoreUrl::Memory);
    }

    #[test]
    fn demo_tools_step_back_when_the_configuration_brings_tools() {
        let own = Config::from_toml("tool = [{ name = 't', command = ['true'] }]", "t").unwrap();
        let args = ServeArgs::default();
        assert_eq!(args.tool_set(&Config::default()), ToolSet::Demo);
        assert_eq!(args.tool_set(&own), ToolSet::None);
    }
}
