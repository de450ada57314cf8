//! What every black-box test stands on: a server process, a client, raw bytes, and the schemas.
//!
//! * [`server`] starts the test bed and ends it, politely or not;
//! * [`cluster`] is several of them on one Postgres, each to be killed, frozen and cut off; [`balancer`] stands in front,
//!   [`proxy`] in between;
//! * [`client`] speaks the modern era, [`earlier`] the 2025-11-25 one; [`reply`] is what came back;
//! * [`token`] issues access tokens, and [`key_server`] is where an issuer's keys are on the web;
//! * [`stdio`] is a client that starts its server itself, in either era;
//! * [`wait`] polls a task until it is in the state that a test needs;
//! * [`listen`] reads the streams of `subscriptions/listen`;
//! * [`probe`] drives the probe tools of the test bed (holds, gates, counters);
//! * [`postgres`] is a throw-away Postgres;
//! * [`http2`] is a client of many requests on one connection;
//! * [`operator`] asks the admin listener, and reads its numbers; [`command`] runs `tokkuri admin`;
//! * [`raw`] is HTTP/1.1 by hand, for bytes that no client library would send and for cut connections;
//! * [`schema`] judges every message that the server sends, without being asked.
//!
//! The harness panics where a test would have to give up: a missed deadline, a message that breaks the schemas, a server
//! that does not start. The panic says what was last seen.

mod background;
pub mod balancer;
pub mod client;
pub mod cluster;
pub mod command;
pub mod earlier;
pub mod http2;
pub mod key_server;
pub mod listen;
pub mod operator;
pub mod postgres;
pub mod probe;
pub mod proxy;
pub mod raw;
pub mod reply;
pub mod schema;
pub mod server;
pub mod stdio;
pub mod token;
pub mod wait;

pub use balancer::Balancer;
pub use client::{Client, Prepared, caps};
pub use cluster::Cluster;
pub use earlier::EarlierClient;
pub use key_server::KeyServer;
pub use listen::Listening;
pub use postgres::Postgres;
pub use proxy::Proxy;
pub use reply::Reply;
pub use server::{Bed, Server, Store};
pub use stdio::Stdio;
pub use token::Issuer;
pub use wait::is_terminal;

use std::time::Duration;

/// How long a test waits for a state that has to come. Generous, for a loaded machine: a test that passes never waits so
/// long.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// How often a test looks again while it waits for a state.
pub const LOOK_AGAIN: Duration = Duration::from_millis(10);
