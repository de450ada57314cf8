//! Black-box tests of tokkuri, and what they run against: real HTTP to a real process.
//!
//! [`harness`] starts the test bed, speaks MCP to it and checks every message that comes back against the published
//! schemas; [`traffic`] is many clients at once, [`history`] what they recorded and what it must show; [`fixtures`] and [`testbed`] are what the test bed serves. The claims themselves are in `tests/`.

pub mod fixtures;
pub mod harness;
pub mod history;
pub mod testbed;
pub mod traffic;
