//! A create reply on its way.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use crate::mcp::call::Undelivered;
use crate::mcp::pieces::Pieces;

/// The body of a create reply: dropped before its bytes were taken, it cancels the task that nobody will hear of.
pub(super) struct Delivery {
    body: Pieces,
    undelivered: Undelivered,
}

impl Delivery {
    pub(super) const fn new(body: Pieces, undelivered: Undelivered) -> Self {
        Self { body, undelivered }
    }
}

impl http_body::Body for Delivery {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if self.body.is_end_stream() {
            self.undelivered.delivered();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
