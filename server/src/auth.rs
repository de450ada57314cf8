//! Who is calling.

use std::fmt;

use tokkuri_core::Text;
use tokkuri_core::access::{Caller, Owner, Scopes};

use crate::tool::{CallInfo, Tool};

/// Says whose tasks a request is about: the application's own notion of its users.
///
/// # Contract
/// Ownership follows what is stable: never a token's text, a connection, a session header or `clientInfo`. The same user must
/// get the same owner from every request and after every restart.
pub trait OwnerResolver: fmt::Debug + Send + Sync + 'static {
    /// The caller of a request. `parts` is the HTTP request's head; there is none on stdio. `server` is the server's name.
    fn resolve(&self, parts: Option<&http::request::Parts>, server: &str) -> Caller;
}

/// One owner for everybody: without authorization, whoever can reach the server shares its tasks.
#[derive(Clone, Copy, Debug, Default)]
pub struct SharedHost;

impl OwnerResolver for SharedHost {
    fn resolve(&self, _parts: Option<&http::request::Parts>, server: &str) -> Caller {
        let owner = Owner {
            principal: Text::new_static("host"),
            server: server.into(),
            client: Text::default(),
            resource: Text::default(),
        };
        Caller { owner, scopes: Scopes::Unrestricted }
    }
}

/// What a tool sees of its caller.
pub(crate) fn call_info(caller: &Caller, tool: &Tool, traceparent: Option<Text>) -> CallInfo {
    CallInfo {
        tool: tool.name.clone(),
        principal: caller.owner.principal.clone(),
        client: caller.owner.client.clone(),
        resource: caller.owner.resource.clone(),
        scopes: match &caller.scopes {
            Scopes::Unrestricted => Vec::new(),
            Scopes::Granted(scopes) => scopes.iter().cloned().collect(),
        },
        traceparent,
    }
}
