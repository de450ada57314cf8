//! The frame of every world: the shipped machines, a store, a wire, nodes that crash, and time.
//!
//! Nothing here decides what happens to a task. The frame carries out what procedures ask for, in every order that the
//! [`Scene`] allows, and holds what comes of it against the [claims](claim). It knows core and nothing else, so that core's own
//! tests can take it in and replay what was found with it.

pub mod action;
pub mod claim;
pub mod hashed;
mod judge;
pub(crate) mod model;
pub mod payload;
pub mod scene;
pub mod script;
pub mod state;
mod tool;
mod turn;

pub use action::{Action, Store};
pub use claim::{Claim, Judged, Told};
pub use model::World;
pub use scene::Scene;
pub use state::State;

use tokkuri_core::host::{Host, Watch};
use tokkuri_core::procedure::Seen;
use tokkuri_core::store::{Outcome, Shelf};
use tokkuri_core::time::Millis;

use crate::frame::payload::Number;

/// A node looks at the store for its runs: one question, one reading for each run that is behind, and the store's time.
pub(crate) fn look(host: &mut Host<Number>, watch: &mut Watch, shelf: &Shelf<Number>, now: Millis) {
    // The reference store answers a look without changing; it is asked through the protocol all the same.
    let Outcome::Touched(touched) = shelf.clone().carry_out(now, watch.request()).outcome else {
        unreachable!("it was asked what was touched")
    };
    for (id, revision) in touched {
        if host.is_behind(id, revision) {
            host.observe(id, &shelf.row(now, id).cloned().map_or(Seen::Gone, Seen::Task));
        }
    }
    watch.answered(now);
    host.clock(now);
}
