//! The configuration of a Tokkuri server: what can be set, where it may be set, and what is said when it is set wrongly.
//!
//! A setting has one name, `section.key`, and four places, the first that states it wins:
//!
//! 1. a flag of the command (`--http 127.0.0.1:9000`; [`crate::cli::ServeArgs`]),
//! 2. an environment variable, `TOKKURI_SECTION_KEY` (`TOKKURI_TASKS_TTL_MS=60000`; lists are separated by commas),
//! 3. the TOML file given with `--config`,
//! 4. the default, documented at each field of the section types.
//!
//! Parsing is total: what comes out is a [`Config`] that holds only good values, or one [`ConfigError`] that names the
//! place, the key and what would be right. `[[tool]]` and `[[upstream]]` can only be set in the file.
//!
//! ```
//! use tokkuri_server::config::Config;
//!
//! let config = Config::from_toml("[tasks]\nttl_ms = 60_000\n", "tokkuri.toml").expect("a good file");
//! assert_eq!(config.tasks.ttl_ms, 60_000);
//!
//! let error = Config::from_toml("[tasks]\nttl = 60_000\n", "tokkuri.toml").unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     "tokkuri.toml:2: there is no setting tasks.ttl; did you mean ttl_ms?"
//! );
//! ```

mod available;
mod check;
mod environment;
mod error;
mod file;
pub(crate) mod flag;
mod raw;
mod sections;
mod settings;
mod store_url;
mod suggest;
mod tables;
mod types;

use std::path::Path;

pub use available::unavailable;
pub use error::{ConfigError, Origin};
pub use sections::{AdminConfig, AuthConfig, GrpcConfig, KeyPair, ServerConfig, TasksConfig, TelemetryConfig};
pub use store_url::{StoreUrl, StoreUrlError};
pub(crate) use suggest::nearest;
pub use tables::{Reach, ToolConfig, UpstreamConfig};
pub use tokkuri_core::admission::TaskMode;
pub use types::{Jwks, Limit, Listener, LogFormat, Secret, TokenKeys};

/// A whole configuration; [`Config::default`] is what a server uses that was told nothing.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Config {
    /// `[server]`: the MCP endpoint.
    pub server: ServerConfig,
    /// `[tls]`: certificate and key of the MCP endpoint. Default: none, plain HTTP.
    pub tls: Option<KeyPair>,
    /// `[grpc]`: the listener that other nodes and `tokkuri admin` talk to.
    pub grpc: GrpcConfig,
    /// `[admin]`: the listener of metrics, health and console.
    pub admin: AdminConfig,
    /// `[tasks]`: store, lifetimes and limits of tasks.
    pub tasks: TasksConfig,
    /// `[auth]`: whose tokens are accepted. Default: none, every caller is the same anonymous owner.
    pub auth: Option<AuthConfig>,
    /// `[telemetry]`: logs and traces.
    pub telemetry: TelemetryConfig,
    /// `[[tool]]`: commands served as tools, in the order of the file.
    pub tools: Vec<ToolConfig>,
    /// `[[upstream]]`: MCP servers whose tools are served here, in the order of the file.
    pub upstreams: Vec<UpstreamConfig>,
}

impl Config {
    /// Reads `file` (if any), then the environment variables, and checks the whole.
    ///
    /// Flags are laid over the result by [`crate::cli::ServeArgs::overlay`].
    ///
    /// # Errors
    /// The first thing that is wrong, as [`ConfigError`].
    pub fn load(
        file: Option<&Path>,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        let mut draft = file::Draft::default();
        if let Some(path) = file {
            let text = std::fs::read_to_string(path)
                .map_err(|source| ConfigError::Unreadable { file: path.display().to_string(), source })?;
            draft.read(&text, &path.display().to_string())?;
        }
        environment::read(&mut draft, environment)?;
        check::finish(draft)
    }

    /// Reads the text of a file alone; `name` is what errors call it.
    ///
    /// # Errors
    /// The first thing that is wrong, as [`ConfigError`].
    pub fn from_toml(text: &str, name: &str) -> Result<Self, ConfigError> {
        let mut draft = file::Draft::default();
        draft.read(text, name)?;
        check::finish(draft)
    }
}

#[cfg(test)]
mod tests;
