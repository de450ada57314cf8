//! Two nodes create, end and expire tasks for one owner at its limit.

use crate::frame::Scene;
use crate::frame::payload::{TTL_MS, Who};
use crate::frame::scene::{Do, Faults, Request, What};
use crate::worlds::{Bounds, Named, Part, ann, tasks};

pub(super) const WORLD: Named =
    Named { name: "quota", about: "two nodes create, end and expire tasks for one owner at its limit", parts };

const fn create(task: u8) -> What {
    What::Create { task, retries: None }
}

fn parts(bounds: Bounds) -> Vec<Part> {
    let large = bounds == Bounds::Large;
    tasks([creates(large), ends(large)])
}

fn creates(large: bool) -> Scene {
    Scene {
        name: "creates",
        about: "creates of one owner through two doors, and of another, with a store that fails",
        nodes: 2,
        running: false,
        limit: 1,
        requests: vec![
            ann(0, create(0)),
            ann(1, create(1)),
            ann(0, create(2)),
            Request { door: 1, who: Who::Bob, what: create(3) },
        ],
        tool: if large { vec![Do::Progress(1), Do::Complete] } else { vec![Do::Complete] },
        faults: Faults { mute: 1, away: u8::from(large), ..Faults::default() },
        reaches: &["quota_holds", "quota_freed_once", "place_given_back"],
        ..Scene::default()
    }
}

fn ends(large: bool) -> Scene {
    Scene {
        name: "ends",
        about: "a task ends by itself, by a cancel and by its time while others wait for its place",
        nodes: 2,
        running: true,
        limit: 2,
        requests: if large {
            vec![ann(0, create(1)), ann(1, create(2)), ann(1, create(3)), ann(1, What::Cancel { task: 0 })]
        } else {
            vec![ann(0, create(1)), ann(1, create(2)), ann(1, What::Cancel { task: 0 })]
        },
        tool: vec![Do::Complete],
        waits: vec![TTL_MS],
        expiry: [false, true, false],
        reaches: &["quota_holds", "quota_freed_once", "cancel_reaches_run"],
        ..Scene::default()
    }
}
