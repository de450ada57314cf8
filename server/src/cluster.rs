//! gRPC: what nodes that share a store tell each other, and what operators see and do.
//!
//! The protocol is `proto/tokkuri/v1`; [`proto`] is what the build makes of it. Nothing here decides anything about a task, and
//! nothing depends on it: a node whose signals are lost finds out by its next look at the store. With `[grpc] listen` the
//! service is on ([`Server::grpc`](crate::Server::grpc)), with the standard health and reflection services beside it.
//!
//! Who may call: with `token`, whoever shows it (`authorization: Bearer …`); with `client_ca`, whoever has a certificate of that
//! authority, which the handshake asks for; with both, whoever has both. With neither, the listener must be on a loopback
//! address. Nodes show each other the same token and their own certificates. Health and reflection ask for no token: they tell
//! what the source code tells.

mod access;
mod admin;
mod changes;
mod connect;
mod outbox;
mod peer;
pub mod proto;
mod signals;
mod status;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic_health::server::HealthReporter;

use self::access::Access;
pub use self::access::Exposed;
use self::admin::AdminService;
pub(crate) use self::connect::with_causes;
pub use self::connect::{ConnectError, Credentials, MAX_MESSAGE_BYTES, ShowToken, Shown};
use self::peer::PeerService;
use self::proto::admin_server::AdminServer;
use self::proto::peer_server::PeerServer;
use self::signals::Signals;
use crate::config::{GrpcConfig, KeyPair};
use crate::engine::Engine;
use crate::listener::{self, ConnectionLimits, Tls, TlsError};

/// What is enough for nodes and operators. Nodes keep their connections; an idle one costs little.
const LIMITS: ConnectionLimits = ConnectionLimits {
    max_connections: 1024,
    max_header_bytes: 16 << 10,
    max_headers: 100,
    max_concurrent_requests: 256,
    header_timeout: Duration::from_secs(30),
    idle_timeout: Duration::from_secs(600),
    write_timeout: Duration::from_secs(30),
};

/// Why there can be no gRPC.
#[derive(Debug, thiserror::Error)]
pub enum GrpcError {
    /// Strangers would reach it.
    #[error(transparent)]
    Exposed(#[from] Exposed),
    /// Its certificates cannot be used.
    #[error("{setting}: {source}")]
    Tls {
        /// The setting.
        setting: &'static str,
        /// What is wrong.
        source: Box<TlsError>,
    },
    /// What nodes are to show each other cannot be used.
    #[error(transparent)]
    Credentials(#[from] ConnectError),
    /// The listener has no address.
    #[error("the listener has no address: {0}")]
    Address(#[from] io::Error),
}

/// Whether gRPC may be served at an address.
///
/// # Errors
/// [`Exposed`]: other machines reach it, and nobody is asked for anything.
pub fn may_listen(address: SocketAddr, config: &GrpcConfig) -> Result<(), Exposed> {
    Access::at(address, config.token.as_ref(), config.client_ca.is_some()).map(|_| ())
}

/// Where other nodes reach a listener: at what is advertised, or where it listens, if that is one address.
#[must_use]
pub fn advertised(listener: SocketAddr, config: &GrpcConfig) -> Option<String> {
    match (&config.advertise, listener.ip()) {
        (Some(address), _) => Some(address.clone()),
        (None, IpAddr::V4(ip)) if ip.is_unspecified() => None,
        (None, IpAddr::V6(ip)) if ip.is_unspecified() => None,
        (None, _) => Some(listener.to_string()),
    }
}

/// The gRPC side of a server, ready to be served.
#[derive(Debug)]
pub(crate) struct Grpc {
    listener: TcpListener,
    tls: Option<Tls>,
    access: Access,
    credentials: Credentials,
    signals: Arc<Signals>,
    /// Whether signals of other nodes are taken.
    takes: bool,
}

/// The same while it is served.
#[derive(Debug)]
pub(crate) struct Serving {
    stop: CancellationToken,
    listening: JoinHandle<()>,
    looking: JoinHandle<()>,
    health: HealthReporter,
    #[cfg(test)]
    signals: Arc<Signals>,
    #[cfg(test)]
    address: SocketAddr,
}

impl Grpc {
    /// Makes `engine` tell other nodes of changes, unless `signals` is false, and prepares the services.
    pub(crate) fn new(
        engine: &Arc<Engine>,
        listener: TcpListener,
        config: &GrpcConfig,
        signals: bool,
    ) -> Result<Self, GrpcError> {
        let address = listener.local_addr()?;
        let access = Access::at(address, config.token.as_ref(), config.client_ca.is_some())?;
        let tls = config.tls.as_ref().map(|pair| tls(pair, config.client_ca.as_ref())).transpose()?;
        if tls.is_none() && !address.ip().to_canonical().is_loopback() {
            tracing::warn!(
                "grpc: the token crosses the network unencrypted; set grpc.cert and grpc.key, or let something in front do TLS"
            );
        }
        let credentials = credentials(config)?;
        let takes = signals;
        let signals = Signals::new(credentials.clone(), signals, Arc::clone(engine.meters()));
        engine.set_peers(Arc::<Signals>::clone(&signals));
        Ok(Self { listener, tls, access, credentials, signals, takes })
    }

    /// Serves, and tells other nodes of changes, until it is told to end.
    pub(crate) async fn serve(self, engine: &Arc<Engine>) -> Serving {
        let stop = CancellationToken::new();
        let (health, health_service) = tonic_health::server::health_reporter();
        health.set_serving::<AdminServer<AdminService>>().await;
        let admin = AdminService {
            engine: Arc::clone(engine),
            access: self.access.clone(),
            credentials: self.credentials,
            changes: Arc::clone(self.signals.changes()),
            stop: stop.clone(),
        };
        let mut routes =
            Routes::new(health_service).add_service(AdminServer::with_interceptor(admin, self.access.clone()));
        if self.takes {
            health.set_serving::<PeerServer<PeerService>>().await;
            let peer = PeerService { engine: Arc::clone(engine) };
            routes = routes.add_service(PeerServer::with_interceptor(peer, self.access));
        }
        routes = with_reflection(routes);
        let (engine, signals) = (Arc::clone(engine), self.signals);
        Serving {
            #[cfg(test)]
            signals: Arc::clone(&signals),
            #[cfg(test)]
            address: self.listener.local_addr().expect("it listens"),
            listening: tokio::spawn(listener::serve_http2(
                self.listener,
                routes.prepare().into_axum_router(),
                LIMITS,
                self.tls,
                stop.clone(),
            )),
            looking: tokio::spawn(async move { signals.look(&engine).await }),
            stop,
            health,
        }
    }
}

impl Serving {
    /// The node is about to go: whoever balances calls between nodes may know.
    pub(crate) async fn leaves(&self) {
        self.health.set_not_serving::<AdminServer<AdminService>>().await;
        self.health.set_not_serving::<PeerServer<PeerService>>().await;
        self.health.set_service_status("", tonic_health::ServingStatus::NotServing).await;
    }

    /// Ends it.
    pub(crate) async fn end(mut self) {
        self.looking.abort();
        self.stop.cancel();
        if tokio::time::timeout(Duration::from_secs(1), &mut self.listening).await.is_err() {
            self.listening.abort();
        }
    }
}

fn with_reflection(routes: Routes) -> Routes {
    let builder = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(proto::DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    // The older version as well: what Debian ships as grpcurl knows no other.
    match (builder().build_v1(), builder().build_v1alpha()) {
        (Ok(v1), Ok(v1alpha)) => routes.add_service(v1).add_service(v1alpha),
        (Err(error), _) | (_, Err(error)) => unreachable!("the build made descriptors that cannot be read: {error}"),
    }
}

fn tls(pair: &KeyPair, client_ca: Option<&PathBuf>) -> Result<Tls, GrpcError> {
    Tls::for_http2(&pair.cert, &pair.key, client_ca.map(PathBuf::as_path)).map_err(|source| {
        let setting = match source.file() {
            file if file == pair.key => "grpc.key",
            file if client_ca.is_some_and(|client_ca| file == client_ca) => "grpc.client_ca",
            _ => "grpc.cert",
        };
        GrpcError::Tls { setting, source: Box::new(source) }
    })
}

/// What this node shows to others. Their certificates come from the authority that callers' come from; without one, each
/// node's file has to hold whatever its certificate is to be believed by.
fn credentials(config: &GrpcConfig) -> Result<Credentials, ConnectError> {
    let mut credentials = Credentials::none();
    if let Some(token) = &config.token {
        credentials = credentials.with_token(token)?;
    }
    if let Some(pair) = &config.tls {
        let authority = config.client_ca.as_ref().unwrap_or(&pair.cert);
        credentials = credentials.with_tls(&[authority], Some(pair))?;
    }
    Ok(credentials)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_nodes_are_told_an_address_that_leads_here() {
        let config = |toml: &str| crate::config::Config::from_toml(toml, "t").unwrap().grpc;
        let at = |listener: &str, toml: &str| advertised(listener.parse().unwrap(), &config(toml));
        assert_eq!(at("127.0.0.1:81", "").as_deref(), Some("127.0.0.1:81"));
        assert_eq!(at("[::1]:81", "").as_deref(), Some("[::1]:81"));
        assert_eq!(at("0.0.0.0:81", ""), None);
        assert_eq!(at("[::]:81", ""), None);
        assert_eq!(at("0.0.0.0:81", "grpc.advertise = 'n1:9000'").as_deref(), Some("n1:9000"));
    }
}
