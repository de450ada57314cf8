//! How much memory the bodies of requests may take up, all of them together. Without it, as many bodies as there may be connections could be
//! as large as one may be.
//!
//! Bytes are counted as they arrive, not as they are announced: who announces much and sends nothing takes nothing from others. They are given
//! back with the body itself, whatever became of its request: the body holds them.
//!
//! Small bodies are counted and never refused: who fills the budget with large ones keeps nobody from polling a task or cancelling it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Body;
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};

/// A body no larger than this is small.
const SMALL: usize = 16 << 10;

/// The bytes of all bodies, and how many there may be.
#[derive(Debug)]
pub(crate) struct Budget {
    held: AtomicUsize,
    max: usize,
    small: usize,
}

/// Why a body is not there.
#[derive(Debug)]
pub(crate) enum Unread {
    /// It is larger than one may be.
    TooLarge,
    /// All bodies together are larger than they may be.
    NoRoom,
    /// It did not come to its end.
    Broken(axum::BoxError),
}

impl Budget {
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { held: AtomicUsize::new(0), max, small: SMALL })
    }

    /// How many bytes are held.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Reads a body of `limit` bytes at most. Dropping this future half-way gives back what it held.
    pub(crate) async fn read(self: &Arc<Self>, body: Body, limit: usize) -> Result<Bytes, Unread> {
        let mut body = std::pin::pin!(Limited::new(body, limit));
        let mut taken = Taken { budget: Arc::clone(self), bytes: 0 };
        let mut read = Read::Nothing;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| match error.is::<LengthLimitError>() {
                true => Unread::TooLarge,
                false => Unread::Broken(error),
            })?;
            // Trailers are nobody's affair here.
            let Ok(data) = frame.into_data() else { continue };
            if !taken.add(data.len()) {
                return Err(Unread::NoRoom);
            }
            read.add(data);
        }
        Ok(Bytes::from_owner(Held { bytes: read.whole(), _taken: taken }))
    }
}

/// Bytes that are counted for as long as this is.
#[derive(Debug)]
struct Taken {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Taken {
    /// Takes so many more, if there is room for them, or they are few.
    fn add(&mut self, bytes: usize) -> bool {
        let are_few = self.bytes + bytes <= self.budget.small;
        let fits = |held: usize| held.checked_add(bytes).filter(|all| are_few || *all <= self.budget.max);
        let took = self.budget.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok();
        if took {
            self.bytes += bytes;
        }
        took
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.budget.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// What has arrived. Most bodies come in one piece, which is not copied.
enum Read {
    Nothing,
    Piece(Bytes),
    Pieces(Vec<u8>),
}

impl Read {
    fn add(&mut self, data: Bytes) {
        match self {
            Self::Nothing => *self = Self::Piece(data),
            Self::Piece(first) => *self = Self::Pieces([&**first, &data].concat()),
            Self::Pieces(all) => all.extend_from_slice(&data),
        }
    }

    fn whole(self) -> Bytes {
        match self {
            Self::Nothing => Bytes::new(),
            Self::Piece(piece) => piece,
            Self::Pieces(all) => all.into(),
        }
    }
}

/// A body that is counted until its last copy is gone.
struct Held {
    bytes: Bytes,
    _taken: Taken,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::{FutureExt, StreamExt, stream};

    use super::*;

    fn body(pieces: &[&'static str]) -> Body {
        let pieces: Vec<_> =
            pieces.iter().map(|piece| Ok::<_, Infallible>(Bytes::from_static(piece.as_bytes()))).collect();
        Body::from_stream(stream::iter(pieces))
    }

    fn none_small(max: usize) -> Arc<Budget> {
        Arc::new(Budget { held: AtomicUsize::new(0), max, small: 0 })
    }

    #[tokio::test]
    async fn small_bodies_pass_where_large_ones_have_left_no_room() {
        let budget = Arc::new(Budget { held: AtomicUsize::new(0), max: 10, small: 4 });
        let large = budget.read(body(&["1234567890"]), 10).await.unwrap();
        let small = budget.read(body(&["12", "34"]), 10).await.unwrap();
        assert_eq!(budget.held(), 14);
        assert!(matches!(budget.read(body(&["1234", "5"]), 10).await, Err(Unread::NoRoom)));
        assert!(matches!(budget.read(body(&["12345"]), 10).await, Err(Unread::NoRoom)));
        drop((large, small));
        assert_eq!(budget.held(), 0);
    }

    #[tokio::test]
    async fn a_body_is_counted_until_its_last_copy_is_gone() {
        let budget = none_small(10);
        for pieces in [&[][..], &["whole"], &["in ", "three", " p"]] {
            let read = budget.read(body(pieces), 10).await.unwrap();
            assert_eq!(read, pieces.concat());
            let copy = read.slice(..read.len() / 2);
            drop(read);
            assert_eq!(budget.held(), pieces.concat().len());
            drop(copy);
            assert_eq!(budget.held(), 0);
        }
    }

    #[tokio::test]
    async fn where_there_is_no_room_nothing_is_held() {
        let budget = none_small(10);
        let first = budget.read(body(&["123456"]), 10).await.unwrap();
        assert!(matches!(budget.read(body(&["123", "45"]), 10).await, Err(Unread::NoRoom)));
        assert_eq!(budget.held(), 6);
        let second = budget.read(body(&["12", "34"]), 10).await.unwrap();
        drop(first);
        assert!(matches!(budget.read(body(&["12345678901"]), 10).await, Err(Unread::TooLarge)));
        let broken = Body::from_stream(stream::iter([Ok(Bytes::from_static(b"1")), Err(std::io::Error::other("cut"))]));
        assert!(matches!(budget.read(broken, 10).await, Err(Unread::Broken(_))));
        assert_eq!(budget.held(), 4);
        drop(second);
        assert_eq!(budget.held(), 0);
    }

    #[tokio::test]
    async fn a_body_that_is_given_up_half_way_gives_back_what_had_come() {
        let budget = none_small(10);
        let half = stream::iter([Ok::<_, Infallible>(Bytes::from_static(b"12345"))]).chain(stream::pending());
        {
            let mut reading = std::pin::pin!(budget.read(Body::from_stream(half), 10));
            assert!((&mut reading).now_or_never().is_none());
            assert_eq!(budget.held(), 5);
        }
        assert_eq!(budget.held(), 0);
    }
}
