//! A run in the request: how it tells progress, and how it asks.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;
use tokkuri_core::id::Key;
use tokkuri_core::replay::{Asked, Refused, Replay};
use tokkuri_core::wire::Json;

use crate::tool::AskError;
use crate::tool::context::Wait;

/// What a run in the request has.
#[derive(Debug)]
pub(crate) struct Inline {
    /// Fires when the client is gone.
    pub(crate) cancelled: CancellationToken,
    pub(crate) progress: Option<Box<dyn ProgressSink>>,
    /// What was asked and answered, whichever way the questions take.
    pub(crate) round: Round,
    pub(crate) asks: Asks,
}

/// Where progress notifications go.
pub(crate) trait ProgressSink: fmt::Debug + Send + Sync {
    fn progress(&self, done: u64, total: Option<u64>, message: &str);
}

/// How questions reach the client.
pub(crate) enum Asks {
    /// The reply carries them, and the call comes again (modern era).
    Replay,
    /// They are requests of ours to the client (earlier era).
    Session(Box<dyn Session>),
}

impl fmt::Debug for Asks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replay => f.write_str("Replay"),
            Self::Session(_) => f.write_str("Session"),
        }
    }
}

/// A session of the earlier era, in which a server may send requests.
pub(crate) trait Session: Send + Sync {
    /// Puts a question to the client and gives what it answered, unlooked at.
    fn ask(&self, request: Json) -> Pin<Box<dyn Future<Output = Result<Json, AskError>> + Send + '_>>;
}

/// One round of a call that asks: by being run again, or the only one, on a session. The first refusal is kept: it decides the reply.
#[derive(Debug)]
pub(crate) struct Round {
    state: Mutex<RoundState>,
    /// Questions that were put to the client directly: each once, however many wait for its answer.
    put: Mutex<BTreeMap<Key, Arc<OnceCell<()>>>>,
}

#[derive(Debug)]
struct RoundState {
    replay: Replay<Json>,
    misfit: Option<Refused>,
}

impl Round {
    pub(crate) const fn new(replay: Replay<Json>) -> Self {
        Self { state: Mutex::new(RoundState { replay, misfit: None }), put: Mutex::new(BTreeMap::new()) }
    }

    /// The answer, if it is there; `None` puts the question into the reply.
    pub(crate) fn ask(&self, key: &Key, request: Json) -> Result<Option<Json>, AskError> {
        let mut state = self.state();
        match state.replay.ask(key, request) {
            Ok(Asked::Answered(answer)) => Ok(Some(answer)),
            Ok(Asked::Open) => Ok(None),
            Err(Refused::Undeclared { missing }) => Err(AskError::Undeclared(missing)),
            Err(Refused::KeyTaken { key }) => Err(AskError::KeyTaken(key.to_string())),
            Err(misfit @ Refused::Misfit { .. }) => {
                // The request itself is wrong: the tool is not asked what it makes of that.
                state.misfit.get_or_insert(misfit);
                Err(AskError::Suspended)
            }
        }
    }

    /// Asks the client directly and records the answer.
    async fn put(&self, session: &dyn Session, key: &Key, request: Json) -> Result<(), AskError> {
        let put = Arc::clone(self.put.lock().unwrap_or_else(PoisonError::into_inner).entry(key.clone()).or_default());
        put.get_or_try_init(async || {
            let answer = session.ask(request).await?;
            let recorded = self.state().replay.answer(key, answer);
            recorded.map_err(|misfit| AskError::Unreadable(misfit.to_string()))
        })
        .await
        .copied()
    }

    /// `prepare` is over.
    pub(crate) fn prepared(&self) {
        self.state().replay.prepared();
    }

    /// What this round has come to, once the tool cannot go on.
    pub(crate) fn replay(&self) -> Replay<Json> {
        self.state().replay.clone()
    }

    /// Whether questions are open.
    pub(crate) fn is_open(&self) -> bool {
        let state = self.state();
        state.misfit.is_some() || !state.replay.open().is_empty()
    }

    /// An answer of this request that does not fit its question.
    pub(crate) fn misfit(&self) -> Option<String> {
        self.state().misfit.as_ref().map(ToString::to_string)
    }

    fn state(&self) -> MutexGuard<'_, RoundState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inline {
    pub(crate) fn progress(&self, done: u64, total: Option<u64>, message: &str) {
        if let Some(sink) = &self.progress {
            sink.progress(done, total, message);
        }
    }

    pub(crate) async fn ask(&self, key: Key, request: Json, wait: Wait) -> Result<Json, AskError> {
        match (self.round.ask(&key, request.clone())?, &self.asks, wait) {
            (Some(answer), ..) => Ok(answer),
            (None, Asks::Session(session), _) => {
                self.round.put(&**session, &key, request.clone()).await?;
                let answer = self.round.ask(&key, request)?;
                answer.ok_or_else(|| AskError::Unreadable("the client's answer was not recorded".into()))
            }
            (None, Asks::Replay, Wait::Blocking) => Err(AskError::Suspended),
            // Whoever drives this run sees that a question is open and drops it.
            (None, Asks::Replay, Wait::Async) => std::future::pending().await,
        }
    }
}
