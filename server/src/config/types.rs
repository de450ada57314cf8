//! The small types that settings are made of: listeners, limits, secrets, modes.

use std::{fmt, net::SocketAddr, path::PathBuf};

/// Where a listener that may be absent listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Listener {
    /// Not stated: the listener's default address, if the build has such a listener.
    #[default]
    Unset,
    /// `off`: no listener.
    Off,
    /// This address; port 0 lets the system choose.
    At(SocketAddr),
}

impl Listener {
    /// The address to listen on, with `default` where nothing was stated.
    #[must_use]
    pub fn address(self, default: SocketAddr) -> Option<SocketAddr> {
        match self {
            Self::Unset => Some(default),
            Self::Off => None,
            Self::At(address) => Some(address),
        }
    }
}

/// A count that may be without limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// At most so many.
    AtMost(u64),
    /// `"unlimited"`.
    Unlimited,
}

/// A text that is never shown: `Debug` prints a placeholder.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The secret itself; the caller keeps it out of logs and messages.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// `pretty`: for people at a terminal.
    #[default]
    Pretty,
    /// `json`: one object a line.
    Json,
}

/// What tokens are verified with; exactly one of `auth.jwks` and `auth.hs256_secret`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenKeys {
    /// Public keys of the issuer (RFC 7517).
    Jwks(Jwks),
    /// A shared secret of at least 32 bytes (RFC 7518 §3.2), for HS256 tokens.
    Hs256(Secret),
}

/// Where a key set is read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Jwks {
    /// `file:PATH`.
    File(PathBuf),
    /// `https://…`.
    Https(String),
}
