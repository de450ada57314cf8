//! Readings of single values that command-line flags share with file and environment.
//!
//! clap puts the flag and the value before the error, so an error here is only what would be right.

use std::net::SocketAddr;

use super::{Listener, raw};

/// Reads the address of a listener.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    raw::address(text).map_err(give)
}

/// Reads the address of a listener that may be `off`.
pub(crate) fn listener(text: &str) -> Result<Listener, String> {
    raw::listener(text).map_err(give)
}

/// Reads the name of a node.
pub(crate) fn node_name(text: &str) -> Result<String, String> {
    raw::node_name(text).map_err(give)
}

fn give(expected: String) -> String {
    format!("give {expected}")
}
