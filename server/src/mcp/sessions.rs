//! Sessions of the earlier era belong to the caller that opened them: to anybody else there is no such session.
//!
//! rmcp keeps the sessions; this remembers whose each is. Who a request is by is not for rmcp to know, so the door asks
//! [`OwnedSessions::is_foreign`] before it passes a request on, and takes a name that is no session's in place of a foreign one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::Stream;
use http::request::Parts;
use rmcp::model::{ClientJsonRpcMessage, GetExtensions, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::session::{RestoreOutcome, ServerSseMessage, SessionId, SessionManager};
use tokkuri_core::access::{Caller, Owner};
use tokkuri_core::task::Fault;
use tokkuri_core::wire::Json;

use crate::auth::OwnerResolver;
use crate::mcp::fault;
use crate::mcp::listen::{Permit, Permits};

/// The sessions of one endpoint, and whose they are.
#[derive(Debug)]
pub(crate) struct OwnedSessions {
    sessions: LocalSessionManager,
    owners: Arc<dyn OwnerResolver>,
    server: String,
    owned: Mutex<HashMap<SessionId, Owned>>,
    permits: Arc<Permits>,
}

/// A session's owner, and its place among theirs.
#[derive(Debug)]
struct Owned {
    owner: Owner,
    _permit: Option<Permit>,
}

/// Put into the extensions of a request that opens a session: the place that the session is to have.
#[derive(Clone, Debug)]
pub(crate) struct Seat(Arc<Mutex<Option<Permit>>>);

impl OwnedSessions {
    /// No sessions yet, and so many for each principal; `owners` and `server` tell whose a request is.
    pub(crate) fn new(owners: Arc<dyn OwnerResolver>, server: String, max_per_principal: usize) -> Self {
        let permits = Arc::new(Permits::new(max_per_principal, metrics::Gauge::noop()));
        Self { sessions: LocalSessionManager::default(), owners, server, owned: Mutex::default(), permits }
    }

    /// Whether this is the name of a session of somebody else's.
    pub(crate) fn is_foreign(&self, session: &str, caller: &Owner) -> bool {
        self.owned().get(session).is_some_and(|owned| owned.owner != *caller)
    }

    /// One session more of this caller's.
    ///
    /// # Errors
    /// The caller has as many as are allowed.
    pub(crate) fn seat(&self, caller: &Caller) -> Result<Seat, Fault<Json>> {
        let permit = self.permits.take(&caller.owner.principal);
        let permit = permit.ok_or_else(|| fault::too_many_sessions(self.permits.max()))?;
        Ok(Seat(Arc::new(Mutex::new(Some(permit)))))
    }

    fn owned(&self) -> MutexGuard<'_, HashMap<SessionId, Owned>> {
        self.owned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A name that no session ever has.
pub(crate) const NEVER: http::HeaderValue = http::HeaderValue::from_static("00000000-0000-0000-0000-000000000000");

impl SessionManager for OwnedSessions {
    type Error = <LocalSessionManager as SessionManager>::Error;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        self.sessions.create_session().await
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        // Before anybody hears the name. A session that ends closes, however it ends.
        if let ClientJsonRpcMessage::Request(request) = &message {
            let parts = request.request.extensions().get::<Parts>();
            let owner = self.owners.resolve(parts, &self.server).owner;
            let seat = parts.and_then(|parts| parts.extensions.get::<Seat>());
            let permit = seat.and_then(|seat| seat.0.lock().unwrap_or_else(PoisonError::into_inner).take());
            self.owned().insert(id.clone(), Owned { owner, _permit: permit });
        }
        let initialized = self.sessions.initialize_session(id, message).await;
        if initialized.is_err() || !self.sessions.has_session(id).await? {
            self.owned().remove(id);
        }
        initialized
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.sessions.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        let closed = self.sessions.close_session(id).await;
        self.owned().remove(id);
        closed
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.sessions.create_stream(id, message).await
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Self::Error> {
        self.sessions.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.sessions.create_standalone_stream(id).await
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.sessions.resume(id, last_event_id).await
    }

    async fn restore_session(&self, _id: SessionId) -> Result<RestoreOutcome<Self::Transport>, Self::Error> {
        // There is no store of sessions: one that is gone is gone.
        Ok(RestoreOutcome::NotSupported)
    }
}
