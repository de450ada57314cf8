//! Walks at random through scenes that are too large to be explored: hundreds of tasks, two nodes, everything going wrong.
//!
//! The same frame and the same claims, and the worlds beside it; only the way is drawn. The same seed walks the same way.

mod scenes;

use std::collections::BTreeMap;

use crate::frame::action::describe;
use crate::frame::{Action, World};
use crate::simulate::scenes::{listeners, places, scene};
use crate::small::Small;

/// How many of the last steps of a failure are told.
const TOLD: usize = 60;
/// How many steps one walk has at most.
const WALK: u64 = 4_000;

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Steps in all.
    pub steps: u64,
    /// Walks.
    pub walks: u64,
    /// Tasks that were stored.
    pub tasks: u64,
    /// How often each kind of thing happened.
    pub reached: BTreeMap<&'static str, u64>,
    /// The claim that does not hold.
    pub broken: Option<Failure>,
}

/// A claim that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The claim.
    pub claim: &'static str,
    /// Why.
    pub why: String,
    /// The seed that walks there.
    pub seed: u64,
    /// The number of the step, from 1.
    pub at: usize,
    /// The last steps, in words.
    pub last: Vec<String>,
}

/// Random numbers: splitmix64.
#[derive(Clone, Debug)]
struct Dice(u64);

impl Dice {
    const fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    const fn below(&mut self, bound: u64) -> u64 {
        self.roll() % bound
    }
}

/// Walks so many steps.
pub fn run(seed: u64, steps: u64) -> Outcome {
    let mut outcome = Outcome { steps: 0, walks: 0, tasks: 0, reached: BTreeMap::new(), broken: None };
    let mut dice = Dice(seed);
    while outcome.steps < steps && outcome.broken.is_none() {
        outcome.walks += 1;
        match dice.below(8) {
            0..=2 => walk_small(listeners(&mut dice), &mut dice, seed, steps, &mut outcome),
            3 => walk_small(places(&mut dice), &mut dice, seed, steps, &mut outcome),
            _ => walk(&mut dice, seed, steps, &mut outcome),
        }
    }
    outcome
}

fn walk(dice: &mut Dice, seed: u64, steps: u64, outcome: &mut Outcome) {
    let world = World::new(scene(dice));
    let mut state = world.beginning();
    let (mut actions, mut last) = (Vec::new(), Vec::new());
    for _ in 0..WALK {
        if outcome.steps >= steps {
            break;
        }
        actions.clear();
        world.possible(&state, &mut actions);
        if actions.is_empty() {
            break;
        }
        let action = draw(dice, &actions);
        outcome.steps += 1;
        let Some(next) = world.carry_out(&state, action) else { continue };
        *outcome.reached.entry(kind(action)).or_default() += 1;
        last.push(describe(&world.scene, &state, action));
        if last.len() > TOLD {
            last.remove(0);
        }
        state = next;
        for claim in &world.claims {
            if let Err(why) = claim.holds(&world.scene, &state) {
                let at = outcome.steps as usize;
                outcome.broken = Some(Failure { claim: claim.name, why, seed, at, last });
                return;
            }
        }
    }
    outcome.tasks += state.memory.tasks.iter().filter(|memory| memory.spawned > 0).count() as u64;
}

/// The same in a world beside the frame.
fn walk_small<S: Small>(world: S, dice: &mut Dice, seed: u64, steps: u64, outcome: &mut Outcome) {
    let mut state = world.beginning();
    let (mut actions, mut last) = (Vec::new(), Vec::new());
    for _ in 0..WALK {
        actions.clear();
        world.possible(&state, &mut actions);
        if outcome.steps >= steps || actions.is_empty() {
            break;
        }
        let action = actions[dice.below(actions.len() as u64) as usize];
        outcome.steps += 1;
        *outcome.reached.entry(S::kind(action)).or_default() += 1;
        last.push(world.say(&state, action));
        if last.len() > TOLD {
            last.remove(0);
        }
        state = world.carry_out(&state, action);
        if let Some((claim, why)) = S::verdict(&state).first_broken() {
            let (claim, why, at) = (S::CLAIMS[claim].name, why.to_owned(), outcome.steps as usize);
            outcome.broken = Some(Failure { claim, why, seed, at, last });
            return;
        }
    }
}

/// Time, crashes and sweeps come seldom; everything else as often as there is of it.
fn draw(dice: &mut Dice, actions: &[Action]) -> Action {
    loop {
        let action = actions[dice.below(actions.len() as u64) as usize];
        let seldom =
            matches!(action, Action::Wait | Action::Crash(_) | Action::Sweep(_) | Action::Expire(_) | Action::Operate);
        if !seldom || dice.below(12) == 0 || actions.len() < 3 {
            return action;
        }
    }
}

const fn kind(action: Action) -> &'static str {
    match action {
        Action::Begin(..) => "a request is sent",
        Action::Hear(_) => "a create reply is heard",
        Action::Unheard(_) => "a create reply is lost",
        Action::Step(..) => "a request goes on",
        Action::Drop(_) => "a client goes away",
        Action::Deliver(_) => "mail arrives",
        Action::Double(_) => "mail arrives twice",
        Action::Act(..) => "a tool does something",
        Action::Stop(..) => "a tool is stopped",
        Action::WriteProgress(..) => "progress is written",
        Action::Look(_) => "a node looks at the store",
        Action::Expire(_) => "a node removes what has expired",
        Action::Sweep(_) => "a node takes over orphans",
        Action::Renew(_) => "a lease is renewed or lost",
        Action::Beat(_) => "a node does what is due about its lease",
        Action::Carry(_) => "a renewal is carried out",
        Action::Told(_) => "a node is told of its lease",
        Action::Operate => "an operator drains a node, or takes that back",
        Action::Crash(_) => "a node dies",
        Action::Wait => "time passes",
    }
}
