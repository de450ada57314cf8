//! What can go wrong between client and server; each says what to do next.

use serde::Deserialize;
use serde_json::Value;

/// A JSON-RPC error object.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct RpcError {
    /// The code, such as -32602.
    pub code: i64,
    /// The server's words.
    pub message: String,
    /// Whatever the server added.
    #[serde(default)]
    pub data: Option<Value>,
}

/// Why a request had no result.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The endpoint's URL is none.
    #[error("{url:?} is no endpoint of an MCP server ({reason}); give --url http://HOST:PORT/mcp")]
    BadUrl {
        /// What was given.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The token cannot stand in a header.
    #[error("the token holds characters that no token has; give --token what the issuer printed, on one line")]
    BadToken,
    /// Nothing answers there.
    #[error("no server answers at {url} ({reason}); start one with `tokkuri serve`, or name another with --url")]
    Unreachable {
        /// The endpoint.
        url: String,
        /// What the network said.
        reason: String,
    },
    /// The answer ended before it was complete.
    #[error("the answer to {method} broke off ({reason}); the server may have stopped: look at its log and try again")]
    BrokenOff {
        /// The request.
        method: &'static str,
        /// What the network said.
        reason: String,
    },
    /// What answers there does not speak MCP.
    #[error("{url} answered HTTP {status} without an MCP message; is /mcp the path of the endpoint?")]
    NotMcp {
        /// The endpoint.
        url: String,
        /// The HTTP status.
        status: u16,
    },
    /// A token is missing or not accepted.
    #[error("{url} wants a valid token ({challenge}); give one with --token or the variable TOKKURI_TOKEN")]
    Unauthorized {
        /// The endpoint.
        url: String,
        /// The server's `WWW-Authenticate`, or `no details`.
        challenge: String,
    },
    /// The token is good but not for this.
    #[error("{url} does not allow this with the token shown ({challenge}); get one with the scopes named")]
    Forbidden {
        /// The endpoint.
        url: String,
        /// The server's `WWW-Authenticate`, or `no details`.
        challenge: String,
    },
    /// The server answered with an error.
    #[error("the server refused {method}: {} (code {}){}", error.message, error.code, advice(error))]
    Refused {
        /// The request.
        method: &'static str,
        /// The HTTP status it came with.
        status: u16,
        /// The error.
        error: RpcError,
    },
    /// The server has no such tool.
    #[error("the server has no tool {name:?}; {}", tools(name, known))]
    UnknownTool {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// The answer is not what the protocol says it is.
    #[error("the answer to {method} is not what MCP {version} says: {what}", version = super::PROTOCOL_VERSION)]
    Unexpected {
        /// The request.
        method: &'static str,
        /// What is wrong with the answer.
        what: String,
    },
}

/// The codes whose message alone does not say what to do.
fn advice(error: &RpcError) -> String {
    match error.code {
        -32022 => {
            let supported = error.data.as_ref().and_then(|data| data.get("supported"));
            format!(
                "; this client speaks {}, the server {}",
                super::PROTOCOL_VERSION,
                supported.map_or_else(|| "other versions".to_owned(), Value::to_string)
            )
        }
        -32601 => "; the server does not offer this (are tasks enabled there?)".to_owned(),
        _ => String::new(),
    }
}

fn tools(name: &str, known: &[String]) -> String {
    if known.is_empty() {
        return "it has none at all (`tokkuri serve --tools demo` serves some)".to_owned();
    }
    match crate::config::nearest(name, known.iter().map(String::as_str)) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("it has: {}", known.join(", ")),
    }
}
