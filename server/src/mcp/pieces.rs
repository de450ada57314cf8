//! A body in pieces: a large result is sent from where it is kept, so that many who ask for it and do not read hold it once, not
//! each for themselves.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokkuri_core::task::{Phase, Task};
use tokkuri_core::wire::Json;

/// From this size on a result is not copied.
const SHARED_FROM: usize = 4 << 10;

/// A body whose length is known.
#[derive(Debug, Default)]
pub(crate) struct Pieces(VecDeque<Bytes>);

impl Pieces {
    /// These bytes, one after another.
    pub(crate) fn new(pieces: impl IntoIterator<Item = Bytes>) -> Self {
        Self(pieces.into_iter().filter(|piece| !piece.is_empty()).collect())
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.pop_front().map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.iter().map(|piece| piece.len() as u64).sum())
    }
}

/// A task that ends with a large result, written by `write` as the last thing but closing braces: what stands before the result,
/// the result, what stands behind it. `None` if the result is small, or there is none.
pub(crate) fn around_result(task: &Arc<Task<Json>>, write: impl FnOnce(&Task<Json>) -> Bytes) -> Option<[Bytes; 3]> {
    let Phase::Completed(result) = &task.phase else { return None };
    if result.as_str().len() < SHARED_FROM {
        return None;
    }
    // What stands around it is what stands around one that is short.
    let short = Json::parse("0").expect("a number is JSON");
    let text = write(&Task { phase: Phase::Completed(short), ..Task::clone(task) });
    let before = text.windows(BEFORE.len()).rposition(|it| it == BEFORE)? + BEFORE.len() - 1;
    Some([text.slice(..before), Bytes::from_owner(Shared(Arc::clone(task))), text.slice(before + 1..)])
}

/// The last member of a completed task, and its short result.
const BEFORE: &[u8] = br#""result":0"#;

/// A task's result as bytes. It holds the task, so that its store can hand out the same one meanwhile.
struct Shared(Arc<Task<Json>>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        match &self.0.phase {
            Phase::Completed(result) => result.as_str().as_bytes(),
            Phase::Live(_) | Phase::Failed(_) | Phase::Cancelled => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    #[tokio::test]
    async fn pieces_come_out_in_order_and_their_length_is_known() {
        let body = Pieces::new(["one", "", "two"].map(Bytes::from));
        assert_eq!((body.size_hint().exact(), body.is_end_stream()), (Some(6), false));
        assert_eq!(body.collect().await.unwrap().to_bytes(), "onetwo");
        let empty = Pieces::default();
        assert_eq!((empty.size_hint().exact(), empty.is_end_stream()), (Some(0), true));
    }
}
