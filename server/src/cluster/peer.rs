//! What other nodes tell this one.

use std::sync::Arc;

use tokkuri_core::id::{Revision, TaskId};
use tonic::{Request, Response, Status, async_trait};

use super::proto::peer_server::Peer;
use super::proto::{SignalRequest, SignalResponse};
use super::status::bad_field;
use crate::engine::Engine;

/// How many signals one call may carry.
pub(super) const MAX_BATCH: usize = 1024;

/// Takes signals and passes them to the engine as hints. Whatever reading they are worth is done after the answer.
#[derive(Debug)]
pub(super) struct PeerService {
    pub(super) engine: Arc<Engine>,
}

#[async_trait]
impl Peer for PeerService {
    async fn signal(&self, request: Request<SignalRequest>) -> Result<Response<SignalResponse>, Status> {
        let signals = request.into_inner().signals;
        if signals.len() > MAX_BATCH {
            return Err(bad_field("signals", format!("give {MAX_BATCH} at most")));
        }
        let hints: Result<Vec<(TaskId, Revision)>, _> =
            signals.iter().map(|signal| Ok((signal.task_id.parse()?, Revision(signal.revision)))).collect();
        let hints =
            hints.map_err(|error: tokkuri_core::id::NotATaskId| bad_field("signals.task_id", error.to_string()))?;
        let counts = &self.engine.meters().signals;
        counts.received.increment(hints.len() as u64);
        for (id, revision) in hints {
            if self.engine.knows(id, revision) {
                counts.late.increment(1);
            }
            self.engine.hint(id, Some(revision));
        }
        Ok(Response::new(SignalResponse {}))
    }
}
