//! One task, its run, two front doors: cancel, end, progress, expiry and take-over in every order.

use crate::frame::Scene;
use crate::frame::payload::{LEASE_MS, TTL_MS, Who};
use crate::frame::scene::{Do, Faults, Request, What};
use crate::worlds::{Bounds, Named, Part, ann, tasks};

pub(super) const WORLD: Named = Named {
    name: "cancel",
    about: "one task, its run, two doors: cancel, completion, failure, progress, expiry and take-over in every order",
    parts,
};

const CANCEL: What = What::Cancel { task: 0 };
const GET: What = What::Get { task: 0 };

fn parts(bounds: Bounds) -> Vec<Part> {
    let large = bounds == Bounds::Large;
    tasks([races(large), expiry(large), starting(large), take_over(large), two_sweeps(large), strangers()])
}

fn races(large: bool) -> Scene {
    let mut requests = vec![ann(0, CANCEL), ann(1, CANCEL), ann(1, GET)];
    if large {
        requests.push(ann(0, GET));
    }
    Scene {
        name: "races",
        about: "two cancels, a result and progress, with a store that fails once and signals that come twice or never",
        nodes: 2,
        requests,
        tool: if large {
            vec![Do::Progress(1), Do::Note(1), Do::Complete]
        } else {
            vec![Do::Progress(1), Do::Complete]
        },
        waits: if large { vec![300, 11_000] } else { vec![] },
        faults: Faults { double: 1, away: u8::from(large), mute: 1, drop: u8::from(large), ..Faults::default() },
        reaches: &[
            "terminal_is_final",
            "cancel_is_final",
            "one_outcome",
            "effects_after_commit",
            "revision_monotonic",
            "cancel_reaches_run",
            "stop_is_true",
            "live_is_run",
            "rejection_is_inert",
        ],
        ..Scene::default()
    }
}

fn expiry(large: bool) -> Scene {
    let mut requests = vec![ann(0, CANCEL), ann(1, GET)];
    if large {
        requests.push(ann(0, GET));
    }
    Scene {
        name: "expiry",
        about: "a task is cancelled, fails and expires at once; both nodes remove what is due; a node dies",
        nodes: 2,
        requests,
        tool: vec![Do::Progress(1), Do::Fail],
        waits: vec![TTL_MS - 1_000, 1_000, 5_000],
        expiry: [true, true, false],
        faults: Faults { crash: 1, away: 1, ..Faults::default() },
        reaches: &["ttl_not_early", "stop_is_true", "cancel_reaches_run", "terminal_is_final"],
        ..Scene::default()
    }
}

fn starting(large: bool) -> Scene {
    Scene {
        name: "starting",
        about: "a cancel is committed before the run is registered, and time passes before anybody looks",
        nodes: 2,
        running: false,
        requests: vec![ann(0, What::Create { task: 0, retries: None }), ann(0, CANCEL), ann(1, CANCEL), ann(1, GET)],
        tool: vec![Do::Progress(1), Do::Complete],
        waits: if large { vec![300, 11_000, 11_000] } else { vec![11_000, 11_000] },
        faults: Faults { double: 1, away: u8::from(large), ..Faults::default() },
        reaches: &["created_is_durable", "cancel_reaches_run", "cancel_is_final", "place_given_back"],
        ..Scene::default()
    }
}

fn take_over(large: bool) -> Scene {
    Scene {
        name: "take_over",
        about: "the node of a run is thought dead: its result, a cancel and a sweep of another node race",
        nodes: 2,
        restartable: true,
        requests: if large { vec![ann(1, CANCEL), ann(1, GET)] } else { vec![ann(1, CANCEL)] },
        tool: vec![Do::Progress(1), Do::Complete],
        waits: if large { vec![LEASE_MS - 1_000, 1_000] } else { vec![LEASE_MS] },
        sweeps: [0, 1, 0],
        faults: Faults { mute: u8::from(large), ..Faults::default() },
        reaches: &["orphan_ends", "one_live_attempt", "one_outcome", "cancel_reaches_run", "place_given_back"],
        ..Scene::default()
    }
}

fn two_sweeps(large: bool) -> Scene {
    Scene {
        name: "two_sweeps",
        about: "two nodes sweep the same task, and one of them is not told what came of its commit",
        nodes: 2,
        restartable: true,
        requests: if large { vec![ann(1, CANCEL)] } else { vec![] },
        tool: vec![Do::Complete],
        waits: vec![LEASE_MS],
        sweeps: [1, 1, 0],
        faults: Faults { mute: 1, ..Faults::default() },
        reaches: &["orphan_ends", "one_live_attempt", "place_given_back"],
        ..Scene::default()
    }
}

fn strangers() -> Scene {
    let bob = |what| Request { door: 0, who: Who::Bob, what };
    let unscoped = |what| Request { door: 1, who: Who::AnnUnscoped, what };
    Scene {
        name: "strangers",
        about: "a stranger, and the owner without the tool's scope, ask and cancel while the owner does",
        nodes: 2,
        requests: vec![bob(GET), bob(CANCEL), unscoped(GET), unscoped(CANCEL), ann(1, CANCEL)],
        tool: vec![Do::Complete],
        waits: vec![TTL_MS],
        reaches: &["stranger_sees_nothing", "scope_needed", "ttl_not_early"],
        ..Scene::default()
    }
}
