//! Several nodes on one Postgres: each a process of its own that a test kills, freezes, cuts off and starts again.
//!
//! ```no_run
//! # async fn example() {
//! use tokkuri_tests::harness::Cluster;
//!
//! let mut cluster = Cluster::of("path of the test bed").lease_ms(2000).start(3);
//! let id = cluster.client(0).create("slow", serde_json::json!({"ms": 60_000})).await;
//! cluster.kill(0).await;
//! cluster.client(1).wait_end(&id).await;
//! # }
//! ```

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;

use super::balancer::Nodes;
use super::command::Tokkuri;
use super::{Balancer, Bed, Client, Postgres, Proxy, Server};

/// A cluster that is not started yet.
#[derive(Debug)]
pub struct Options {
    bed: Bed,
    url: Option<String>,
    proxied: bool,
    environment: Vec<(usize, String, String)>,
}

impl Options {
    /// Changes what all nodes have in common.
    #[must_use]
    pub fn bed(mut self, change: impl FnOnce(Bed) -> Bed) -> Self {
        self.bed = change(self.bed);
        self
    }

    /// Sets one setting of all nodes.
    #[must_use]
    pub fn setting(self, key: &str, value: impl ToString) -> Self {
        self.bed(|bed| bed.setting(key, value))
    }

    /// How long a node is thought alive without a sign of life.
    #[must_use]
    pub fn lease_ms(self, ms: u64) -> Self {
        self.setting("tasks.lease_ms", ms)
    }

    /// How often a node looks at the store.
    #[must_use]
    pub fn poll_interval_ms(self, ms: u64) -> Self {
        self.setting("tasks.poll_interval_ms", ms)
    }

    /// No node signals another or hears signals.
    #[must_use]
    pub fn without_signals(self) -> Self {
        self.bed(|bed| bed.env("TOKKURI_TEST_NO_SIGNALS", 1))
    }

    /// The database does not notify.
    #[must_use]
    pub fn without_notify(self) -> Self {
        self.bed(|bed| bed.env("TOKKURI_TEST_NO_NOTIFY", 1))
    }

    /// The clock of one node is wrong by so much.
    #[must_use]
    pub fn clock_offset_ms(mut self, node: usize, ms: i64) -> Self {
        self.environment.push((node, "TOKKURI_TEST_CLOCK_OFFSET_MS".into(), ms.to_string()));
        self
    }

    /// Puts a proxy between each node and the database, and in front of each node for its peers.
    #[must_use]
    pub fn proxied(mut self) -> Self {
        self.proxied = true;
        self
    }

    /// Uses this database; a new one of the shared Postgres without it.
    #[must_use]
    pub fn on(mut self, url: String) -> Self {
        self.url = Some(url);
        self
    }

    /// Starts so many nodes at once, and waits until all are ready. To be called on the test's own thread, as [`Bed::start`].
    ///
    /// # Panics
    /// If one does not come up; with its log.
    pub fn start(self, n: usize) -> Cluster {
        let url = self.url.clone().unwrap_or_else(|| Postgres::shared().url());
        let mut nodes: Vec<Node> = (0..n).map(|position| self.node(position, &url)).collect();
        let starting: Vec<_> = nodes.iter().map(|node| node.bed.clone().spawn()).collect();
        for (node, starting) in nodes.iter_mut().zip(starting) {
            node.is_up(starting.ready());
        }
        let http = nodes.iter().map(Node::http).collect();
        let addresses: Nodes = Arc::new(Mutex::new(http));
        Cluster { nodes, balancer: Balancer::start(Arc::clone(&addresses)), addresses, url }
    }

    fn node(&self, position: usize, url: &str) -> Node {
        let mut bed = self.bed.clone().arg("--node").arg(name(position));
        for (_, name, value) in self.environment.iter().filter(|(node, ..)| *node == position) {
            bed = bed.env(name, value);
        }
        if !self.proxied {
            return Node { bed: bed.on(url), server: None, lines: None };
        }
        let (address, rest) = address_of(url);
        let lines = Lines { database: Proxy::of(address), peers: Proxy::start() };
        let bed = bed.on(rest.replace("{}", &lines.database.address().to_string()));
        let bed = bed.setting("grpc.advertise", lines.peers.address());
        Node { bed, server: None, lines: Some(lines) }
    }
}

/// The node names are `a`, `b`, `c` …
fn name(position: usize) -> String {
    char::from(b'a' + u8::try_from(position).expect("few nodes")).to_string()
}

/// Where the database is, and its URL with `{}` in place of that.
fn address_of(url: &str) -> (SocketAddr, String) {
    let (before, after) = url.split_once('@').expect("a URL with a user");
    let (address, database) = after.split_once('/').expect("a URL with a database");
    (address.parse().expect("a URL with an address"), format!("{before}@{{}}/{database}"))
}

/// Nodes that run, or did.
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<Node>,
    addresses: Nodes,
    balancer: Balancer,
    url: String,
}

#[derive(Debug)]
struct Node {
    bed: Bed,
    /// `None` while it is down.
    server: Option<Server>,
    lines: Option<Lines>,
}

/// What a node is connected through.
#[derive(Debug)]
struct Lines {
    database: Proxy,
    peers: Proxy,
}

impl Node {
    fn is_up(&mut self, server: Server) {
        if let (Some(lines), Some(grpc)) = (&self.lines, server.grpc()) {
            lines.peers.point_at(grpc);
        }
        self.server = Some(server);
    }

    fn http(&self) -> Option<SocketAddr> {
        self.server.as_ref().map(Server::http)
    }
}

impl Cluster {
    /// A cluster of the binary `bin`: tests pass `env!("CARGO_BIN_EXE_tokkuri-testbed")`.
    pub fn of(bin: &str) -> Options {
        Options { bed: Bed::new(bin), url: None, proxied: false, environment: Vec::new() }
    }

    /// How many nodes there are, those that are down included.
    pub fn size(&self) -> usize {
        self.nodes.len()
    }

    /// The database.
    pub fn database(&self) -> &str {
        &self.url
    }

    /// A node.
    ///
    /// # Panics
    /// If it is down.
    pub fn node(&self, node: usize) -> &Server {
        self.nodes[node].server.as_ref().unwrap_or_else(|| panic!("node {} is down", name(node)))
    }

    /// Whether a node is up.
    pub fn is_up(&self, node: usize) -> bool {
        self.nodes[node].server.is_some()
    }

    /// A client of this node alone, on connections of its own.
    pub fn client(&self, node: usize) -> Client {
        self.node(node).client()
    }

    /// `tokkuri admin WORDS` at this node: what it prints.
    ///
    /// # Panics
    /// If the node is down, or the command fails.
    pub fn admin(&self, node: usize, words: &[&str]) -> String {
        let (tokkuri, grpc) = self.operator(node);
        tokkuri.admin(grpc, words)
    }

    /// `tokkuri admin WORDS -o json` at this node.
    ///
    /// # Panics
    /// If the node is down, the command fails, or prints no JSON.
    pub fn admin_json(&self, node: usize, words: &[&str]) -> Value {
        let (tokkuri, grpc) = self.operator(node);
        tokkuri.admin_json(grpc, words)
    }

    fn operator(&self, node: usize) -> (Tokkuri, SocketAddr) {
        let grpc = self.node(node).grpc().expect("nodes listen for gRPC");
        (Tokkuri::beside(self.nodes[node].bed.bin()), grpc)
    }

    /// A client of all nodes in turn.
    pub fn balanced(&self) -> Client {
        Client::new(format!("http://{}/mcp", self.balancer.address()))
    }

    /// Where the nodes listen now; it changes as they do.
    pub fn addresses(&self) -> Nodes {
        Arc::clone(&self.addresses)
    }

    /// Takes a node from the balancer, which sends it no request any more.
    pub fn unlist(&self, node: usize) {
        self.list(node, None);
    }

    /// SIGKILL.
    ///
    /// # Panics
    /// If it is down.
    pub async fn kill(&mut self, node: usize) {
        self.unlist(node);
        self.take(node).kill().await;
    }

    /// SIGTERM, which has to end it within that time and with exit code 0.
    ///
    /// # Panics
    /// If it does not, or is down.
    pub async fn terminate(&mut self, node: usize, within: Duration) {
        self.unlist(node);
        self.take(node).terminate(within).await;
    }

    /// SIGSTOP: it stands still, and keeps its connections. [`Cluster::thaw`] lets it go on.
    pub fn freeze(&self, node: usize) {
        self.node(node).signal(libc::SIGSTOP);
    }

    /// SIGCONT.
    pub fn thaw(&self, node: usize) {
        self.node(node).signal(libc::SIGCONT);
    }

    /// Starts a node that is down: same name, another incarnation, other ports.
    ///
    /// # Panics
    /// If it is up, or does not come up.
    pub fn start(&mut self, node: usize) {
        assert!(!self.is_up(node), "node {} is up", name(node));
        let server = self.nodes[node].bed.clone().start();
        self.list(node, Some(server.http()));
        self.nodes[node].is_up(server);
    }

    /// What a node reaches the database through.
    ///
    /// # Panics
    /// If the cluster is not [`Options::proxied`].
    pub fn database_line(&self, node: usize) -> &Proxy {
        &self.lines(node).database
    }

    /// What a node's peers reach it through.
    ///
    /// # Panics
    /// If the cluster is not [`Options::proxied`].
    pub fn peer_line(&self, node: usize) -> &Proxy {
        &self.lines(node).peers
    }

    fn lines(&self, node: usize) -> &Lines {
        self.nodes[node].lines.as_ref().expect("a cluster with proxies")
    }

    fn list(&self, node: usize, address: Option<SocketAddr>) {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner)[node] = address;
    }

    fn take(&mut self, node: usize) -> Server {
        self.nodes[node].server.take().unwrap_or_else(|| panic!("node {} is down", name(node)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_a_database_is_replaced_in_its_url() {
        let (address, rest) = address_of("postgres://u@127.0.0.1:5432/t0");
        assert_eq!((address.port(), rest.as_str()), (5432, "postgres://u@{}/t0"));
        assert_eq!([name(0), name(2)], ["a", "c"]);
    }
}
