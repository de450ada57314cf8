//! Requests of several nodes, taken apart into their steps and interleaved at random, on one store that fails now and then, with
//! signals lost, doubled and late, nodes that crash, and leases that run out.

mod world;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};

use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};
use world::World;
use world::moves::{How, Move, Script, Store, script};

/// Plays a script to its end; panics where a claim does not hold.
fn play(script: &Script) -> World {
    let mut world = World::new();
    for step in &script.0 {
        world.make(*step);
        world.check();
    }
    world.settle();
    world.check();
    world.check_settled();
    world
}

/// Leaves out every move that the failure does not need. (proptest's own shrinking tries each only once.)
fn shorten(mut script: Script) -> Script {
    let fails = |script: &Script| catch_unwind(AssertUnwindSafe(|| play(script))).is_err();
    let hook = take_hook();
    set_hook(Box::new(|_| {}));
    let mut before = usize::MAX;
    while script.0.len() < before {
        before = script.0.len();
        for i in (0..before).rev() {
            let mut without = script.clone();
            without.0.remove(i);
            if fails(&without) {
                script = without;
            }
        }
    }
    set_hook(hook);
    script
}

/// Plays many scripts, drawn by `runner`; answers with what they reached, and how often.
fn play_many(mut runner: TestRunner) -> BTreeMap<&'static str, usize> {
    let reached = RefCell::new(BTreeMap::<&str, usize>::new());
    let outcome = runner.run(&script(160), |script| {
        for (what, times) in play(&script).reached {
            *reached.borrow_mut().entry(what).or_default() += times;
        }
        Ok(())
    });
    match outcome {
        Ok(()) => reached.into_inner(),
        Err(TestError::Fail(why, script)) => panic!("{}\nafter:{:?}", why.message(), shorten(script)),
        Err(TestError::Abort(why)) => panic!("{}", why.message()),
    }
}

fn config() -> Config {
    let mut config = Config { failure_persistence: None, max_shrink_iters: 0, ..Config::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = 400;
    }
    config
}

#[test]
fn the_claims_hold_however_requests_interleave() {
    play_many(TestRunner::new(config()));
}

/// Each `always` has its `sometimes`: the scripts reach what the claims are about. The same scripts every time, since what is
/// rare among them would now and then be missing among others.
#[test]
fn the_scripts_reach_what_the_claims_are_about() {
    let config = Config { cases: 400, ..config() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let reached = play_many(TestRunner::new_with_rng(config, rng));
    for what in World::REACHED {
        assert!(reached.contains_key(what), "{what}: never reached by {reached:?}");
    }
}

/// Requests take turns: `step()` carries the oldest of them one step on.
fn step() -> Move {
    Move::Step { request: 0, store: Store::Well }
}

fn create() -> Move {
    Move::Create { node: 0, who: 0, restartable: true }
}

fn sweep() -> Move {
    Move::Sweep { node: 1, heir: true }
}

/// The node of the only task dies, and its lease runs out.
fn orphaned() -> Vec<Move> {
    vec![create(), step(), step(), Move::Crash { node: 0 }, Move::Wait { ms: 16_000, asleep: None }]
}

#[test]
fn two_nodes_that_sweep_at_once_leave_a_task_one_run() {
    let mut script = orphaned();
    script.extend([sweep(), Move::Sweep { node: 0, heir: true }]);
    // Both find it, load it and reserve; the first one stores it and starts the run; the second one meets a conflict.
    script.extend([step(); 7]);
    script.push(Move::Deliver { message: 0, how: How::Once });
    let world = play(&Script(script));
    assert_eq!(world.reached.get("restarted"), Some(&1));
}

#[test]
fn a_late_reading_from_before_the_take_over_does_not_stop_the_new_run() {
    let mut script = orphaned();
    script.extend([sweep(), step()]);
    // Meanwhile a client's answer to what was never asked: no change, but a reading.
    script.extend([Move::Answer { node: 1, task: 0, who: 0, key: 0, value: 1 }, step(), step()]);
    // The sweep reserves, and then the reading arrives.
    script.extend([step(), Move::Deliver { message: 0, how: How::Once }]);
    play(&Script(script));
}

#[test]
fn a_take_over_whose_answer_was_lost_is_not_forgotten() {
    let mut script = orphaned();
    script.extend([sweep(), step(), step(), step(), Move::Step { request: 0, store: Store::Mute }]);
    let world = play(&Script(script));
    assert_eq!(world.spawned.len(), 1, "the first attempt died before it was started: {:?}", world.spawned);
}
