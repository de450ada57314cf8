//! The sections of the configuration, field by field, with unit and default.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use super::{Limit, Listener, LogFormat, Secret, StoreUrl, TokenKeys};

/// `[server]`: the MCP endpoint, `http://ADDRESS/mcp`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerConfig {
    /// Address of the HTTP listener. Default `127.0.0.1:8080`; port 0 lets the system choose.
    pub http: SocketAddr,
    /// Name of this node, unique among the nodes that share a store. Default: host name and random characters,
    /// made at start.
    pub node: Option<String>,
    /// The server's name, told to clients. Default `tokkuri`.
    pub name: String,
    /// How the server's tools are to be used, told to clients. Default: nothing.
    pub instructions: Option<String>,
    /// `Host` headers answered, `name` or `name:port`. Default: the loopback names `localhost`, `127.0.0.1`, `[::1]`.
    pub allowed_hosts: Vec<String>,
    /// `Origin` headers answered, `https://name[:port]`; CORS answers go to these. Default: none (requests without
    /// `Origin` always pass).
    pub allowed_origins: Vec<String>,
    /// Largest request body, in bytes. Default 4 MiB.
    pub max_body_bytes: usize,
    /// What the bodies of all requests together may take up in memory, in bytes; beyond it the answer to a body of
    /// more than 16 KiB is 503. At least `max_body_bytes`. Default 256 MiB.
    pub max_buffered_bytes: usize,
    /// How deeply objects and arrays of a request may be nested. Default 64.
    pub max_depth: usize,
    /// Connections at once; a further one is told 503. Default 4096.
    pub max_connections: usize,
    /// Largest head of a request, in bytes. Default 32 KiB.
    pub max_header_bytes: usize,
    /// Headers of one request. Default 100.
    pub max_headers: usize,
    /// Requests at once on one HTTP/2 connection. Default 100.
    pub max_concurrent_requests: usize,
    /// How long the head of a request and the TLS handshake may take, in ms. Default 10 000.
    pub header_timeout_ms: u64,
    /// How long a connection may be idle, in ms. Default 60 000.
    pub idle_timeout_ms: u64,
    /// How long a client may read nothing of its answer, in ms. Default 60 000.
    pub write_timeout_ms: u64,
    /// How long a request may take to arrive and, if no tool runs in it, to be answered, in ms. Default 30 000.
    pub request_timeout_ms: u64,
    /// How long a shutdown waits for running tasks, in ms. Default 10 000.
    pub shutdown_ms: u64,
    /// Key of `requestState`, at least 16 bytes. Default: made once and kept in the store.
    pub state_secret: Option<Secret>,
    /// How long a `requestState` is good for, in ms. Default 600 000.
    pub state_ttl_ms: u64,
    /// How many streams (`subscriptions/listen`) one principal may have open. Default 100.
    pub max_streams_per_principal: usize,
    /// How many sessions of the earlier era one principal may have open; those that rest expire after five minutes. Default 1000.
    pub max_sessions_per_principal: usize,
    /// After how long without a message a stream says that it is alive, in ms. Default 20 000.
    pub stream_keep_alive_ms: u64,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            http: SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
            node: None,
            name: "tokkuri".to_owned(),
            instructions: None,
            allowed_hosts: ["localhost", "127.0.0.1", "[::1]"].map(String::from).into(),
            allowed_origins: Vec::new(),
            max_body_bytes: 4 << 20,
            max_buffered_bytes: 256 << 20,
            max_depth: 64,
            max_connections: 4096,
            max_header_bytes: 32 << 10,
            max_headers: 100,
            max_concurrent_requests: 100,
            header_timeout_ms: 10_000,
            idle_timeout_ms: 60_000,
            write_timeout_ms: 60_000,
            request_timeout_ms: 30_000,
            shutdown_ms: 10_000,
            state_secret: None,
            state_ttl_ms: 600_000,
            max_streams_per_principal: 100,
            max_sessions_per_principal: 1_000,
            stream_keep_alive_ms: 20_000,
        }
    }
}

/// A certificate chain and its key, both PEM files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPair {
    /// File of the certificate chain.
    pub cert: PathBuf,
    /// File of the private key.
    pub key: PathBuf,
}

/// `[grpc]`: signals between nodes and `tokkuri admin`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GrpcConfig {
    /// Address of the listener, or `off`. Default [`GrpcConfig::DEFAULT_LISTEN`].
    pub listen: Listener,
    /// `host:port` at which the other nodes reach this one. Default: `listen`.
    pub advertise: Option<String>,
    /// Token that callers must show. Default: none.
    pub token: Option<Secret>,
    /// `cert` and `key` of the listener. Default: none, plain text.
    pub tls: Option<KeyPair>,
    /// File of the authority (PEM) that callers' certificates must come from; needs `cert` and `key`. Default: none.
    pub client_ca: Option<PathBuf>,
}

impl GrpcConfig {
    /// `127.0.0.1:8090`.
    pub const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8090);
}

/// `[admin]`: `/metrics`, `/healthz`, `/readyz`, `/console`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AdminConfig {
    /// Address of the listener, or `off`. Default [`AdminConfig::DEFAULT_LISTEN`]; if that is taken and nobody asked for it, none.
    pub listen: Listener,
    /// Token that `/metrics` asks for; needed where the address is not a loopback one. Default: none.
    pub token: Option<Secret>,
}

impl AdminConfig {
    /// `127.0.0.1:8091`.
    pub const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8091);
}

/// `[tasks]`: where tasks are kept, how long, how many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TasksConfig {
    /// Whether calls can become tasks at all. Default `true`; `false` runs every tool in its request and does not
    /// advertise the extension.
    pub enabled: bool,
    /// Where tasks are kept. Default `sqlite:tokkuri.db`.
    pub store: StoreUrl,
    /// Life of a task from its creation, in ms. Default 3 600 000.
    pub ttl_ms: u64,
    /// How long a result stays readable after the task's end at the least, in ms; `ttlMs` is raised for it.
    /// Default 300 000.
    pub keep_ms: u64,
    /// How often clients are told to poll, and how often a node looks at the store for its runs, in ms. Default 1000.
    pub poll_interval_ms: u64,
    /// Live tasks of one owner. Default 100; `"unlimited"` for no limit.
    pub max_per_principal: Limit,
    /// Tasks that run at once on this node; further ones wait, and their owners take turns. A run that goes on although its task is
    /// over, because it blocks a thread, counts until it has ended. Default 1000.
    pub max_runs: usize,
    /// Threads that tools may block at once on this node; further runs wait, and their owners take turns. Default 256.
    pub max_blocking_threads: usize,
    /// Largest arguments of a call that becomes a task, and largest answers of one `tasks/update`, in bytes: the store keeps
    /// them until the task ends. Default 1 MiB.
    pub max_argument_bytes: usize,
    /// Largest result of a tool, in bytes. Default 4 MiB.
    pub max_result_bytes: usize,
    /// Questions that one task may ask in its life. Default 64.
    pub max_questions: usize,
    /// How long a node is thought alive after its last heartbeat, in ms. Default 15 000.
    pub lease_ms: u64,
}

impl Default for TasksConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            store: StoreUrl::Sqlite("tokkuri.db".into()),
            ttl_ms: 3_600_000,
            keep_ms: 300_000,
            poll_interval_ms: 1000,
            max_per_principal: Limit::AtMost(100),
            max_runs: 1000,
            max_blocking_threads: 256,
            max_argument_bytes: 1 << 20,
            max_result_bytes: 4 << 20,
            max_questions: 64,
            lease_ms: 15_000,
        }
    }
}

/// `[auth]`: bearer tokens (OAuth 2.1 resource server).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthConfig {
    /// The `iss` of accepted tokens. Needed.
    pub issuer: String,
    /// The `aud` of accepted tokens, one or a list, never empty; the first is this server's canonical URI. Needed.
    pub audience: Vec<String>,
    /// `jwks` or `hs256_secret`. Exactly one of them is needed.
    pub keys: TokenKeys,
    /// Scopes that every token must carry. Default: none.
    pub required_scopes: Vec<String>,
}

/// `[telemetry]`: logs and traces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TelemetryConfig {
    /// Which log lines are written: a level or `tracing` directives (`info,tokkuri_server=debug`). Default `info`.
    pub log: String,
    /// How log lines look. Default `pretty`.
    pub format: LogFormat,
    /// Where traces and metrics are sent (OTLP). Default: nowhere.
    pub otlp_endpoint: Option<String>,
    /// `service.name` of traces and metrics. Default `tokkuri`.
    pub service_name: String,
}

impl Default for TelemetryConfig {
    fn default() -> Self {
        Self {
            log: "info".to_owned(),
            format: LogFormat::Pretty,
            otlp_endpoint: None,
            service_name: "tokkuri".to_owned(),
        }
    }
}
