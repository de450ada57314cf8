//! A stream that is open no longer than the token that opened it is good.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::SystemTime;

use axum::body::Body;
use bytes::Bytes;
use http_body::Frame;
use tokio::time::Sleep;

/// A body that ends at a point in time, if it has not before.
pub(crate) struct Until {
    body: Body,
    end: Pin<Box<Sleep>>,
}

impl Until {
    /// `body`, no longer than until `end`.
    pub(crate) fn new(body: Body, end: SystemTime) -> Self {
        let left = end.duration_since(crate::wall_clock::now()).unwrap_or_default();
        Self { body, end: Box::pin(tokio::time::sleep(left)) }
    }
}

impl http_body::Body for Until {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        match self.end.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(None),
            Poll::Pending => Pin::new(&mut self.body).poll_frame(cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http_body_util::BodyExt as _;
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_stream_ends_with_its_token_and_not_before() {
        let (sender, receiver) = tokio::sync::mpsc::channel::<Result<Bytes, std::io::Error>>(1);
        let stream = tokio_stream::StreamExt::map(tokio_stream::wrappers::ReceiverStream::new(receiver), |item| item);
        let mut body = Until::new(Body::from_stream(stream), SystemTime::now() + Duration::from_secs(60));
        sender.send(Ok(Bytes::from_static(b"event"))).await.unwrap();
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "event");
        let start = Instant::now();
        assert!(body.frame().await.is_none());
        let waited = start.elapsed().as_secs();
        assert!((55..=61).contains(&waited), "{waited} s");
    }

    #[tokio::test]
    async fn a_body_that_ends_by_itself_does_not_wait() {
        let mut body = Until::new(Body::from("all"), SystemTime::now() + Duration::from_secs(3600));
        assert_eq!((&mut body).collect().await.unwrap().to_bytes(), "all");
    }
}
