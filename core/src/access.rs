//! Whose task it is: owners, scopes, and who may do what.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::Text;
use crate::payload::Payload;
use crate::task::Task;

/// Who created a task, and what they created it through. The same person through another client, resource or server is
/// another owner.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Owner {
    /// Issuer and subject of the token, or the host's scope where there is no authorization.
    pub principal: Text,
    /// The name of the MCP server.
    pub server: Text,
    /// The OAuth client, empty without authorization.
    pub client: Text,
    /// The resource (RFC 8707) that the token was for, empty without authorization.
    pub resource: Text,
}

/// Who sends a request: an owner, with the scopes of this request's credentials.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Caller {
    /// The owner that tasks created by this request get.
    pub owner: Owner,
    /// What the caller was granted.
    pub scopes: Scopes,
}

/// The scopes of one request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Scopes {
    /// There is no authorization on this endpoint, so nothing can be lacking.
    Unrestricted,
    /// Those that were granted, already widened by the host's scope hierarchy.
    Granted(BTreeSet<Text>),
}

impl Scopes {
    /// Whether all of `needed` are granted.
    pub fn cover(&self, needed: &[Text]) -> bool {
        match self {
            Self::Unrestricted => true,
            Self::Granted(granted) => needed.iter().all(|scope| granted.contains(scope)),
        }
    }
}

/// Why a caller may not touch a task.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Denied {
    /// It is somebody else's. To the caller this is the same as a task that never existed.
    NotTheirs,
    /// It is theirs, but their credentials lack scopes that the tool required when the task started.
    LacksScope {
        /// All scopes that the operation needs.
        needed: Vec<Text>,
    },
}

/// Whether `caller` may read, answer, cancel or follow `task`: the owner first, then the scopes.
///
/// # Errors
/// [`Denied`] says which of the two stood in the way.
pub fn check<P: Payload>(task: &Task<P>, caller: &Caller) -> Result<(), Denied> {
    if task.origin.owner != caller.owner && !mutant!(OwnerNotChecked) {
        return Err(Denied::NotTheirs);
    }
    if !caller.scopes.cover(&task.origin.scopes) && !mutant!(ScopesNotChecked) {
        return Err(Denied::LacksScope { needed: task.origin.scopes.clone() });
    }
    Ok(())
}
