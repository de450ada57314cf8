//! Explores one scene: breadth first, one thread, so that the trace of a violation is a shortest one.

use std::collections::BTreeSet;
use std::hash::Hash;
use std::time::{Duration, Instant};

use stateright::{Checker, Expectation, HasDiscoveries, Model, Path};

use crate::frame::action::describe;
use crate::frame::{Action, World};
use crate::small::{Explored, Small};
use crate::worlds::Part;

/// What came of a scene.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The scene.
    pub scene: &'static str,
    /// Distinct states.
    pub distinct: usize,
    /// States that were generated, the same one again included.
    pub generated: usize,
    /// The length of the longest shortest path.
    pub depth: usize,
    /// How long it took, in milliseconds.
    pub elapsed_ms: u64,
    /// Claims that do not hold.
    pub violations: Vec<Violation>,
    /// Premises that the scene has to reach and did not.
    pub unreached: Vec<&'static str>,
}

impl Report {
    /// Generated states per second.
    pub fn rate(&self) -> u64 {
        self.generated as u64 * 1_000 / self.elapsed_ms.max(1)
    }

    /// Whether all is as it should be.
    pub fn is_ok(&self) -> bool {
        self.violations.is_empty() && self.unreached.is_empty()
    }
}

/// A claim that does not hold, and how to see that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The claim.
    pub claim: &'static str,
    /// What it says.
    pub says: &'static str,
    /// Why it does not hold.
    pub why: String,
    /// The way there, in words.
    pub steps: Vec<String>,
    /// The way there, if it is one through the frame.
    pub trace: Vec<Action>,
}

/// How far a check is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Distinct states so far.
    pub distinct: usize,
    /// Generated states so far.
    pub generated: usize,
    /// The depth that was reached.
    pub depth: usize,
    /// How long it took so far, in milliseconds.
    pub elapsed_ms: u64,
}

/// When a check is over before all states are seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// The first violation of any claim.
    AnyViolation,
    /// The first violation of this one.
    ViolationOf(&'static str),
}

/// Explores a part of a world to its end, or to a violation. `progress` is called about twice a second.
pub fn check(part: Part, until: Until, progress: impl FnMut(Progress)) -> Report {
    match part {
        Part::Tasks(scene) => check_world(World::new(*scene), until, progress),
        Part::Inline(inline) => check_small(inline, until, progress),
        Part::Follow(listeners) => check_small(*listeners, until, progress),
        Part::Queue(places) => check_small(*places, until, progress),
    }
}

/// Explores a world beside the frame.
pub fn check_small<S: Small>(world: S, until: Until, progress: impl FnMut(Progress)) -> Report {
    let name = world.name();
    explore(Explored::new(world), until, progress, name, |explored, name, path| {
        let claim = S::CLAIMS.iter().find(|claim| claim.name == name);
        let path = path.into_vec();
        let why = path.last().map_or_else(String::new, |(state, _)| S::verdict(state).why().to_owned());
        let steps = path.iter().filter_map(|(state, action)| Some(explored.world.say(state, (*action)?))).collect();
        Violation { claim: name, says: claim.map_or("", |claim| claim.says), why, steps, trace: Vec::new() }
    })
}

/// Explores a scene under any claims: those of the frame, or one's own.
pub fn check_world(world: World, until: Until, progress: impl FnMut(Progress)) -> Report {
    let name = world.scene.name;
    explore(world, until, progress, name, |world, name, path| {
        let claim = world.claims.iter().find(|claim| claim.name == name);
        let path = path.into_vec();
        let last = path.last().map(|(state, _)| state);
        let why = claim.zip(last).and_then(|(claim, state)| claim.holds(&world.scene, state).err());
        let steps = path.iter().filter_map(|(state, action)| action.map(|it| describe(&world.scene, state, it)));
        let steps = steps.collect();
        let trace = path.iter().filter_map(|(_, action)| *action).collect();
        Violation { claim: name, says: claim.map_or("", |it| it.says), why: why.unwrap_or_default(), steps, trace }
    })
}

fn explore<M>(
    model: M,
    until: Until,
    mut progress: impl FnMut(Progress),
    scene: &'static str,
    violation: impl Fn(&M, &'static str, Path<M::State, M::Action>) -> Violation,
) -> Report
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Hash + PartialEq + Send + Sync + 'static,
    M::Action: Clone + PartialEq,
{
    let started = Instant::now();
    let finish = match until {
        Until::AnyViolation => HasDiscoveries::AnyFailures,
        Until::ViolationOf(claim) => HasDiscoveries::AnyOf(BTreeSet::from([claim])),
    };
    let mut checker = model.checker().threads(1).finish_when(finish).spawn_bfs();
    let handles = checker.handles();
    let now = |checker: &dyn Fn() -> (usize, usize, usize)| {
        let (distinct, generated, depth) = checker();
        let elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        Progress { distinct, generated, depth, elapsed_ms }
    };
    let counts = || (checker.unique_state_count(), checker.state_count(), checker.max_depth());
    let mut told = Instant::now();
    while !handles.iter().all(std::thread::JoinHandle::is_finished) {
        std::thread::sleep(Duration::from_millis(2));
        if told.elapsed() > Duration::from_millis(500) {
            told = Instant::now();
            progress(now(&counts));
        }
    }
    let Progress { distinct, generated, depth, elapsed_ms } = now(&counts);
    for handle in handles {
        if let Err(panic) = handle.join() {
            std::panic::resume_unwind(panic);
        }
    }
    let model = checker.model();
    let mut discoveries = checker.discoveries();
    let (mut violations, mut unreached) = (Vec::new(), Vec::new());
    for property in model.properties() {
        match (property.expectation, discoveries.remove(property.name)) {
            (Expectation::Always, Some(path)) => violations.push(violation(model, property.name, path)),
            (Expectation::Sometimes, None) => unreached.push(property.name),
            (Expectation::Always, None) | (Expectation::Sometimes, Some(_)) | (Expectation::Eventually, _) => {}
        }
    }
    Report { scene, distinct, generated, depth, elapsed_ms, violations, unreached }
}
