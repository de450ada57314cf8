//! The fixtures on bare rmcp: `cargo run -p tokkuri-tests --example fixtures_server -- [PORT]`.
//!
//! No line of tokkuri runs here. What the conformance suite says of this server is what it says of the fixtures and
//! of rmcp, and so the mark that the same fixtures have to reach behind tokkuri. The endpoint is `/mcp`.

use std::sync::Arc;

use anyhow::Context;
use axum::Router;
use rmcp::transport::{
    StreamableHttpServerConfig, StreamableHttpService, streamable_http_server::session::local::LocalSessionManager,
};
use tokio::net::TcpListener;
use tokkuri_tests::fixtures::Fixtures;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let port: u16 = match std::env::args().nth(1) {
        Some(port) => port.parse().with_context(|| format!("`{port}` is not a port"))?,
        None => 0,
    };
    let fixtures = Arc::new(Fixtures::new());
    let service = StreamableHttpService::new(
        move || Ok(fixtures.clone()),
        Arc::new(LocalSessionManager::default()),
        // The suite sends the server's own address as Origin and wants that let through.
        StreamableHttpServerConfig::default().with_allowed_origins(["http://127.0.0.1:*", "http://localhost:*"]),
    );
    let listener = TcpListener::bind(("127.0.0.1", port)).await.context("cannot listen")?;
    println!("listening http={}", listener.local_addr()?);
    axum::serve(listener, Router::new().nest_service("/mcp", service)).await?;
    Ok(())
}
