//! A task comes to be: the reply is lost, the client is gone, a node dies at every step between admission and reply.

use crate::frame::Scene;
use crate::frame::payload::{LEASE_MS, TTL_MS};
use crate::frame::scene::{Do, Faults, What};
use crate::worlds::{Bounds, Named, Part, ann, tasks};

pub(super) const WORLD: Named = Named {
    name: "create",
    about: "the reply is lost, the client is gone, a node dies at every step between admission and reply, and the client tries again",
    parts,
};

const CREATE: What = What::Create { task: 0, retries: None };
const RETRY: What = What::Create { task: 1, retries: Some(0) };

fn parts(bounds: Bounds) -> Vec<Part> {
    let large = bounds == Bounds::Large;
    tasks([unheard(large), crashing(large)])
}

fn unheard(large: bool) -> Scene {
    let mut requests = vec![ann(0, CREATE), ann(1, RETRY), ann(1, What::Get { task: 0 })];
    if large {
        requests.push(ann(0, What::Get { task: 1 }));
        requests.push(ann(0, What::Cancel { task: 1 }));
    }
    Scene {
        name: "unheard",
        about: "replies get lost, the store fails with and without having stored, and the client tries again elsewhere",
        nodes: 2,
        running: false,
        requests,
        tool: if large { vec![Do::Progress(1), Do::Complete] } else { vec![Do::Complete] },
        replies_get_lost: true,
        faults: Faults { away: 1, mute: 1, unsure: u8::from(large), ..Faults::default() },
        reaches: &["created_is_durable", "no_ghost", "place_given_back", "live_is_run"],
        ..Scene::default()
    }
}

fn crashing(large: bool) -> Scene {
    Scene {
        name: "crashing",
        about: "a node dies at any step of a create; what it left behind is taken over, or ends with its time to live",
        nodes: 2,
        running: false,
        requests: if large {
            vec![ann(0, CREATE), ann(1, RETRY), ann(1, What::Get { task: 0 })]
        } else {
            vec![ann(0, CREATE), ann(1, What::Get { task: 0 })]
        },
        tool: vec![Do::Complete],
        waits: if large { vec![LEASE_MS, TTL_MS - LEASE_MS, 5_000] } else { vec![LEASE_MS, TTL_MS] },
        expiry: [false, true, false],
        sweeps: [0, 1, 0],
        replies_get_lost: large,
        faults: Faults { crash: 1, mute: u8::from(large), ..Faults::default() },
        reaches: &["created_is_durable", "ttl_not_early", "live_is_run", "orphan_ends"],
        ..Scene::default()
    }
}
