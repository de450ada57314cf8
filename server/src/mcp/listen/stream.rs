//! The body of a listen: it is asked for bytes only when the client can take some, and takes from the followers' table then. So
//! a client that does not read holds up nobody and is owed one snapshot of each task, the latest.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http_body::{Body, Frame};
use tokio::time::{Sleep, sleep};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tokkuri_core::signal::Subscription;
use tokkuri_core::wire::Json;

use super::event::{KEEP_ALIVE, Wire};
use super::others::Others;
use super::permit::Permit;

/// The messages of one subscription, as bytes. Dropping it unregisters it.
#[derive(Debug)]
pub(crate) struct Stream {
    wire: Wire,
    /// What is on its way: the pieces of one event.
    pieces: VecDeque<Bytes>,
    /// `None` once no task can change any more.
    subscription: Option<Subscription<Json>>,
    /// `None` if there are none, or rmcp has ended them.
    others: Option<Others>,
    /// Whether the other filters are asked first: they take turns with the tasks.
    others_first: bool,
    keep_alive: Duration,
    quiet: Option<Pin<Box<Sleep>>>,
    until: Option<Pin<Box<Sleep>>>,
    stopping: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    ended: bool,
    permit: Option<Permit>,
}

impl Stream {
    /// A stream that begins with `acknowledged`.
    pub(super) fn new(wire: Wire, acknowledged: Bytes, subscription: Subscription<Json>) -> Self {
        Self {
            wire,
            pieces: VecDeque::from([acknowledged]),
            subscription: Some(subscription),
            others: None,
            others_first: false,
            keep_alive: Duration::from_secs(20),
            quiet: None,
            until: None,
            stopping: None,
            ended: false,
            permit: None,
        }
    }

    /// With the events of these as well.
    pub(super) fn with_others(mut self, others: Option<Others>) -> Self {
        self.others = others;
        self
    }

    /// Speaks up after so much silence.
    pub(super) const fn keep_alive(mut self, silence: Duration) -> Self {
        self.keep_alive = silence;
        self
    }

    /// Ends at this moment, with a result.
    pub(super) fn until(mut self, moment: Option<SystemTime>) -> Self {
        let left = moment.map(|moment| moment.duration_since(crate::wall_clock::now()).unwrap_or_default());
        self.until = left.map(|left| Box::pin(sleep(left)));
        self
    }

    /// Ends with this token, with a result.
    pub(super) fn until_cancelled(mut self, token: CancellationToken) -> Self {
        self.stopping = Some(Box::pin(token.cancelled_owned()));
        self
    }

    /// Holds this place for as long as it is open.
    pub(super) fn holding(mut self, permit: Permit) -> Self {
        self.permit = Some(permit);
        self
    }

    /// The next event, in pieces; `None` once the stream has ended.
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Vec<Bytes>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        // The end of the credentials cuts off whatever else there is.
        if is_over(&mut self.until, cx) {
            return Poll::Ready(Some(self.end()));
        }
        self.others_first = !self.others_first;
        for others in [self.others_first, !self.others_first] {
            let event = if others { self.poll_others(cx) } else { self.poll_tasks(cx) };
            if let Poll::Ready(event) = event {
                return Poll::Ready(Some(event));
            }
        }
        // What the end of the server brought about was told before the end is.
        if is_over(&mut self.stopping, cx) {
            return Poll::Ready(Some(self.end()));
        }
        let silence = self.keep_alive;
        self.quiet.get_or_insert_with(|| Box::pin(sleep(silence)));
        if is_over(&mut self.quiet, cx) {
            return Poll::Ready(Some(vec![Bytes::from_static(KEEP_ALIVE)]));
        }
        Poll::Pending
    }

    fn poll_tasks(&mut self, cx: &mut Context<'_>) -> Poll<Vec<Bytes>> {
        let Some(subscription) = &mut self.subscription else { return Poll::Pending };
        match subscription.poll_next(cx) {
            Poll::Ready(Some(task)) => Poll::Ready(self.wire.task(&task)),
            // The stream stays: that nothing can follow is for the client to draw from the terminal states.
            Poll::Ready(None) => {
                self.subscription = None;
                Poll::Pending
            }
            Poll::Pending => Poll::Pending,
        }
    }

    fn poll_others(&mut self, cx: &mut Context<'_>) -> Poll<Vec<Bytes>> {
        let Some(others) = &mut self.others else { return Poll::Pending };
        match others.poll_next(&self.wire, cx) {
            Poll::Ready(Some(event)) => Poll::Ready(vec![event]),
            Poll::Ready(None) => {
                self.others = None;
                Poll::Pending
            }
            Poll::Pending => Poll::Pending,
        }
    }

    fn end(&mut self) -> Vec<Bytes> {
        self.ended = true;
        (self.subscription, self.others, self.permit) = (None, None, None);
        vec![self.wire.result()]
    }
}

impl Body for Stream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.pieces.is_empty() {
            match self.poll_event(cx) {
                Poll::Ready(Some(pieces)) => self.pieces.extend(pieces),
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            }
        }
        self.quiet = None;
        Poll::Ready(self.pieces.pop_front().map(|piece| Ok(Frame::data(piece))))
    }
}

/// Whether something that may come has come.
fn is_over<F: Future<Output = ()>>(event: &mut Option<Pin<Box<F>>>, cx: &mut Context<'_>) -> bool {
    event.as_mut().is_some_and(|event| event.as_mut().poll(cx).is_ready())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http_body_util::BodyExt;
    use tokkuri_core::access::{Caller, Owner, Scopes};
    use tokkuri_core::id::{NodeId, TaskId};
    use tokkuri_core::procedure::Seen;
    use tokkuri_core::signal::Followers;
    use tokkuri_core::task::{Command, Draft, Task};
    use tokkuri_core::time::Millis;

    use super::super::permit::Permits;
    use super::*;
    use crate::mcp::envelope::RawId;

    struct Bed {
        followers: Arc<Followers<Json>>,
        task: Task<Json>,
        caller: Arc<Caller>,
    }

    impl Bed {
        fn new() -> Self {
            let owner = Owner { principal: "p".into(), server: "s".into(), client: "".into(), resource: "".into() };
            let arguments = Json::parse("{}").unwrap();
            let draft = Draft::new(TaskId::from_bytes([0; 18]), owner.clone(), "t", arguments, NodeId(1));
            Self {
                followers: Arc::new(Followers::new(1)),
                task: draft.created(Millis(0)),
                caller: Arc::new(Caller { owner, scopes: Scopes::Unrestricted }),
            }
        }

        fn stream(&self) -> Stream {
            let subscription = self.followers.follow(&self.caller, vec![self.task.id]);
            self.publish();
            let wire = Wire::new(RawId::of(serde_json::from_str("1").unwrap()).unwrap());
            Stream::new(wire, Bytes::from_static(b"ack"), subscription)
        }

        fn publish(&self) {
            self.followers.observe(self.task.id, &Seen::Task(Arc::new(self.task.clone())));
        }

        fn apply(&mut self, command: Command<Json>) {
            self.task.apply(Millis(0), command, &mut Vec::new()).unwrap();
            self.publish();
        }
    }

    async fn next(stream: &mut Stream) -> Option<String> {
        let frame = stream.frame().await?.unwrap();
        Some(String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap())
    }

    #[track_caller]
    fn says(event: Option<&String>, what: &str) {
        assert!(event.is_some_and(|event| event.contains(what)), "{event:?} does not say {what}");
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_broken_and_only_silence() {
        let bed = Bed::new();
        let mut stream = bed.stream().keep_alive(Duration::from_secs(20));
        assert_eq!(next(&mut stream).await.as_deref(), Some("ack"));
        says(next(&mut stream).await.as_ref(), r#""status":"working""#);
        let begun = tokio::time::Instant::now();
        for n in 1..=3 {
            assert_eq!(next(&mut stream).await.as_deref(), Some(": keep-alive\n\n"));
            assert_eq!(begun.elapsed().as_secs(), 20 * n);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_the_credentials_cuts_the_stream_off_with_a_result() {
        let mut bed = Bed::new();
        let permits = Arc::new(Permits::new(1, metrics::Gauge::noop()));
        let end = SystemTime::now() + Duration::from_secs(5);
        let mut stream = bed.stream().until(Some(end)).holding(permits.take(&"p".into()).unwrap());
        next(&mut stream).await;
        next(&mut stream).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        bed.apply(Command::Cancel);
        says(next(&mut stream).await.as_ref(), r#""result":{"resultType":"complete""#);
        assert_eq!(next(&mut stream).await, None);
        assert!(bed.followers.is_empty(), "nothing is followed any more");
        assert!(permits.take(&"p".into()).is_some(), "its place is free although the client has not gone");
    }

    #[tokio::test(start_paused = true)]
    async fn what_the_shutdown_brought_about_is_told_before_the_end() {
        let mut bed = Bed::new();
        let token = CancellationToken::new();
        let mut stream = bed.stream().until_cancelled(token.clone());
        next(&mut stream).await;
        next(&mut stream).await;
        bed.apply(Command::Cancel);
        token.cancel();
        says(next(&mut stream).await.as_ref(), r#""status":"cancelled""#);
        says(next(&mut stream).await.as_ref(), r#""result":{"resultType":"complete""#);
        assert_eq!(next(&mut stream).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_follows_the_terminal_state_but_signs_of_life() {
        let mut bed = Bed::new();
        let mut stream = bed.stream();
        bed.apply(Command::Progress { by: bed.task.attempt, message: "half".into() });
        bed.apply(Command::Cancel);
        next(&mut stream).await;
        says(next(&mut stream).await.as_ref(), r#""status":"cancelled""#);
        bed.publish();
        assert_eq!(next(&mut stream).await.as_deref(), Some(": keep-alive\n\n"));
        assert!(bed.followers.is_empty());
    }
}
