//! Small worlds beside the frame: one shipped machine each, and whoever uses it.
//!
//! All their claims are judged while things happen, and what was broken is written into the state.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use stateright::{Expectation, Model, Property};

use crate::frame::hashed::Aside;

/// A world of its own: a machine and its users, in some configuration.
pub trait Small: Clone + Debug + Send + Sync + 'static {
    /// What a state of it is.
    type State: Clone + Debug + PartialEq + Hash + Send + Sync + 'static;
    /// One thing that happens.
    type Action: Copy + Debug + PartialEq + Send + Sync + 'static;

    /// Its claims. Their places in here are their bits.
    const CLAIMS: &'static [Claim];

    /// The name of this configuration.
    fn name(&self) -> &'static str;

    /// The claims whose premise it has to reach.
    fn reaches(&self) -> &'static [&'static str];

    /// The one state that it begins in.
    fn beginning(&self) -> Self::State;

    /// What can happen in a state. Not all of it changes something.
    fn possible(&self, state: &Self::State, actions: &mut Vec<Self::Action>);

    /// What comes of it.
    fn carry_out(&self, state: &Self::State, action: Self::Action) -> Self::State;

    /// How the claims stand.
    fn verdict(state: &Self::State) -> &Verdict;

    /// What kind of thing happens, in words.
    fn kind(action: Self::Action) -> &'static str;

    /// What happens, in words.
    fn say(&self, state: &Self::State, action: Self::Action) -> String;
}

/// A claim of a small world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Its name.
    pub name: &'static str,
    /// What it says.
    pub says: &'static str,
    /// The name of its premise, as a `sometimes`.
    pub premise: &'static str,
}

/// Names the claims of a small world: `Judged::Name as usize` is the place of a claim among `CLAIMS`.
macro_rules! claims {
    ($($variant:ident $name:literal $says:literal if $premise:literal;)*) => {
        /// The claims.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Judged { $(#[doc = $says] $variant,)* }

        /// What they say.
        pub const CLAIMS: &[$crate::small::Claim] = &[$($crate::small::Claim {
            name: $name,
            says: $says,
            premise: concat!($name, ", reached: ", $premise),
        },)*];

        impl $crate::small::Numbered for Judged {
            fn number(self) -> usize {
                self as usize
            }
        }
    };
}
pub(crate) use claims;

/// The place of a claim.
pub trait Numbered: Copy {
    /// The place.
    fn number(self) -> usize;
}

/// How the claims stand in a state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Verdict {
    broken: u64,
    /// Why the first of them is.
    why: Aside<Option<Arc<str>>>,
    /// The premises that were met on the way here.
    reached: Aside<u64>,
}

impl Verdict {
    /// Holds a claim.
    pub fn holds(&mut self, claim: impl Numbered, it: bool, why: impl FnOnce() -> String) {
        self.reach(claim);
        if !it {
            self.broken |= 1 << claim.number();
            self.why.0.get_or_insert_with(|| why().into());
        }
    }

    /// The premise of a claim is met.
    pub fn reach(&mut self, claim: impl Numbered) {
        self.reached.0 |= 1 << claim.number();
    }

    /// Whether any claim is broken.
    pub const fn is_broken(&self) -> bool {
        self.broken != 0
    }

    /// The first claim that is broken, and why.
    pub fn first_broken(&self) -> Option<(usize, &str)> {
        let why = self.why.0.as_deref().unwrap_or_default();
        self.is_broken().then(|| (self.broken.trailing_zeros() as usize, why))
    }

    /// Why it is broken.
    pub fn why(&self) -> &str {
        self.why.0.as_deref().unwrap_or_default()
    }
}

/// A small world as a stateright model.
#[derive(Debug)]
pub struct Explored<S> {
    /// The world.
    pub world: S,
    /// Claims that were found broken. stateright keeps the last counterexample that it is shown; the first is the shortest.
    found: AtomicU64,
    /// Premises that some step met. Two steps that lead to one state are one to the search, and only one of them may have met it.
    met: AtomicU64,
}

impl<S> Explored<S> {
    /// The world, as yet unexplored.
    pub const fn new(world: S) -> Self {
        Self { world, found: AtomicU64::new(0), met: AtomicU64::new(0) }
    }
}

impl<S: Small> Model for Explored<S> {
    type State = S::State;
    type Action = S::Action;

    fn init_states(&self) -> Vec<S::State> {
        vec![self.world.beginning()]
    }

    fn actions(&self, state: &S::State, actions: &mut Vec<S::Action>) {
        // What follows a broken claim is of no interest.
        if !S::verdict(state).is_broken() {
            self.world.possible(state, actions);
        }
    }

    fn next_state(&self, state: &S::State, action: S::Action) -> Option<S::State> {
        let next = self.world.carry_out(state, action);
        self.met.fetch_or(S::verdict(&next).reached.0, Ordering::Relaxed);
        (next != *state).then_some(next)
    }

    fn format_step(&self, last: &S::State, action: S::Action) -> Option<String> {
        Some(self.world.say(last, action))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let claims = S::CLAIMS.iter().enumerate();
        let always = claims.clone().map(|(at, claim)| Property {
            expectation: Expectation::Always,
            name: claim.name,
            condition: Self::HOLDS[at],
        });
        let sometimes = claims.filter(|(_, claim)| self.world.reaches().contains(&claim.name));
        let sometimes = sometimes.map(|(at, claim)| Property {
            expectation: Expectation::Sometimes,
            name: claim.premise,
            condition: Self::REACHED[at],
        });
        always.chain(sometimes).collect()
    }
}

macro_rules! by_number {
    ($function:ident: $($at:literal)*) => { [$(Self::$function::<$at>,)*] };
}

impl<S: Small> Explored<S> {
    /// stateright wants plain functions: these know their claim by its number.
    const HOLDS: [fn(&Self, &S::State) -> bool; 16] = by_number!(holds: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
    const REACHED: [fn(&Self, &S::State) -> bool; 16] = by_number!(is_reached: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);

    fn holds<const AT: usize>(&self, state: &S::State) -> bool {
        if self.found.load(Ordering::Relaxed) & 1 << AT != 0 || S::verdict(state).broken & 1 << AT == 0 {
            return true;
        }
        self.found.fetch_or(1 << AT, Ordering::Relaxed);
        false
    }

    fn is_reached<const AT: usize>(&self, _: &S::State) -> bool {
        self.met.load(Ordering::Relaxed) & 1 << AT != 0
    }
}
