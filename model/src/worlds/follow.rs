//! Tasks that change while somebody follows them.

use crate::follow::{Change, Deed, Listener, Listeners};
use crate::frame::payload::{KEEP_MS, TTL_MS, Who};
use crate::worlds::{Bounds, Named, Part};

pub(super) const WORLD: Named = Named {
    name: "follow",
    about: "tasks that change here and elsewhere, and followers that come, are slow and go at any moment",
    parts,
};

fn parts(bounds: Bounds) -> Vec<Part> {
    let large = bounds == Bounds::Large;
    [readings(large), slow(large), two_tasks(large), expiry(large), strangers(large), created(large)]
        .map(|it| Part::Follow(Box::new(it)))
        .to_vec()
}

const fn here(task: u8, deed: Deed) -> Change {
    Change { task, here: true, deed }
}

const fn elsewhere(task: u8, deed: Deed) -> Change {
    Change { task, here: false, deed }
}

fn readings(large: bool) -> Listeners {
    let leaving = Listener { leaves: true, ..Listener::default() };
    Listeners {
        name: "readings",
        about: "a task runs here and is cancelled elsewhere; readings come late, twice and in any order, hints perhaps",
        lanes: vec![
            vec![here(0, Deed::Ask), here(0, Deed::Progress(1)), here(0, Deed::Complete)],
            vec![elsewhere(0, Deed::Cancel)],
        ],
        listeners: if large { vec![leaving, Listener::default()] } else { vec![leaving] },
        hints: true,
        doubles: if large { 1 } else { 2 },
        away: 1,
        reaches: &[
            "follower_gets_terminal",
            "revision_monotonic",
            "shown_was_stored",
            "no_lost_wakeup",
            "catches_up",
            "first_is_current",
            "nothing_left_behind",
        ],
        ..Listeners::default()
    }
}

fn slow(large: bool) -> Listeners {
    let changes = [Deed::Ask, Deed::Answer, Deed::Progress(1), Deed::Complete];
    let mut listeners = vec![Listener::default(), Listener { leaves: true, ..Listener::default() }];
    if large {
        listeners.push(Listener::default());
    }
    Listeners {
        name: "slow",
        about: "followers of one task, one of whom may go; whoever does not read skips what came in between",
        lanes: vec![changes.map(|deed| here(0, deed)).to_vec()],
        listeners,
        reaches: &["latest_wins", "first_is_current", "follower_gets_terminal", "revision_monotonic"],
        ..Listeners::default()
    }
}

fn two_tasks(large: bool) -> Listeners {
    let both = Listener { tasks: vec![0, 1], ..Listener::default() };
    Listeners {
        name: "two_tasks",
        about: "a follower of two tasks, one of which runs here and one elsewhere",
        runs_here: vec![true, false],
        lanes: vec![
            vec![here(0, Deed::Progress(1)), here(0, Deed::Complete)],
            vec![elsewhere(1, Deed::Progress(1)), elsewhere(1, Deed::Complete)],
        ],
        listeners: if large { vec![both, Listener::default()] } else { vec![both] },
        hints: true,
        reaches: &["turns_go_round", "follower_gets_terminal", "catches_up", "no_lost_wakeup"],
        ..Listeners::default()
    }
}

fn expiry(large: bool) -> Listeners {
    Listeners {
        name: "expiry",
        about: "a task ends elsewhere just before its time to live is over, or just after; rows are removed here and elsewhere",
        runs_here: vec![false],
        lanes: vec![vec![elsewhere(0, Deed::Progress(1)), elsewhere(0, Deed::Complete)]],
        listeners: if large { vec![Listener::default(); 2] } else { vec![Listener::default()] },
        waits: vec![TTL_MS - 1_000, 1_000, KEEP_MS],
        expiry: [true; 2],
        hints: true,
        doubles: u8::from(!large),
        reaches: &["gone_is_told", "follower_gets_terminal", "catches_up"],
        ..Listeners::default()
    }
}

fn strangers(large: bool) -> Listeners {
    let eager = |who| Listener { who, eager: true, ..Listener::default() };
    Listeners {
        name: "strangers",
        about: "a stranger, and the owner without the tool's scope, follow beside the owner, and take before they have read",
        lanes: vec![vec![here(0, Deed::Progress(1)), here(0, Deed::Cancel)]],
        doubles: u8::from(large),
        listeners: vec![eager(Who::Ann), eager(Who::AnnUnscoped), eager(Who::Bob)],
        reaches: &["stranger_sees_nothing", "scope_needed", "nothing_left_behind"],
        ..Listeners::default()
    }
}

fn created(large: bool) -> Listeners {
    Listeners {
        name: "created",
        about: "a task is created and followed at once; its time to live ends it while it runs here",
        lanes: vec![vec![here(0, Deed::Create), here(0, Deed::Progress(1)), here(0, Deed::Complete)]],
        listeners: vec![Listener::default(); if large { 2 } else { 1 }],
        waits: vec![TTL_MS - 1_000, 1_000, KEEP_MS],
        expiry: [false, true],
        doubles: 1,
        reaches: &["gone_is_told", "follower_gets_terminal", "shown_was_stored"],
        ..Listeners::default()
    }
}
