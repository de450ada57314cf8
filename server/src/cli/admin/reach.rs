//! Which node is asked, and what it is shown.

use std::path::PathBuf;

use clap::Args;

use super::Output;
use crate::cli::{Exit, Stop};
use crate::cluster::{ConnectError, Credentials, Shown};
use crate::config::{KeyPair, Secret};

/// The variable of the server's own setting, so that both may have it from one place.
const TOKEN: &str = "TOKKURI_GRPC_TOKEN";

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Connection and output")]
pub(super) struct Reach {
    /// Address of a node's gRPC listener.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8090")]
    pub(super) grpc: String,
    /// Token to show; better given as the variable TOKKURI_GRPC_TOKEN, which no process list shows.
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
    /// Authority that the node's certificate comes from (PEM): TLS is spoken.
    #[arg(long, value_name = "FILE")]
    pub(super) ca: Option<PathBuf>,
    /// Certificate to show (PEM).
    #[arg(long, value_name = "FILE", requires_all = ["key", "ca"])]
    cert: Option<PathBuf>,
    /// Its key (PEM).
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// How results are printed.
    #[arg(short, long, value_enum, value_name = "HOW", default_value_t)]
    pub(super) output: Output,
}

impl Reach {
    /// A channel to the node.
    pub(super) fn channel(&self) -> Result<Shown, Stop> {
        let variable = std::env::var(TOKEN).ok();
        let token = self.token.clone().or(variable).filter(|token| !token.is_empty());
        self.connect(token).map_err(|error| {
            let setting = match &error {
                ConnectError::Token => "--token: ",
                ConnectError::Address(_) => "--grpc: ",
                ConnectError::Unreadable { .. } | ConnectError::Unfit(_) => "",
            };
            Stop::new(Exit::Usage, format!("{setting}{error}"))
        })
    }

    fn connect(&self, token: Option<String>) -> Result<Shown, ConnectError> {
        let mut credentials = Credentials::none();
        if let Some(token) = token {
            credentials = credentials.with_token(&Secret::new(token))?;
        }
        if let Some(ca) = &self.ca {
            let own = match (&self.cert, &self.key) {
                (Some(cert), Some(key)) => Some(KeyPair { cert: cert.clone(), key: key.clone() }),
                (None, _) | (_, None) => None,
            };
            credentials = credentials.with_tls(&[ca], own.as_ref())?;
        }
        credentials.channel(&self.grpc)
    }
}
