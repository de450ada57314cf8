//! Walks at random through scenes that are too large to be explored: hundreds of tasks, two nodes, everything going wrong.
//!
//! The same frame and the same claims; only the way is drawn. The same seed walks the same way.

use std::collections::BTreeMap;

use crate::frame::action::describe;
use crate::frame::payload::Who;
use crate::frame::scene::{Do, Faults, Request, Scene, What};
use crate::frame::{Action, World};

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
        walk(&mut dice, seed, steps, &mut outcome);
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

/// Time, crashes and sweeps come seldom; everything else as often as there is of it.
fn draw(dice: &mut Dice, actions: &[Action]) -> Action {
    loop {
        let action = actions[dice.below(actions.len() as u64) as usize];
        let seldom = matches!(action, Action::Wait | Action::Crash(_) | Action::Sweep(_) | Action::Expire(_));
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
        Action::Crash(_) => "a node dies",
        Action::Wait => "time passes",
    }
}

fn scene(dice: &mut Dice) -> Scene {
    let tasks = 20 + dice.below(100) as u8;
    let mut requests: Vec<_> = (0..tasks)
        .map(|task| {
            let who = if dice.below(5) == 0 { Who::Bob } else { Who::Ann };
            Request { door: dice.below(2) as u8, who, what: What::Create { task, retries: None } }
        })
        .collect();
    while requests.len() < 250 {
        let (door, task) = (dice.below(2) as u8, dice.below(u64::from(tasks)) as u8);
        let who = match dice.below(12) {
            0 => Who::Bob,
            1 => Who::AnnUnscoped,
            _ => requests[usize::from(task)].who,
        };
        // A stranger is anybody but the owner: the claims know tasks of ann's only as ann's.
        let who = if requests[usize::from(task)].who == Who::Bob { continue } else { who };
        let value = |dice: &mut Dice| match dice.below(8) {
            0..3 => None,
            7 => Some(255),
            it => Some(it as u8),
        };
        let what = match dice.below(6) {
            0 | 1 => What::Get { task },
            2 => What::Cancel { task },
            3 => What::AnswerUnknown { task },
            _ => What::Answer { task, values: [value(dice), value(dice)] },
        };
        requests.push(Request { door, who, what });
    }
    let ask = |key, request| Do::Ask { key, request };
    let script = [
        vec![Do::Progress(1), Do::Complete],
        vec![ask(0, 1), Do::Await { key: 0 }, Do::Progress(1), ask(1, 2), Do::Await { key: 1 }, Do::Complete],
        vec![
            ask(0, 1),
            ask(1, 2),
            Do::Await { key: 1 },
            Do::Await { key: 0 },
            ask(0, 9),
            Do::Await { key: 0 },
            Do::Fail,
        ],
        vec![Do::Note(1), Do::Progress(1), Do::Progress(2), Do::Complete],
    ];
    let waits = (0..40).map(|_| [1, 40, 300, 3_000, 11_000, 15_000, 60_000][dice.below(7) as usize]).collect();
    let few = |dice: &mut Dice| dice.below(6) as u8;
    Scene {
        name: "walk",
        about: "hundreds of tasks, everything going wrong",
        nodes: 2,
        running: false,
        restartable: dice.below(2) == 0,
        requests,
        tool: script[dice.below(script.len() as u64) as usize].clone(),
        limit: 1 + dice.below(40) as u32,
        waits,
        expiry: [true; 2],
        sweeps: [50; 2],
        looks: true,
        replies_get_lost: true,
        faults: Faults {
            crash: few(dice) / 2,
            double: few(dice),
            away: few(dice),
            mute: few(dice),
            unsure: few(dice),
            drop: few(dice),
        },
        reaches: &[],
    }
}
