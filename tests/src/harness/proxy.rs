//! A TCP proxy that can do to connections what a network does: cut them, lose them, delay them, and heal.
//!
//! One stands between a node and the database, or in front of a node for its peers: its address stays while the node's
//! changes with every start.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::watch;
use tokio::time::sleep;

use super::background::Background;

/// What the network does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It carries.
    Pass,
    /// Connections are closed, and new ones are closed at once.
    Cut,
    /// Nothing gets through and nothing is said: what was sent arrives once this is over.
    BlackHole,
    /// Every piece comes so much later.
    Delay(Duration),
}

#[derive(Clone, Copy, Debug)]
struct State {
    mode: Mode,
    target: Option<SocketAddr>,
}

/// A proxy; dropping it closes its connections.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    state: Arc<watch::Sender<State>>,
    _background: Background,
}

impl Proxy {
    /// A proxy of nothing yet.
    ///
    /// # Panics
    /// If there is no port to be had.
    pub fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("its address");
        let state = Arc::new(watch::Sender::new(State { mode: Mode::Pass, target: None }));
        let background = Background::start("proxy");
        let (listener, shared) = (background.listener(listener), Arc::clone(&state));
        background.spawn(async move {
            while let Ok((inbound, _)) = listener.accept().await {
                tokio::spawn(carry(inbound, shared.subscribe()));
            }
        });
        Self { address, state, _background: background }
    }

    /// A proxy of this address.
    pub fn of(target: SocketAddr) -> Self {
        let proxy = Self::start();
        proxy.point_at(target);
        proxy
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Connections to come go there.
    pub fn point_at(&self, target: SocketAddr) {
        self.state.send_modify(|state| state.target = Some(target));
    }

    /// Changes what the network does, to connections that are open too.
    pub fn set(&self, mode: Mode) {
        self.state.send_modify(|state| state.mode = mode);
    }

    /// The network carries again.
    pub fn heal(&self) {
        self.set(Mode::Pass);
    }
}

async fn carry(inbound: TcpStream, mut state: watch::Receiver<State>) {
    let State { mode, target } = *state.borrow();
    let (Some(target), false) = (target, mode == Mode::Cut) else { return };
    let Ok(outbound) = TcpStream::connect(target).await else { return };
    let _ = (inbound.set_nodelay(true), outbound.set_nodelay(true));
    let (from_client, to_client) = inbound.into_split();
    let (from_server, to_server) = outbound.into_split();
    let cut = state.clone();
    tokio::select! {
        _ = state.wait_for(|state| state.mode == Mode::Cut) => {}
        _ = async { tokio::join!(pump(from_client, to_server, cut.clone()), pump(from_server, to_client, cut.clone())) } => {}
    }
}

/// Carries one direction to its end.
async fn pump(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut state: watch::Receiver<State>) {
    let mut piece = vec![0; 64 * 1024];
    while let Ok(read) = from.read(&mut piece).await {
        if state.wait_for(|state| state.mode != Mode::BlackHole).await.is_err() {
            return;
        }
        let mode = state.borrow().mode;
        if let Mode::Delay(delay) = mode {
            sleep(delay).await;
        }
        if read == 0 || to.write_all(&piece[..read]).await.is_err() {
            break;
        }
    }
    let _ = to.shutdown().await;
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use tokio::io::AsyncReadExt as _;
    use tokio::time::timeout;

    use super::*;
    use crate::harness::DEADLINE;

    /// Says everything back.
    async fn echo() -> (SocketAddr, tokio::task::JoinHandle<()>) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serve = async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut from, mut to) = stream.into_split();
                    let _ = tokio::io::copy(&mut from, &mut to).await;
                });
            }
        };
        (address, tokio::spawn(serve))
    }

    async fn said_back(stream: &mut TcpStream, text: &[u8]) -> Vec<u8> {
        stream.write_all(text).await.unwrap();
        let mut heard = vec![0; text.len()];
        timeout(DEADLINE, stream.read_exact(&mut heard)).await.unwrap().unwrap();
        heard
    }

    #[tokio::test]
    async fn it_carries_delays_loses_cuts_and_heals() {
        let (target, server) = echo().await;
        let proxy = Proxy::of(target);
        let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
        assert_eq!(said_back(&mut stream, b"a").await, b"a");

        proxy.set(Mode::Delay(Duration::from_millis(30)));
        let start = Instant::now();
        assert_eq!(said_back(&mut stream, b"b").await, b"b");
        assert!(start.elapsed() >= Duration::from_millis(60), "there and back: {:?}", start.elapsed());

        proxy.set(Mode::BlackHole);
        stream.write_all(b"c").await.unwrap();
        let mut heard = [0];
        assert!(timeout(Duration::from_millis(100), stream.read_exact(&mut heard)).await.is_err());
        proxy.heal();
        timeout(DEADLINE, stream.read_exact(&mut heard)).await.unwrap().unwrap();
        assert_eq!(&heard, b"c");

        proxy.set(Mode::Cut);
        assert!(matches!(timeout(DEADLINE, stream.read(&mut heard)).await.unwrap(), Ok(0) | Err(_)));
        let mut refused = TcpStream::connect(proxy.address()).await.unwrap();
        assert!(matches!(timeout(DEADLINE, refused.read(&mut heard)).await.unwrap(), Ok(0) | Err(_)));
        proxy.heal();
        let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
        assert_eq!(said_back(&mut stream, b"d").await, b"d");
        server.abort();
    }
}
