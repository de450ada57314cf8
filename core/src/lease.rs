//! A node's own lease: when to renew it, until when to trust it, and when everything has to stop.
//!
//! Who shares a store with others is thought dead once its lease ran out, and its tasks are run again elsewhere. So a node has to
//! know by itself when that is, whatever it hears or does not hear from the store: that is what this machine decides.
//!
//! Two clocks are in play, and they are never compared. Until when the lease holds, the *store* decides by its own time. The node
//! knows only how long it has been, by the *process's* clock, which counts from anywhere and never goes back: it trusts the lease
//! for as long as it asked for, counted from the moment at which it **sent** the renewal. The store carried it out later than that,
//! so the node stops before the store gives its tasks away, however long the answer was on its way and whatever any clock on
//! any wall says.
//!
//! ```text
//!              Leased                 the deadline passed, or LeaseLost
//!  joining ───────────────▶ held ◀─┐ ──────────────────────────────────▶ lost
//!   │   ▲                    └─────┘ Leased                               ▲ │
//!   │   └────────────────── begin_again(another NodeId) ──────────────────┼─┘
//!   └──────────────────────────── LeaseLost ──────────────────────────────┘
//! ```

use alloc::boxed::Box;

use crate::Text;
use crate::id::NodeId;
use crate::payload::Payload;
use crate::store::{Answer, Load, Node, Outcome, Request};
use crate::time::Millis;

/// How many renewals fit into a lease: a store that is away for a while, or an answer that is lost, costs no node its lease.
const RENEWALS: u64 = 3;

/// The longest time between two renewals, however long the lease is: as long as it takes to hear of a drain, and as old as what
/// others see of the node's load.
const RENEWED_MS: u64 = 2_000;

/// Into how many parts a lease is cut to find how soon a renewal that failed is tried again.
const RETRIES: u64 = 12;

/// Clocks that count the same seconds at different speeds: a node trusts its lease for this part of it less.
const DRIFT: u64 = 64;

/// The lease of one node.
///
/// # Contract
/// * Ask [`due`](Self::due) whenever the moment that it named last has come, and after every [`answered`](Self::answered). It must
///   be asked by a timer of its own: an answer that does not come must not keep a node from learning that its lease ran out.
/// * When it says [`Due::Lost`]: stop every run ([`Host::rejoin`](crate::host::Host::rejoin)), then
///   [`begin_again`](Self::begin_again) under an id that was never used.
/// * `now` is the process's own monotonic clock everywhere.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    node: Node,
    lease_ms: u64,
    state: State,
    /// When the store is to be asked next.
    next: Millis,
    drain: Option<Drain>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    /// The store was not asked yet, or has not answered.
    Joining,
    /// The lease may be trusted until then.
    Held(Millis),
    /// Everything has to stop.
    Lost,
    /// It was given up: the node shuts down.
    Resigned,
}

/// That the node drains: it takes nothing new.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Drain {
    /// What the store said.
    told: Millis,
    /// From when on restartable runs are handed over, by the process's clock: never earlier than by the store's.
    hand_over: Millis,
}

/// What has to be done about a lease.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Due<P> {
    /// Ask the store this, and say what it answered.
    Ask(Box<Request<P>>, Sent),
    /// Nothing before this moment.
    At(Millis),
    /// Every run has to stop, and the node to begin again as another.
    Lost,
}

/// When a request was sent, and for whom: what its answer is judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sent {
    node: NodeId,
    at: Millis,
}

/// Whether a node takes new tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Draining {
    /// It does.
    #[default]
    No,
    /// It takes nothing new, and lets what runs go on.
    Waits,
    /// The time to wait is over: what can be run elsewhere is handed over.
    HandsOver,
}

impl Lease {
    /// The lease of a node that has not joined yet, to be asked for `lease_ms` at a time.
    pub const fn new(node: Node, lease_ms: u64) -> Self {
        Self { node, lease_ms, state: State::Joining, next: Millis(0), drain: None }
    }

    /// What operators call the node, and where others reach it. To be said before it joins.
    pub fn identify(&mut self, name: Text, address: Option<Text>) {
        self.node.name = name;
        self.node.address = address;
    }

    /// This incarnation of the node.
    pub const fn node(&self) -> NodeId {
        self.node.id
    }

    /// Whether the lease may be trusted at `now`. A node that holds none must not create tasks: they would be orphans.
    pub fn holds(&self, now: Millis) -> bool {
        matches!(self.state, State::Held(until) if now < until)
    }

    /// Until when it may be trusted; `None` if it is not held.
    pub const fn until(&self) -> Option<Millis> {
        match self.state {
            State::Held(until) => Some(until),
            State::Joining | State::Lost | State::Resigned => None,
        }
    }

    /// Whether the node drains at `now`.
    pub fn draining(&self, now: Millis) -> Draining {
        match self.drain {
            None => Draining::No,
            Some(Drain { hand_over, .. }) if now < hand_over => Draining::Waits,
            Some(_) => Draining::HandsOver,
        }
    }

    /// Whether the node may take tasks up at `now`: create them, or take over what others lost. One that drains leaves both to
    /// the others, and what a node without a lease takes up is an orphan at once.
    pub fn takes_up(&self, now: Millis) -> bool {
        self.holds(now) && (self.draining(now) == Draining::No || mutant!(DrainingTakesUp))
    }

    /// What has to be done at `now`. `load` is what the node has to do, counted after it was told what the last answer said of a
    /// drain: what it took up before it knew of one is in it.
    pub fn due<P>(&mut self, now: Millis, load: Load) -> Due<P> {
        let deadline = match self.state {
            State::Lost => return Due::Lost,
            State::Held(until) if until <= now && !mutant!(LeaseOutlived) => {
                self.state = State::Lost;
                return Due::Lost;
            }
            State::Resigned => return Due::At(Millis(u64::MAX)),
            State::Held(until) => until,
            State::Joining => Millis(u64::MAX),
        };
        if now < self.next {
            let hand_over = self.drain.map(|drain| drain.hand_over).filter(|moment| now < *moment);
            return Due::At(self.next.min(deadline).min(hand_over.unwrap_or(deadline)));
        }
        // Asked again even if this one is never answered.
        self.next = now.after((self.lease_ms / RENEWALS).clamp(1, RENEWED_MS));
        let (node, lease_ms) = (self.node.id, self.lease_ms);
        let request = match self.state {
            State::Joining => Request::Join { node: Box::new(self.node.clone()), lease_ms },
            State::Held(_) | State::Lost | State::Resigned => {
                let heeds = self.drain.map(|drain| drain.told);
                Request::Renew { node, load: Load { heeds, ..load }, lease_ms }
            }
        };
        Due::Ask(Box::new(request), Sent { node, at: now })
    }

    /// The store answered, or could not. An answer that another incarnation was waiting for changes nothing.
    ///
    /// # Panics
    /// If the outcome answers something else: that is a bug of the host.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the store answers what it was asked; all else is as wrong")]
    pub fn answered<P: Payload>(&mut self, now: Millis, sent: Sent, answer: &Answer<P>) {
        if sent.node != self.node.id || matches!(self.state, State::Lost | State::Resigned) {
            return;
        }
        match &answer.outcome {
            Outcome::Leased { drain, .. } => {
                let from = if mutant!(TrustedFromTheAnswer) { now } else { sent.at };
                let drift = if mutant!(ClocksThoughtEqual) { 0 } else { self.lease_ms / DRIFT };
                let until = from.after(self.lease_ms - drift);
                // Answers may overtake each other.
                self.state = match self.state {
                    State::Held(known) => State::Held(known.max(until)),
                    State::Joining | State::Lost | State::Resigned => State::Held(until),
                };
                self.drain = drain.map(|told| match self.drain {
                    Some(known) if known.told == told => known,
                    Some(_) | None => Drain { told, hand_over: now.after(told.since(answer.now)) },
                });
            }
            Outcome::LeaseLost => self.state = State::Lost,
            // Tried again until the deadline.
            Outcome::Unavailable(_) => {
                self.next = self.next.min(now.after((self.lease_ms / RETRIES).clamp(1, RENEWED_MS)))
            }
            other => panic!("the store answered {other:?} to a lease"),
        }
    }

    /// Every run was told to stop: the node goes on as another.
    pub fn begin_again(&mut self, id: NodeId) {
        if !mutant!(RejoinsAsItself) {
            self.node.id = id;
        }
        self.state = State::Joining;
        self.next = Millis(0);
        self.drain = None;
    }

    /// The node shuts down: its lease is given up, and nothing is due any more.
    pub fn resign<P>(&mut self) -> Request<P> {
        self.state = State::Resigned;
        Request::Resign { node: self.node.id }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Shelf, Unavailable};
    use crate::task::samples::Number;

    const LEASE_MS: u64 = 4_800;
    /// The process's clock and the store's have nothing to do with each other.
    const OURS: Millis = Millis(77);
    const THEIRS: Millis = Millis(1_700_000_000_000);

    fn node(id: u64) -> Node {
        Node { id: NodeId(id), name: "a".into(), address: None, version: "1".into() }
    }

    fn lease() -> Lease {
        Lease::new(node(1), LEASE_MS)
    }

    /// What the lease wants to ask at `now`.
    fn asks(lease: &mut Lease, now: Millis) -> (Request<Number>, Sent) {
        match lease.due(now, Load::default()) {
            Due::Ask(request, sent) => (*request, sent),
            other @ (Due::At(_) | Due::Lost) => panic!("at {now:?}: {other:?}"),
        }
    }

    fn due(lease: &mut Lease, now: Millis) -> Due<Number> {
        lease.due(now, Load::default())
    }

    /// A node that joined when the process's clock showed `OURS`, and the store's `THEIRS`.
    fn joined(shelf: &mut Shelf<Number>) -> Lease {
        let mut lease = lease();
        let (join, sent) = asks(&mut lease, OURS);
        lease.answered(OURS.after(5), sent, &shelf.carry_out(THEIRS, join));
        assert!(lease.holds(OURS.after(5)));
        lease
    }

    #[test]
    fn a_lease_is_trusted_from_the_moment_at_which_it_was_asked_for() {
        let mut shelf = Shelf::default();
        let mut lease = lease();
        assert!(!lease.holds(OURS));
        let (join, sent) = asks(&mut lease, OURS);
        let answer = shelf.carry_out(THEIRS.after(10), join);
        // The answer takes its time: none of it is the node's.
        lease.answered(OURS.after(LEASE_MS / 2), sent, &answer);
        let until = lease.until().unwrap();
        assert!(until < OURS.after(LEASE_MS) && until > OURS.after(LEASE_MS * 9 / 10), "{until:?}");
        assert!(lease.holds(until.before(1)) && !lease.holds(until));
        assert_eq!(due(&mut lease, until), Due::Lost);
        assert_eq!(due(&mut lease, until), Due::Lost, "until it begins again");
    }

    #[test]
    fn it_is_renewed_in_time_and_tried_again_while_the_store_is_away() {
        let mut shelf = Shelf::default();
        let mut lease = joined(&mut shelf);
        let third = OURS.after(LEASE_MS / 3);
        assert_eq!(due(&mut lease, OURS.after(6)), Due::At(third));
        let until = lease.until().unwrap();
        let away = Outcome::<Number>::Unavailable(Unavailable { why: "away".into(), maybe_done: false });
        let (mut now, mut tries) = (third, 0);
        let lost = loop {
            match due(&mut lease, now) {
                Due::Ask(request, sent) => {
                    assert_eq!(*request, Request::Renew { node: NodeId(1), load: Load::default(), lease_ms: LEASE_MS });
                    tries += 1;
                    lease.answered(now.after(1), sent, &Answer { now: THEIRS, outcome: away.clone() });
                }
                Due::At(next) => {
                    assert!(now < next, "it is asked again at once");
                    now = next;
                }
                Due::Lost => break now,
            }
        };
        assert_eq!(lost, until, "not a moment later");
        assert!(tries > 5, "{tries}");
    }

    #[test]
    fn a_renewal_that_is_never_answered_does_not_keep_a_node_from_its_deadline() {
        let mut lease = joined(&mut Shelf::default());
        let (until, mut now) = (lease.until().unwrap(), OURS.after(6));
        while now < until {
            match due(&mut lease, now) {
                Due::At(next) => now = next,
                Due::Ask(..) => {}
                Due::Lost => panic!("lost at {now:?}, before {until:?}"),
            }
        }
        assert_eq!((now, due(&mut lease, now)), (until, Due::Lost));
    }

    #[test]
    fn a_node_that_slept_through_its_lease_stops_before_it_asks() {
        let mut shelf = Shelf::default();
        let mut lease = joined(&mut shelf);
        assert_eq!(due(&mut lease, OURS.after(10 * LEASE_MS)), Due::Lost);
        lease.begin_again(NodeId(2));
        let (join, sent) = asks(&mut lease, OURS.after(10 * LEASE_MS));
        assert!(matches!(&join, Request::Join { node, .. } if node.id == NodeId(2)));
        lease.answered(OURS.after(10 * LEASE_MS), sent, &shelf.carry_out(THEIRS.after(10 * LEASE_MS), join));
        assert!(lease.holds(OURS.after(10 * LEASE_MS)));
    }

    #[test]
    fn an_answer_for_an_earlier_incarnation_changes_nothing() {
        let mut shelf = Shelf::default();
        let mut lease = joined(&mut shelf);
        let (renew, sent) = asks(&mut lease, OURS.after(LEASE_MS / 3));
        let late = shelf.carry_out(THEIRS.after(LEASE_MS / 3), renew);
        assert_eq!(due(&mut lease, OURS.after(2 * LEASE_MS)), Due::Lost);
        lease.answered(OURS.after(2 * LEASE_MS), sent, &late);
        assert_eq!(due(&mut lease, OURS.after(2 * LEASE_MS)), Due::Lost);
        lease.begin_again(NodeId(2));
        let before = lease.clone();
        lease.answered(OURS.after(2 * LEASE_MS), sent, &late);
        assert_eq!(lease, before);
    }

    #[test]
    fn what_the_store_says_is_lost_is_lost_at_once() {
        let mut shelf = Shelf::default();
        let mut lease = joined(&mut shelf);
        let (renew, sent) = asks(&mut lease, OURS.after(LEASE_MS / 3));
        // The database's clock was set forward, say.
        lease.answered(OURS.after(LEASE_MS / 3), sent, &shelf.carry_out(THEIRS.after(LEASE_MS), renew));
        assert!(!lease.holds(OURS.after(LEASE_MS / 3)));
        assert_eq!(due(&mut lease, OURS.after(LEASE_MS / 3)), Due::Lost);
    }

    #[test]
    fn answers_that_overtake_each_other_do_not_shorten_the_lease() {
        let mut shelf = Shelf::default();
        let mut lease = joined(&mut shelf);
        let (one, first) = asks(&mut lease, OURS.after(LEASE_MS / 3));
        let (two, second) = asks(&mut lease, OURS.after(2 * LEASE_MS / 3));
        let (one, two) = (shelf.carry_out(THEIRS.after(9), one), shelf.carry_out(THEIRS.after(10), two));
        lease.answered(OURS.after(LEASE_MS * 2 / 3), second, &two);
        let until = lease.until();
        lease.answered(OURS.after(LEASE_MS * 2 / 3), first, &one);
        assert_eq!(lease.until(), until);
    }

    #[test]
    fn a_drain_is_heard_of_and_its_end_is_never_too_early() {
        let mut shelf = Shelf::default();
        let mut lease = joined(&mut shelf);
        assert_eq!(lease.draining(OURS), Draining::No);
        shelf.carry_out(THEIRS.after(100), Request::Drain { node: NodeId(1), drain: Some(1_000) });
        let sent_at = OURS.after(LEASE_MS / 3);
        let (renew, sent) = asks(&mut lease, sent_at);
        let renewed = shelf.carry_out(THEIRS.after(300), renew);
        let heard = sent_at.after(50);
        lease.answered(heard, sent, &renewed);
        assert_eq!(lease.draining(heard), Draining::Waits);
        let end = heard.after(800);
        assert_eq!(due(&mut lease, heard), Due::At(end), "it is told when its time to wait is over");
        assert_eq!((lease.draining(end.before(1)), lease.draining(end)), (Draining::Waits, Draining::HandsOver));
        assert!(matches!(due(&mut lease, end), Due::At(next) if next > end));
        // The same drain told again does not move its end.
        let (renew, sent) = asks(&mut lease, OURS.after(2 * LEASE_MS / 3));
        lease.answered(OURS.after(LEASE_MS), sent, &shelf.carry_out(THEIRS.after(400), renew));
        assert_eq!(lease.draining(end), Draining::HandsOver);
        shelf.carry_out(THEIRS.after(500), Request::Drain { node: NodeId(1), drain: None });
        let (renew, sent) = asks(&mut lease, OURS.after(LEASE_MS));
        lease.answered(OURS.after(LEASE_MS), sent, &shelf.carry_out(THEIRS.after(600), renew));
        assert_eq!(lease.draining(end), Draining::No);
    }

    #[test]
    fn who_resigned_asks_nothing_more() {
        let mut lease = joined(&mut Shelf::default());
        assert_eq!(lease.resign::<Number>(), Request::Resign { node: NodeId(1) });
        assert_eq!(due(&mut lease, Millis(u64::MAX - 1)), Due::At(Millis(u64::MAX)));
        assert!(!lease.holds(OURS));
    }
}
