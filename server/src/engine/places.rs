//! The places of this node's runs, `tasks.max_runs` of them, and the threads that tools block, `tasks.max_blocking_threads`; both
//! are shared out fairly between owners.
//!
//! Core's [`Queue`] decides; here is only who is woken. Runs in the request have no place: each holds a connection (or a stream
//! of one), and those are bounded by themselves. A thread they need as anybody does.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use tokkuri_core::access::Owner;
use tokkuri_core::id::{Attempt, TaskId};
use tokkuri_core::queue::{Admitted, Queue};

/// What a task says while its run waits: where it stands in the queue would have to be written anew at every move.
pub(crate) const WAITING: &str = "Waiting for a free place to run.";

type Run = (TaskId, Attempt);

/// The places.
#[derive(Debug)]
pub(super) struct Places {
    shared: Mutex<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// By the numbers of tickets.
    queue: Queue<u64, Owner>,
    next: u64,
    /// Tickets that wait, each with the call that wakes its holder.
    calls: BTreeMap<u64, oneshot::Sender<()>>,
    /// Tickets of tasks that are being stored, until their runs pick them up.
    reserved: BTreeMap<Run, Ticket>,
}

/// A place, or one in the queue for it. Dropping it lets the next one in.
#[derive(Debug)]
pub(crate) struct Ticket {
    places: Arc<Places>,
    number: u64,
    call: Option<oneshot::Receiver<()>>,
}

impl Places {
    pub(super) fn new(limit: usize) -> Arc<Self> {
        let shared = Shared { queue: Queue::new(limit), next: 0, calls: BTreeMap::new(), reserved: BTreeMap::new() };
        Arc::new(Self { shared: Mutex::new(shared) })
    }

    /// Asks for a place.
    pub(super) fn enter(self: &Arc<Self>, owner: &Owner) -> Ticket {
        let mut shared = self.lock();
        let number = shared.next;
        shared.next += 1;
        let call = match shared.queue.admit(number, owner.clone()) {
            Admitted::Starts => None,
            Admitted::Waits => {
                let (call, called) = oneshot::channel();
                shared.calls.insert(number, call);
                Some(called)
            }
        };
        Ticket { places: Arc::clone(self), number, call }
    }

    /// Asks for a place for a task that is about to be stored. Whether it will wait is known by then, and can be stored with it.
    pub(super) fn reserve(self: &Arc<Self>, id: TaskId, owner: &Owner) -> Reservation {
        let run = (id, Attempt::FIRST);
        let ticket = self.enter(owner);
        let waits = ticket.waits();
        self.lock().reserved.insert(run, ticket);
        Reservation { places: Arc::clone(self), run, waits }
    }

    /// The ticket of a run that starts: the reserved one, or a new one.
    pub(super) fn ticket(self: &Arc<Self>, run: Run, owner: &Owner) -> Ticket {
        let reserved = self.lock().reserved.remove(&run);
        reserved.unwrap_or_else(|| self.enter(owner))
    }

    /// How many wait.
    pub(super) fn waiting(&self) -> usize {
        self.lock().queue.waiting()
    }

    fn leave(&self, number: u64) {
        let mut shared = self.lock();
        shared.calls.remove(&number);
        // Whoever is called has the place already: if they are gone by now, their ticket is on its way back here.
        if let Some(next) = shared.queue.leave(&number)
            && let Some(call) = shared.calls.remove(&next)
        {
            let _ = call.send(());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ticket {
    /// Whether it was not its turn yet when it was drawn.
    pub(crate) const fn waits(&self) -> bool {
        self.call.is_some()
    }

    /// Over once it is its turn.
    pub(crate) async fn turn(&mut self) {
        if let Some(call) = &mut self.call {
            // The other half is only dropped together with this ticket's own leaving.
            let _ = call.await;
            self.call = None;
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.places.leave(self.number);
    }
}

/// A ticket that waits for its task to be stored. Dropping this gives it back, unless the run has picked it up.
#[derive(Debug)]
pub(super) struct Reservation {
    places: Arc<Places>,
    run: Run,
    pub(super) waits: bool,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        // The lock is released before the ticket is dropped.
        let ticket = self.places.lock().reserved.remove(&self.run);
        drop(ticket);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn owner(name: &str) -> Owner {
        Owner { principal: name.into(), server: "s".into(), client: "".into(), resource: "".into() }
    }

    fn id(n: u8) -> TaskId {
        TaskId::from_bytes([n; 18])
    }

    #[test]
    fn a_ticket_that_is_dropped_lets_the_next_one_in() {
        let places = Places::new(1);
        let first = places.enter(&owner("a"));
        let gone = places.enter(&owner("a"));
        let mut next = places.enter(&owner("a"));
        assert!(!first.waits() && gone.waits() && next.waits());
        drop(gone);
        assert!(next.turn().now_or_never().is_none());
        drop(first);
        assert!(next.turn().now_or_never().is_some());
        drop(next);
        assert!(!places.enter(&owner("b")).waits());
    }

    #[test]
    fn a_ticket_that_is_dropped_after_it_was_called_passes_the_place_on() {
        let places = Places::new(1);
        let first = places.enter(&owner("a"));
        let called = places.enter(&owner("a"));
        let mut next = places.enter(&owner("a"));
        drop(first);
        drop(called);
        assert!(next.turn().now_or_never().is_some());
    }

    #[test]
    fn a_task_that_was_not_stored_gives_its_place_back() {
        let places = Places::new(1);
        let reservation = places.reserve(id(1), &owner("a"));
        assert!(!reservation.waits);
        assert!(places.enter(&owner("a")).waits());
        drop(reservation);
        let reservation = places.reserve(id(3), &owner("a"));
        let ticket = places.ticket((id(3), Attempt::FIRST), &owner("a"));
        drop(reservation);
        assert!(places.enter(&owner("a")).waits(), "the run has picked it up");
        drop(ticket);
        assert_eq!(places.waiting(), 0);
    }
}
