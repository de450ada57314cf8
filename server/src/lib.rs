//! MCP tools as tasks.

pub mod config;
