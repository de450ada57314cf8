//! Black-box tests of tokkuri, and what they run against.

pub mod fixtures;
