//! Black-box tests of tokkuri, and what they run against: real HTTP to a real process.
//!
//! [`harness`] starts the test bed, speaks MCP to it and checks every message that comes back against the published
//! schemas; [`fixtures`] and [`testbed`] are what the test bed serves. The claims themselves are in `tests/`.

pub mod fixtures;
pub mod harness;
pub mod testbed;
