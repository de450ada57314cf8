//! What can be set about a server.

use std::time::Duration;

use crate::engine::TaskSettings;
use crate::listener::ConnectionLimits;

/// What can be set about a server; the command reads it from its configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `[tasks]`.
    pub tasks: TaskSettings,
    /// Hosts that requests may name; empty for the loopback names.
    pub allowed_hosts: Vec<String>,
    /// Origins that browsers may call from.
    pub allowed_origins: Vec<String>,
    /// Largest request body.
    pub max_body_bytes: usize,
    /// What the bodies of all requests together may take up while they are held; at least as much as one.
    pub max_buffered_bytes: usize,
    /// How deeply objects and arrays of a request may be nested.
    pub max_depth: usize,
    /// How long a client may take to send a request's body.
    pub request_timeout: Duration,
    /// What the listener and its connections may take up.
    pub connections: ConnectionLimits,
    /// How long runs may go on after a shutdown began.
    pub shutdown: Duration,
    /// Signs `requestState`; at least 32 bytes. Without it the store's own is used, or one made up at the start.
    pub state_secret: Option<Vec<u8>>,
    /// How long a `requestState` is good for.
    pub state_ttl_ms: u64,
    /// How many `subscriptions/listen` streams one principal may have open.
    pub max_streams_per_principal: usize,
    /// How many sessions of the earlier era one principal may have open.
    pub max_sessions_per_principal: usize,
    /// After how long without a message a stream says that it is alive. Proxies give up on silent connections, many after 30 s.
    pub stream_keep_alive: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            tasks: TaskSettings::default(),
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            max_body_bytes: 4 << 20,
            max_buffered_bytes: 256 << 20,
            max_depth: 64,
            request_timeout: Duration::from_secs(30),
            connections: ConnectionLimits::default(),
            shutdown: Duration::from_secs(10),
            state_secret: None,
            state_ttl_ms: 600_000,
            max_streams_per_principal: 100,
            max_sessions_per_principal: 1_000,
            stream_keep_alive: Duration::from_secs(20),
        }
    }
}
