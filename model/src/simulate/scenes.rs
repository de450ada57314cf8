//! Scenes that are drawn.

use crate::follow::{Change, Deed, Listener, Listeners};
use crate::frame::payload::{KEEP_MS, TTL_MS, Who};
use crate::frame::scene::{Do, Faults, Request, Scene, What};
use crate::queue::Places;
use crate::simulate::Dice;

/// Tasks, clients and faults for the frame.
pub(super) fn scene(dice: &mut Dice) -> Scene {
    let tasks = 20 + dice.below(100) as u8;
    let mut requests: Vec<_> = (0..tasks)
        .map(|task| {
            let who = if dice.below(5) == 0 { Who::Bob } else { Who::Ann };
            Request { door: dice.below(3) as u8, who, what: What::Create { task, retries: None } }
        })
        .collect();
    while requests.len() < 250 {
        let (door, task) = (dice.below(3) as u8, dice.below(u64::from(tasks)) as u8);
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
        nodes: 3,
        running: false,
        restartable: dice.below(2) == 0,
        requests,
        tool: script[dice.below(script.len() as u64) as usize].clone(),
        limit: 1 + dice.below(40) as u32,
        waits,
        expiry: [true; 3],
        sweeps: [50; 3],
        slow: (dice.below(2) == 0).then_some(0),
        lags: (dice.below(2) == 0).then(|| dice.below(3) as u8),
        drain: (dice.below(2) == 0).then(|| (dice.below(3) as u8, 1_000 * dice.below(20))),
        undrain: dice.below(2) == 0,
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

/// A crowd that follows a handful of tasks.
pub(super) fn listeners(dice: &mut Dice) -> Listeners {
    let tasks = 1 + dice.below(5) as u8;
    let mut lanes = Vec::new();
    for task in 0..tasks {
        let here = dice.below(2) == 0;
        let mut run: Vec<_> =
            (0..dice.below(12)).map(|to| Change { task, here, deed: Deed::Progress(to as u8) }).collect();
        run.insert(dice.below(run.len() as u64 + 1) as usize, Change { task, here, deed: Deed::Ask });
        run.push(Change { task, here, deed: Deed::Complete });
        lanes.push(run);
        let here = dice.below(2) == 0;
        lanes.push(vec![Change { task, here, deed: Deed::Answer }]);
        if dice.below(3) == 0 {
            lanes.push(vec![Change { task, here, deed: Deed::Cancel }]);
        }
    }
    let listener = |dice: &mut Dice| {
        let followed: Vec<_> = (0..tasks).filter(|_| dice.below(3) > 0).collect();
        let who = match dice.below(10) {
            0 => Who::Bob,
            1 => Who::AnnUnscoped,
            _ => Who::Ann,
        };
        Listener { who, tasks: followed, eager: dice.below(4) == 0, leaves: dice.below(6) == 0 }
    };
    Listeners {
        name: "walk",
        about: "a crowd that follows a handful of tasks",
        runs_here: (0..tasks).map(|_| dice.below(2) == 0).collect(),
        lanes,
        listeners: (0..=dice.below(10)).map(|_| listener(dice)).collect(),
        waits: if dice.below(2) == 0 { vec![1, TTL_MS - 1_001, 1_000, KEEP_MS] } else { vec![1, 300, 1_000] },
        expiry: [dice.below(2) == 0, dice.below(2) == 0],
        hints: dice.below(2) == 0,
        doubles: dice.below(6) as u8,
        away: dice.below(3) as u8,
        reaches: &[],
    }
}

/// Many runs of a few owners.
pub(super) fn places(dice: &mut Dice) -> Places {
    let owners = 1 + dice.below(6);
    Places {
        name: "walk",
        about: "many runs of a few owners",
        limit: 1 + dice.below(6) as u8,
        owners: (0..5 + dice.below(60)).map(|_| dice.below(owners) as u8).collect(),
        again: dice.below(10) as u8,
        back: dice.below(20) as u8,
        reaches: &[],
    }
}
