//! How many streams, or sessions, a principal has open: each holds its place for as long as it is.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use http_body::{Body, Frame, SizeHint};
use metrics::Gauge;
use tokkuri_core::Text;

/// What is open, counted by principal.
#[derive(Debug)]
pub(crate) struct Permits {
    open: Mutex<HashMap<Text, usize>>,
    max: usize,
    /// All of them, for operators.
    all: Gauge,
}

/// A place among those of one principal. Dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Permit {
    permits: Arc<Permits>,
    principal: Text,
}

impl Permits {
    /// So many for each principal.
    pub(crate) fn new(max: usize, all: Gauge) -> Self {
        Self { open: Mutex::default(), max, all }
    }

    pub(crate) const fn max(&self) -> usize {
        self.max
    }

    /// A place, if there is one.
    pub(crate) fn take(self: &Arc<Self>, principal: &Text) -> Option<Permit> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let count = open.get(principal).copied().unwrap_or_default();
        if count >= self.max {
            return None;
        }
        open.insert(principal.clone(), count + 1);
        self.all.increment(1.0);
        Some(Permit { permits: Arc::clone(self), principal: principal.clone() })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut open = self.permits.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Entry::Occupied(mut entry) = open.entry(self.principal.clone()) {
            *entry.get_mut() -= 1;
            self.permits.all.decrement(1.0);
            if *entry.get() == 0 {
                entry.remove();
            }
        }
    }
}

/// A body that holds a place.
#[derive(Debug)]
pub(crate) struct Permitted<B> {
    body: B,
    _permit: Permit,
}

impl<B> Permitted<B> {
    pub(crate) const fn new(body: B, permit: Permit) -> Self {
        Self { body, _permit: permit }
    }
}

impl<B: Body + Unpin> Body for Permitted<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_is_given_back_can_be_taken_again() {
        let permits = Arc::new(Permits::new(2, metrics::Gauge::noop()));
        let (one, two) = (Text::from("one"), Text::from("two"));
        let first = permits.take(&one).unwrap();
        let _second = permits.take(&one).unwrap();
        assert!(permits.take(&one).is_none());
        assert!(permits.take(&two).is_some(), "another principal has places of its own");
        drop(first);
        assert!(permits.take(&one).is_some());
        assert_eq!(permits.open.lock().unwrap().len(), 1, "nothing is kept of who has left");
    }
}
