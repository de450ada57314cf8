//! Blocking work under an async body: on a thread of its own, told to stop once the body is dropped.

use tokio_util::sync::CancellationToken;

use crate::tool::ToolError;

/// Runs `work` on a thread that may block. If this future is dropped, because its task was cancelled, say, the token fires:
/// the work has to look at it between two pieces, and whatever it returns is dropped on its thread.
pub(crate) async fn on_a_thread<T, F>(work: F) -> Result<T, ToolError>
where
    T: Send + 'static,
    F: FnOnce(&CancellationToken) -> Result<T, ToolError> + Send + 'static,
{
    let stopped = CancellationToken::new();
    let _stops_when_dropped = stopped.clone().drop_guard();
    match tokio::task::spawn_blocking(move || work(&stopped)).await {
        Ok(outcome) => outcome,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(ToolError::failed("the server is shutting down")),
        },
    }
}

/// What work returns that was told to stop. Nobody reads it.
pub(crate) fn halted() -> ToolError {
    ToolError::failed("stopped")
}
