//! What a connection is doing, so that it can be told when it has kept silent, dribbled or not read for too long.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use std::{fmt, io};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use super::ConnectionLimits;

/// What is known of one connection. Times are milliseconds since it was opened, counted from 1.
#[derive(Debug)]
pub(super) struct Pulse {
    opened: Instant,
    /// Requests under way: their head is there, and their answer is not out yet.
    busy: AtomicUsize,
    /// Whether bytes of a head have come that is not whole yet. A new connection owes one from the start.
    in_head: AtomicBool,
    /// Whether it is one that many requests share (HTTP/2). What comes while it is idle need not be of a head: pings, room for
    /// answers. Its heads have the time that it may be idle.
    shared: AtomicBool,
    /// Since when it is idle, or in its head.
    since: AtomicU64,
    /// Since when the client does not take what is written; 0 while it does.
    stalled: AtomicU64,
    /// Answers of which a piece was handed over and no further one is asked for, and since when. On a connection that is shared by many answers
    /// one of them can come to a halt while bytes are taken for the others.
    halted: Mutex<BTreeMap<u64, u64>>,
    /// The number of the next request.
    next: AtomicU64,
}

/// A request under way.
#[derive(Debug)]
pub(super) struct Busy {
    pulse: Arc<Pulse>,
    number: u64,
    halted: bool,
}

impl Pulse {
    pub(super) fn new() -> Self {
        Self {
            opened: Instant::now(),
            busy: AtomicUsize::new(0),
            in_head: AtomicBool::new(true),
            shared: AtomicBool::new(false),
            since: AtomicU64::new(1),
            stalled: AtomicU64::new(0),
            halted: Mutex::default(),
            next: AtomicU64::new(0),
        }
    }

    /// A request's head has come, on a connection that others share or not.
    pub(super) fn begin(self: &Arc<Self>, shared: bool) -> Busy {
        self.busy.fetch_add(1, Ordering::Relaxed);
        self.shared.store(shared, Ordering::Relaxed);
        self.in_head.store(false, Ordering::Relaxed);
        Busy { pulse: Arc::clone(self), number: self.next.fetch_add(1, Ordering::Relaxed), halted: false }
    }

    /// Over once the connection has used up its patience.
    pub(super) async fn used_up(&self, limits: &ConnectionLimits) {
        loop {
            let deadline = self.deadline(limits);
            if deadline <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(deadline).await;
        }
    }

    /// The moment at which it is over, as things stand. Things may change before: whoever waits for it looks again.
    fn deadline(&self, limits: &ConnectionLimits) -> Instant {
        let stalled = Some(self.stalled.load(Ordering::Relaxed)).filter(|since| *since > 0);
        let halted = self.halted().values().min().copied();
        if let Some(unread) = stalled.into_iter().chain(halted).min() {
            return self.at(unread) + limits.write_timeout;
        }
        if self.busy.load(Ordering::Relaxed) > 0 {
            let again = limits.idle_timeout.min(limits.header_timeout).min(limits.write_timeout);
            return Instant::now() + again.max(Duration::from_millis(1));
        }
        let in_head = self.in_head.load(Ordering::Relaxed);
        self.at(self.since.load(Ordering::Relaxed)) + if in_head { limits.header_timeout } else { limits.idle_timeout }
    }

    fn has_read(&self) {
        let idle = self.busy.load(Ordering::Relaxed) == 0 && !self.in_head.load(Ordering::Relaxed);
        if idle && !self.shared.load(Ordering::Relaxed) {
            self.since.store(self.now(), Ordering::Relaxed);
            self.in_head.store(true, Ordering::Relaxed);
        }
    }

    fn has_written<T>(&self, poll: &Poll<T>) {
        match poll {
            Poll::Ready(_) => self.stalled.store(0, Ordering::Relaxed),
            Poll::Pending if self.stalled.load(Ordering::Relaxed) == 0 => {
                self.stalled.store(self.now(), Ordering::Relaxed);
            }
            Poll::Pending => {}
        }
    }

    fn halted(&self) -> MutexGuard<'_, BTreeMap<u64, u64>> {
        self.halted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1
    }

    fn at(&self, moment: u64) -> Instant {
        self.opened + Duration::from_millis(moment - 1)
    }
}

impl Busy {
    /// A piece of the answer was handed over, and there are more.
    pub(super) fn has_handed_over(&mut self) {
        self.halted = true;
        self.pulse.halted().insert(self.number, self.pulse.now());
    }

    /// The next piece is asked for.
    pub(super) fn is_asked(&mut self) {
        if std::mem::take(&mut self.halted) {
            self.pulse.halted().remove(&self.number);
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.is_asked();
        if self.pulse.busy.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.pulse.since.store(self.pulse.now(), Ordering::Relaxed);
        }
    }
}

/// A stream whose connection is looked after.
pub(super) struct Watched<S> {
    stream: S,
    pulse: Arc<Pulse>,
}

impl<S> Watched<S> {
    pub(super) const fn new(stream: S, pulse: Arc<Pulse>) -> Self {
        Self { stream, pulse }
    }
}

impl<S> fmt::Debug for Watched<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched").field("pulse", &self.pulse).finish_non_exhaustive()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let poll = Pin::new(&mut self.stream).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.pulse.has_read();
        }
        poll
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.pulse.has_written(&poll);
        poll
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.pulse.has_written(&poll);
        poll
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_flush(cx);
        self.pulse.has_written(&poll);
        poll
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    const LIMITS: ConnectionLimits = ConnectionLimits {
        max_connections: 1,
        max_header_bytes: 1,
        max_headers: 1,
        max_concurrent_requests: 1,
        header_timeout: Duration::from_secs(10),
        idle_timeout: Duration::from_secs(60),
        write_timeout: Duration::from_secs(30),
    };

    async fn after(pulse: &Pulse, seconds: u64) -> bool {
        tokio::time::advance(Duration::from_secs(seconds)).await;
        pulse.used_up(&LIMITS).now_or_never().is_some()
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_never_sends_a_head_is_over_soon_however_it_dribbles() {
        let pulse = Pulse::new();
        for _ in 0..9 {
            assert!(!after(&pulse, 1).await);
            pulse.has_read();
        }
        assert!(after(&pulse, 1).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_may_take_its_time_and_then_the_connection_may_be_idle_for_a_while() {
        let pulse = Arc::new(Pulse::new());
        let busy = pulse.begin(false);
        let second = pulse.begin(false);
        assert!(!after(&pulse, 1000).await);
        drop(busy);
        assert!(!after(&pulse, 1000).await);
        drop(second);
        assert!(!after(&pulse, 59).await);
        assert!(after(&pulse, 1).await);
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_byte_of_the_next_head_starts_its_time() {
        let pulse = Arc::new(Pulse::new());
        drop(pulse.begin(false));
        assert!(!after(&pulse, 50).await);
        pulse.has_read();
        assert!(!after(&pulse, 9).await);
        assert!(after(&pulse, 1).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_ping_on_a_shared_connection_is_no_head_and_does_not_keep_it_open() {
        let pulse = Arc::new(Pulse::new());
        drop(pulse.begin(true));
        for _ in 0..59 {
            assert!(!after(&pulse, 1).await);
            pulse.has_read();
        }
        assert!(after(&pulse, 1).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_is_given_up_although_its_request_is_under_way() {
        let pulse = Arc::new(Pulse::new());
        let _busy = pulse.begin(false);
        pulse.has_written(&Poll::<()>::Pending);
        assert!(!after(&pulse, 29).await);
        pulse.has_written(&Poll::<()>::Pending);
        assert!(after(&pulse, 1).await);
        pulse.has_written(&Poll::Ready(()));
        assert!(!after(&pulse, 1000).await);
    }

    #[tokio::test(start_paused = true)]
    async fn of_many_answers_one_that_is_not_read_is_enough() {
        let pulse = Arc::new(Pulse::new());
        let (mut one, mut other) = (pulse.begin(true), pulse.begin(true));
        one.has_handed_over();
        for _ in 0..2 {
            // It is read slowly, but it is read.
            assert!(!after(&pulse, 29).await);
            one.is_asked();
            one.has_handed_over();
        }
        other.has_handed_over();
        assert!(!after(&pulse, 20).await);
        one.is_asked();
        pulse.has_written(&Poll::Ready(()));
        assert!(after(&pulse, 10).await);
        drop(other);
        assert!(!after(&pulse, 1000).await);
    }
}
