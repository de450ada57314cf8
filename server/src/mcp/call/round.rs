//! One round of code that asks by being run again: `prepare`, and a body in the request.

use std::future::{Future, poll_fn};
use std::panic::AssertUnwindSafe;
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt;
use tokkuri_core::task::Fault;
use tokkuri_core::wire::Json;

use crate::tool::{Asks, Inline, Tool};

/// How a round ended.
#[derive(Debug)]
pub(super) enum End<T> {
    /// By itself.
    Returned(T),
    /// It waits for an answer that is not there: the reply carries the questions.
    Open,
    /// The client is gone.
    Gone,
    /// With a panic.
    Panicked,
}

/// Polls `run` until it ends, cannot go on without an answer, or the client is gone, and then for as long as its grace is. A run
/// that did not end is dropped, and nothing after its last await runs.
pub(super) async fn play<T>(inline: &Inline, grace: Duration, run: impl Future<Output = T>) -> End<T> {
    let mut run = Box::pin(AssertUnwindSafe(run).catch_unwind());
    let mut gone = std::pin::pin!(inline.cancelled.cancelled());
    let end = poll_fn(|cx| {
        if gone.as_mut().poll(cx).is_ready() {
            return Poll::Ready(End::Gone);
        }
        match run.as_mut().poll(cx) {
            Poll::Ready(Ok(returned)) => Poll::Ready(End::Returned(returned)),
            Poll::Ready(Err(_)) => Poll::Ready(End::Panicked),
            Poll::Pending => match &inline.asks {
                Asks::Replay if inline.round.is_open() => Poll::Ready(End::Open),
                Asks::Replay | Asks::Session(_) => Poll::Pending,
            },
        }
    })
    .await;
    if matches!(end, End::Gone) && !grace.is_zero() {
        // Whatever it still returns is thrown away.
        let _ = tokio::time::timeout(grace, run.as_mut()).await;
    }
    match std::panic::catch_unwind(AssertUnwindSafe(|| drop(run))) {
        Ok(()) => end,
        Err(_) => End::Panicked,
    }
}

/// What a client learns of a panic. What the panic said stays in the log.
pub(super) fn panicked(tool: &Tool) -> Fault<Json> {
    tracing::error!(tool = %tool.name, "the tool panicked");
    Fault::internal("The tool stopped unexpectedly.")
}
