//! A server that serves: over HTTP, over stdio, and back down again.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use rmcp::ServerHandler;
use rmcp::model::ProtocolVersion;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{ENDPOINT, NoHandler};
use crate::admin::Admin;
use crate::cluster::{Grpc, GrpcError, Serving};
use crate::config::{GrpcConfig, Secret};
use crate::engine::{Engine, NodeLoop};
use crate::listener::{self, ConnectionLimits, Tls};
use crate::mcp::door::Door;
use crate::mcp::handler::Handler;
use crate::mcp::stdio;

/// A server that can serve.
#[derive(Debug)]
pub struct Server<H = NoHandler> {
    pub(super) engine: Arc<Engine>,
    pub(super) handler: Handler<H>,
    pub(super) door: Arc<Door<H>>,
    pub(super) stopping: CancellationToken,
    pub(super) shutdown: Duration,
    pub(super) connections: ConnectionLimits,
    pub(super) tls: Option<Tls>,
    pub(super) admin: Option<(Arc<Admin>, TcpListener)>,
    /// Whether nodes tell each other of changes.
    pub(super) signals: bool,
    pub(super) grpc: Option<Grpc>,
}

impl<H: ServerHandler> Server<H> {
    /// The node.
    pub const fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// The endpoint at [`ENDPOINT`] as a router, to be merged into an application's own; with [`Tokkuri::auth`](super::Tokkuri::auth), its metadata
    /// (RFC 9728) stands beside it, below `/.well-known/oauth-protected-resource`. Whoever serves it has to run the node as
    /// well: [`Server::serve`] does both.
    pub fn router(&self) -> Router {
        let door = Arc::clone(&self.door);
        let metadata = door.guard().map(|guard| guard.metadata().routes()).unwrap_or_default();
        Router::new().route(ENDPOINT, axum::routing::any(answer::<H>)).with_state(door).merge(metadata)
    }

    /// Serves operators on a listener of their own, from before the node takes up its work until it has drained: `/metrics`, `/healthz`,
    /// `/readyz` ([`admin`](crate::admin)). With a `token`, `/metrics` asks for it.
    ///
    /// # Errors
    /// [`Exposed`](crate::admin::Exposed): other machines reach the listener, and there is no token. Otherwise if the listener has no address.
    pub fn admin(mut self, listener: TcpListener, token: Option<&Secret>) -> io::Result<Self> {
        let admin = Admin::new(&self.engine, listener.local_addr()?, token);
        let admin = admin.map_err(|exposed| io::Error::new(io::ErrorKind::PermissionDenied, exposed))?;
        self.admin = Some((Arc::new(admin), listener));
        Ok(self)
    }

    /// Serves gRPC on a listener of its own, until the server has drained: signals between the nodes of a store, and operators
    /// ([`cluster`](crate::cluster)). `listen` of the configuration is not looked at.
    ///
    /// # Errors
    /// [`GrpcError`]: other machines reach the listener and nobody is asked for a token or a certificate, say.
    pub fn grpc(mut self, listener: TcpListener, config: &GrpcConfig) -> Result<Self, GrpcError> {
        self.grpc = Some(Grpc::new(&self.engine, listener, config, self.signals)?);
        Ok(self)
    }

    /// Serves on `listener` until `stop` is over, then drains: no new requests, runs may end within the configured time, what
    /// is left is failed.
    ///
    /// # Errors
    /// If the listener fails.
    pub async fn serve(mut self, listener: TcpListener, stop: impl Future<Output = ()> + Send) -> io::Result<()> {
        let working = self.begin().await;
        let served = self.serve_http(listener, working.until(stop)).await;
        working.end().await;
        served
    }

    /// Serves one client over standard input and output, in whichever era it speaks, until it closes its end or `stop` is over;
    /// then drains. With a `listener`, HTTP is served beside it.
    ///
    /// # Errors
    /// If the client does not speak MCP, or the listener fails.
    pub async fn serve_stdio(
        mut self,
        listener: Option<TcpListener>,
        stop: impl Future<Output = ()> + Send,
    ) -> io::Result<()> {
        let working = self.begin().await;
        let streams = TaskTracker::new();
        let (input, output) = rmcp::transport::stdio();
        let listening = Arc::clone(self.door.listening());
        let mut client = tokio::spawn(stdio::serve(self.handler.clone(), listening, streams.clone(), input, output));
        let mut ended = None;
        let over = async {
            tokio::select! {
                served = &mut client => ended = Some(served.unwrap_or_else(|error| Err(io::Error::other(error)))),
                () = stop => {}
            }
        };
        let served = match listener {
            Some(listener) => self.serve_http(listener, working.until(over)).await,
            None => {
                working.until(over).await;
                self.engine.shut_down(self.shutdown).await;
                self.stopping.cancel();
                Ok(())
            }
        };
        // Streams of tasks say that they end. A client that does not read is not waited for long.
        streams.close();
        let _ = tokio::time::timeout(Duration::from_secs(1), streams.wait()).await;
        client.abort();
        working.end().await;
        served.and(ended.unwrap_or(Ok(())))
    }

    /// Takes up the node's own work. Operators are answered meanwhile.
    async fn begin(&mut self) -> Working {
        let stop_admin = CancellationToken::new();
        let (admin, readiness) = match self.admin.take() {
            Some((admin, listener)) => {
                let serving = listener::serve(listener, admin.router(), crate::admin::LIMITS, None, stop_admin.clone());
                (Some(tokio::spawn(serving)), Some(admin))
            }
            None => (None, None),
        };
        let mut node = NodeLoop::new(Arc::clone(&self.engine));
        node.begin().await;
        if let Some(admin) = readiness {
            admin.readiness().begun();
        }
        let grpc = match self.grpc.take() {
            Some(grpc) => Some(grpc.serve(&self.engine).await),
            None => None,
        };
        Working { node: tokio::spawn(node.run()), grpc, admin, stop_admin }
    }

    async fn serve_http(&self, listener: TcpListener, stop: impl Future<Output = ()> + Send) -> io::Result<()> {
        let stopped = self.stopping.clone();
        let serving = listener::serve(listener, self.router(), self.connections, self.tls.clone(), stopped.clone());
        let mut serving = std::pin::pin!(serving);
        tokio::select! {
            () = &mut serving => unreachable!("it is not told to stop yet"),
            () = stop => {}
        }
        // Runs are drained while requests are still answered: clients can poll their tasks to the end.
        tokio::select! {
            () = &mut serving => unreachable!("it is not told to stop yet"),
            () = self.engine.shut_down(self.shutdown) => {}
        }
        stopped.cancel();
        // What is still open is streams and connections that idle: they are not waited for long.
        let _ = tokio::time::timeout(Duration::from_secs(1), serving).await;
        Ok(())
    }

    /// The versions of the protocol that it speaks.
    pub fn protocol_versions(&self) -> Vec<ProtocolVersion> {
        self.handler.supported_protocol_versions().into_owned()
    }
}

/// What goes on beside the requests.
#[derive(Debug)]
struct Working {
    node: JoinHandle<()>,
    grpc: Option<Serving>,
    admin: Option<JoinHandle<()>>,
    stop_admin: CancellationToken,
}

impl Working {
    /// Over when `stop` is, and health says that the node leaves.
    async fn until(&self, stop: impl Future<Output = ()>) {
        stop.await;
        if let Some(grpc) = &self.grpc {
            grpc.leaves().await;
        }
    }

    /// Ends it for good: when this is over, it holds nothing of the store any more.
    async fn end(self) {
        self.node.abort();
        // It was told to end; that it did so by being aborted is no news.
        let _ = self.node.await;
        if let Some(grpc) = self.grpc {
            grpc.end().await;
        }
        self.stop_admin.cancel();
        if let Some(mut admin) = self.admin
            && tokio::time::timeout(Duration::from_secs(1), &mut admin).await.is_err()
        {
            admin.abort();
            let _ = admin.await;
        }
    }
}

async fn answer<H: ServerHandler>(State(door): State<Arc<Door<H>>>, request: Request) -> Response {
    door.answer(request).await
}
