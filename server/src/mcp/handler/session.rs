//! Questions to a client of the earlier era: requests of ours, on the session that it opened.
//!
//! rmcp sends a request on the stream of the call that it belongs to, and knows which one that is only inside the task that
//! handles the call. A tool may ask from anywhere: a thread that it blocks, a task that it spawned. So its questions go through
//! a channel, and the handler's task puts them.

use std::future::Future;
use std::pin::Pin;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use rmcp::model::ServerRequest;
use rmcp::{Peer, RoleServer};
use tokio::sync::{mpsc, oneshot};
use tokkuri_core::wire::Json;

use crate::tool::{AskError, Session};

/// What a tool has of the session.
#[derive(Debug)]
pub(super) struct Asker(mpsc::UnboundedSender<Question>);

/// Questions on their way to the client.
#[derive(Debug)]
pub(super) struct Questions(mpsc::UnboundedReceiver<Question>);

#[derive(Debug)]
struct Question {
    request: ServerRequest,
    answer: oneshot::Sender<Result<Json, AskError>>,
}

/// The two ends of one call's session.
pub(super) fn session() -> (Asker, Questions) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (Asker(sender), Questions(receiver))
}

/// Puts the questions, any number at once. Never ends; to be awaited in the task that handles the call.
pub(super) async fn put(peer: &Peer<RoleServer>, mut questions: Questions) {
    let mut open = FuturesUnordered::new();
    loop {
        tokio::select! {
            Some(Question { request, answer }) = questions.0.recv() => open.push(async move {
                let answered = match peer.send_request(request).await {
                    Ok(answered) => Json::of(&answered).map_err(|failure| AskError::Unreadable(failure.to_string())),
                    Err(failure) => Err(AskError::Unreadable(failure.to_string())),
                };
                // Whoever asked may have been dropped since.
                let _ = answer.send(answered);
            }),
            Some(()) = open.next() => {}
            else => std::future::pending().await,
        }
    }
}

impl Session for Asker {
    fn ask(&self, request: Json) -> Pin<Box<dyn Future<Output = Result<Json, AskError>> + Send + '_>> {
        Box::pin(async move {
            let request = request.read().map_err(|failure| AskError::Unreadable(failure.to_string()))?;
            let (answer, answered) = oneshot::channel();
            let over = || AskError::Unreadable("the call that could ask is over".into());
            self.0.send(Question { request, answer }).map_err(|_| over())?;
            answered.await.map_err(|_| over())?
        })
    }
}
