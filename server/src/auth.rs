//! Who is calling.
//!
//! With `[auth]` the endpoint is an OAuth resource server: `guard` takes the token out of a request's head, `token` judges it with a
//! key of `keys`, which come from a key set (`jwks`); `challenge` is how a request without the right token is turned away, and
//! `metadata` tells clients where to get one. Without it, an [`OwnerResolver`] of the application's says whose request it is.

mod challenge;
mod guard;
mod jwks;
mod keys;
mod metadata;
#[cfg(test)]
mod testing;
mod token;

use std::collections::BTreeSet;
use std::fmt;

use tokkuri_core::Text;
use tokkuri_core::access::{Caller, Owner, Scopes};

pub(crate) use challenge::Challenges;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod judged {
    pub(crate) use super::token::{Rules, Signed};
}
pub(crate) use guard::{ByToken, Guard, expires};

use crate::tool::{CallInfo, Tool};

/// Says whose tasks a request is about: the application's own notion of its users. It is asked where there is no `[auth]`, and on
/// stdio.
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

/// Which scopes imply which others, as the issuer means them (`files` may stand for `files:read` and `files:write`).
pub trait ScopeHierarchy: fmt::Debug + Send + Sync + 'static {
    /// All that the scopes of a token amount to: what was granted, and what that implies.
    fn widen(&self, granted: BTreeSet<Text>) -> BTreeSet<Text>;
}

/// Scopes that stand for nothing but themselves.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlatScopes;

impl ScopeHierarchy for FlatScopes {
    fn widen(&self, granted: BTreeSet<Text>) -> BTreeSet<Text> {
        granted
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
