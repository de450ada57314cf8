//! The model checks the code that is shipped: the machines of `tokkuri-core`, in worlds that lose, delay, double and crash.
//!
//! * [`frame`]: what every world is made of, and the claims
//! * [`worlds`]: the scenes that are checked
//! * [`inline`], [`follow`], [`queue`]: worlds of their own beside the frame, each around one machine ([`small`])
//! * [`check`](mod@check): explores a scene to its end
//! * [`simulate`]: walks at random through scenes that are too large for that
//! * [`mutants`]: wrong rules, and the claims that notice them
//! * [`regression`]: a trace as a file that core's tests replay
//! * [`conformance`]: what a server recorded, held against core
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod check;
pub mod cli;
pub mod conformance;
mod explore;
pub mod follow;
pub mod frame;
pub mod inline;
pub mod mutants;
pub mod queue;
pub mod regression;
pub mod simulate;
pub mod small;
pub mod worlds;
