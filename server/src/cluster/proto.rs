//! The messages and services of `proto/tokkuri/v1`, as the build makes them.
#![allow(missing_docs, missing_debug_implementations, unreachable_pub, clippy::all, clippy::pedantic)]

tonic::include_proto!("tokkuri.v1");

/// All of it once more, for reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
