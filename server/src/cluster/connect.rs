//! Connections to gRPC listeners: of nodes to each other, and of the command to a node.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Request, Status};

use crate::config::{KeyPair, Secret};

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(2);

/// How often a connection that is silent is looked after, and how long the answer may take.
const KEEP_ALIVE: (Duration, Duration) = (Duration::from_secs(15), Duration::from_secs(5));

/// Answers that carry payloads are larger than gRPC's customary 4 MiB.
pub const MAX_MESSAGE_BYTES: usize = 256 << 20;

/// A channel that shows its token with every call.
pub type Shown = InterceptedService<Channel, ShowToken>;

/// What a caller shows, and whom it believes.
#[derive(Clone, Default)]
pub struct Credentials {
    token: ShowToken,
    tls: Option<ClientTlsConfig>,
}

/// Why there can be no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// A token that cannot be sent.
    #[error("the token has characters that no header can carry: give printable ASCII")]
    Token,
    /// A file cannot be read.
    #[error("{file}: cannot be read ({source}); give the path of a readable PEM file")]
    Unreadable {
        /// The file.
        file: String,
        /// Why.
        source: std::io::Error,
    },
    /// A file is no PEM, or key and certificate do not fit.
    #[error("the certificates cannot be used: {0}; give PEM files that belong together")]
    Unfit(String),
    /// An address that is none.
    #[error("{0:?} is no address: give HOST:PORT, such as 127.0.0.1:8090")]
    Address(String),
}

impl Credentials {
    /// Shows nothing and speaks plain text.
    pub fn none() -> Self {
        Self::default()
    }

    /// Shows this token.
    ///
    /// # Errors
    /// [`ConnectError::Token`]
    pub fn with_token(mut self, token: &Secret) -> Result<Self, ConnectError> {
        let line = format!("Bearer {}", token.expose());
        let mut line: MetadataValue<Ascii> = line.parse().map_err(|_| ConnectError::Token)?;
        line.set_sensitive(true);
        self.token = ShowToken(Some(line));
        Ok(self)
    }

    /// Speaks TLS: believes servers whose certificates come from one of `authorities` (PEM files), and shows `own` if there is
    /// one.
    ///
    /// # Errors
    /// [`ConnectError::Unreadable`]
    pub fn with_tls(mut self, authorities: &[&Path], own: Option<&KeyPair>) -> Result<Self, ConnectError> {
        crate::listener::use_ring();
        let mut tls = ClientTlsConfig::new();
        for file in authorities {
            tls = tls.ca_certificate(Certificate::from_pem(read(file)?));
        }
        if let Some(pair) = own {
            tls = tls.identity(Identity::from_pem(read(&pair.cert)?, read(&pair.key)?));
        }
        self.tls = Some(tls);
        Ok(self)
    }

    /// A channel to `host:port`. It connects when it is first used, and again whenever it has to.
    ///
    /// # Errors
    /// [`ConnectError::Address`], [`ConnectError::Unfit`]
    pub fn channel(&self, address: &str) -> Result<Shown, ConnectError> {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let endpoint = Endpoint::from_shared(format!("{scheme}://{address}"))
            .ok()
            .filter(|endpoint| endpoint.uri().host().is_some() && endpoint.uri().port().is_some())
            .ok_or_else(|| ConnectError::Address(address.to_owned()))?
            .connect_timeout(CONNECT)
            .tcp_nodelay(true)
            // While calls are open: a watch finds out that its node is gone.
            .http2_keep_alive_interval(KEEP_ALIVE.0)
            .keep_alive_timeout(KEEP_ALIVE.1);
        let endpoint = match &self.tls {
            Some(tls) => endpoint.tls_config(tls.clone()).map_err(|error| ConnectError::Unfit(with_causes(&error)))?,
            None => endpoint,
        };
        Ok(InterceptedService::new(endpoint.connect_lazy(), self.token.clone()))
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("token", &self.token).field("tls", &self.tls.is_some()).finish()
    }
}

/// Adds the token to every call.
#[derive(Clone, Default)]
pub struct ShowToken(Option<MetadataValue<Ascii>>);

impl Interceptor for ShowToken {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(line) = &self.0 {
            request.metadata_mut().insert("authorization", line.clone());
        }
        Ok(request)
    }
}

impl fmt::Debug for ShowToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "ShowToken(…)" } else { "ShowToken(none)" })
    }
}

/// An error with what lies behind it, which is where transports say what happened.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}

fn read(file: &Path) -> Result<Vec<u8>, ConnectError> {
    std::fs::read(file).map_err(|source| ConnectError::Unreadable { file: file.display().to_string(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_no_address_is_refused_before_anything_is_sent() {
        let none = Credentials::none();
        assert!(none.channel("127.0.0.1:8090").is_ok());
        assert!(none.channel("[::1]:8090").is_ok());
        assert!(none.channel("node-1.example:8090").is_ok());
        for bad in ["", "8090", "localhost", "a b:1", "host:port", "http://h:1"] {
            assert!(matches!(none.channel(bad), Err(ConnectError::Address(_))), "{bad}");
        }
    }

    #[test]
    fn a_token_is_not_shown_to_logs() {
        let credentials = Credentials::none().with_token(&Secret::new("s3cret")).unwrap();
        assert!(!format!("{credentials:?}").contains("s3cret"));
        assert!(Credentials::none().with_token(&Secret::new("a\nb")).is_err());
    }
}
