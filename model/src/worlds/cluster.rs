//! Several nodes and one store: leases run out, are renewed late or not at all, nodes drain, and tasks go on elsewhere.
//!
//! Each node's own clock counts from somewhere else, one of them slowly, and none is ever compared with the store's.

use crate::frame::Scene;
use crate::frame::payload::LEASE_MS;
use crate::frame::scene::{Do, Faults, What};
use crate::worlds::{Bounds, Named, Part, ann, tasks};

pub(super) const WORLD: Named = Named {
    name: "cluster",
    about: "leases that run out and are renewed late, nodes that come back, drain and hand over, and tasks that go on elsewhere",
    parts,
};

const CANCEL: What = What::Cancel { task: 0 };
const GET: What = What::Get { task: 0 };

const fn create(task: u8) -> What {
    What::Create { task, retries: None }
}

fn parts(bounds: Bounds) -> Vec<Part> {
    let large = bounds == Bounds::Large;
    tasks([created(large), three(large), leases(large), drained(large), undrained(large), begun_once(large)])
}

fn leases(large: bool) -> Scene {
    Scene {
        name: "leases",
        about: "renewals are carried out late, answered late, or never; the node stops in time, comes back as another, and is taken over; its clock goes slow",
        nodes: 2,
        restartable: true,
        requests: vec![ann(1, CANCEL)],
        waits: vec![LEASE_MS / 3, LEASE_MS],
        sweeps: [0, 1, 0],
        slow: Some(0),
        lags: Some(0),
        faults: Faults { mute: 1, ..Faults::default() },
        reaches: &[
            "lease_stays_lost",
            "lease_loss_stops_runs",
            "living_left_alone",
            "orphan_ends",
            "one_live_attempt",
            "stop_is_true",
            "cancel_reaches_run",
        ],
        looks: large,
        ..Scene::default()
    }
}

fn created(large: bool) -> Scene {
    Scene {
        name: "created",
        about: "a node loses its lease while its creates are on their way: none of them runs unseen, and its place is given back",
        nodes: 2,
        running: false,
        restartable: true,
        requests: if large {
            vec![ann(0, create(0)), ann(1, CANCEL), ann(1, GET)]
        } else {
            vec![ann(0, create(0)), ann(1, CANCEL)]
        },
        waits: vec![LEASE_MS],
        sweeps: [1, 1, 0],
        faults: Faults { mute: u8::from(large), ..Faults::default() },
        reaches: &[
            "lease_stays_lost",
            "orphan_ends",
            "created_is_durable",
            "place_given_back",
            "lease_loss_stops_runs",
        ],
        ..Scene::default()
    }
}

fn drained(large: bool) -> Scene {
    Scene {
        name: "drained",
        about: "a node drains while its task runs, ends and is cancelled",
        nodes: 2,
        restartable: true,
        requests: if large { vec![ann(1, CANCEL), ann(0, create(1))] } else { vec![ann(1, CANCEL)] },
        tool: if large { vec![Do::Complete] } else { vec![Do::Ask { key: 0, request: 1 }, Do::Complete] },
        waits: vec![LEASE_MS / 3, LEASE_MS / 3],
        sweeps: [1, 1, 0],
        drain: Some((0, LEASE_MS / 3)),
        faults: Faults { mute: u8::from(!large), ..Faults::default() },
        reaches: &[
            "drain_loses_nothing",
            "drained_is_done",
            "stop_is_true",
            "orphan_ends",
            "one_outcome",
            "rejection_is_inert",
            "living_left_alone",
        ],
        looks: false,
        ..Scene::default()
    }
}

fn undrained(large: bool) -> Scene {
    Scene {
        name: "undrained",
        about: "an operator drains a node and thinks better of it, before or after its task was handed over",
        undrain: true,
        tool: vec![Do::Complete],
        looks: large,
        ..drained(false)
    }
}

fn begun_once(large: bool) -> Scene {
    Scene {
        name: "begun_once",
        about: "a node with a tool that must not run twice drains and loses its lease; what never began is run elsewhere",
        nodes: 2,
        running: false,
        requests: vec![ann(0, create(0)), ann(1, CANCEL)],
        waits: vec![LEASE_MS / 3, LEASE_MS],
        sweeps: [0, 2, 0],
        drain: Some((0, 0)),
        faults: Faults { mute: u8::from(large), ..Faults::default() },
        reaches: &["runs_once", "drain_loses_nothing", "orphan_ends"],
        looks: large,
        ..Scene::default()
    }
}

fn three(large: bool) -> Scene {
    Scene {
        name: "three",
        about: "one of three nodes is thought dead and comes back: the two others and itself take its task over, and a cancel comes",
        nodes: 3,
        restartable: true,
        requests: vec![ann(2, CANCEL)],
        waits: vec![LEASE_MS],
        sweeps: [u8::from(large), 1, 1],
        reaches: &[
            "orphan_ends",
            "one_live_attempt",
            "lease_loss_stops_runs",
            "cancel_reaches_run",
            "place_given_back",
        ],
        ..Scene::default()
    }
}
