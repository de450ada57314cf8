//! Questions and answers: several keys at once and in turn, two doors, wake-ups that are lost or doubled.

use crate::frame::Scene;
use crate::frame::payload::{LEASE_MS, Number, Who};
use crate::frame::scene::{Do, Faults, Request, What};
use crate::inline::Inline;
use crate::worlds::{Bounds, Named, Part, ann, tasks};

pub(super) const WORLD: Named = Named {
    name: "input",
    about: "several questions at once and in turn; partial, duplicate, unknown and late answers through two doors",
    parts,
};

const ASK_A: Do = Do::Ask { key: 0, request: 1 };
const ASK_B: Do = Do::Ask { key: 1, request: 2 };
const A: Do = Do::Await { key: 0 };
const B: Do = Do::Await { key: 1 };

const fn answer(values: [Option<u8>; 2]) -> What {
    What::Answer { task: 0, values }
}

fn parts(bounds: Bounds) -> Vec<Part> {
    let large = bounds == Bounds::Large;
    let mut parts = tasks([at_once(large), in_turn(large), restarted(large)]);
    parts.push(Part::Inline(Inline {
        rounds: if large { 6 } else { 4 },
        values: if large { &[1, 2, Number::JUNK.0] } else { &[1, 2] },
    }));
    parts
}

fn at_once(large: bool) -> Scene {
    let mut requests = vec![
        ann(0, answer([Some(3), Some(4)])),
        ann(1, answer([Some(5), None])),
        ann(1, answer([Some(6), Some(Number::JUNK.0)])),
        ann(1, What::Get { task: 0 }),
    ];
    if large {
        requests.push(ann(1, What::Cancel { task: 0 }));
    }
    Scene {
        name: "at_once",
        about: "two questions at once; partial and duplicate answers, one that does not fit, wake-ups lost and doubled",
        nodes: 2,
        requests,
        tool: vec![ASK_A, ASK_B, A, B, Do::Complete],
        faults: Faults { double: 1, ..Faults::default() },
        reaches: &[
            "first_answer_wins",
            "input_required_iff_pending",
            "no_lost_wakeup",
            "rejection_is_inert",
            "effects_after_commit",
        ],
        ..Scene::default()
    }
}

fn in_turn(large: bool) -> Scene {
    let mut requests = vec![
        ann(0, answer([Some(3), None])),
        ann(1, answer([Some(5), Some(6)])),
        ann(0, What::AnswerUnknown { task: 0 }),
        ann(1, What::Cancel { task: 0 }),
    ];
    if large {
        requests.push(Request { door: 0, who: Who::Bob, what: answer([Some(7), None]) });
        requests.push(ann(0, What::Get { task: 0 }));
    }
    Scene {
        name: "in_turn",
        about: "one question after the other, a key asked again for something else, a cancel while the tool waits, a failing store",
        nodes: 2,
        requests,
        tool: vec![ASK_A, A, Do::Ask { key: 0, request: 9 }, A, ASK_B, B, Do::Complete],
        waits: if large { vec![11_000] } else { vec![] },
        faults: Faults { away: 1, mute: u8::from(large), ..Faults::default() },
        reaches: &[
            "first_answer_wins",
            "key_never_reused",
            "no_lost_wakeup",
            "cancel_reaches_run",
            "terminal_is_final",
            "live_is_run",
        ],
        ..Scene::default()
    }
}

fn restarted(large: bool) -> Scene {
    Scene {
        name: "restarted",
        about: "a tool that asked is run again on another node: the answers that were given stay",
        nodes: 2,
        restartable: true,
        requests: if large {
            vec![ann(0, answer([Some(3), None])), ann(1, answer([Some(5), Some(6)])), ann(1, What::Get { task: 0 })]
        } else {
            vec![ann(0, answer([Some(3), None])), ann(1, answer([Some(5), None]))]
        },
        tool: if large { vec![ASK_A, A, ASK_B, B, Do::Complete] } else { vec![ASK_A, A, Do::Complete] },
        waits: vec![LEASE_MS],
        sweeps: [0, 1, 0],
        reaches: &["first_answer_wins", "one_live_attempt", "no_lost_wakeup", "orphan_ends"],
        ..Scene::default()
    }
}
