//! MCP tools as tasks.

pub mod cli;
pub mod client;
pub mod config;
pub mod store;
