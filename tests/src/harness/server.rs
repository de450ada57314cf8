//! The test bed as a process: started on ports of its own, ended politely or by force, its log shown when a test fails.
//!
//! The store is a parameter: `TOKKURI_TEST_STORE=memory|sqlite|postgres|cluster` runs every test on that store; `cluster` is
//! three nodes on one Postgres behind a [`Balancer`].

use std::fs;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::{Balancer, Client, DEADLINE, LOOK_AGAIN, Postgres};

/// Where the server under test keeps its tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    /// In the process: gone with it.
    Memory,
    /// A file in the directory of the [`Bed`]: survives [`Server::restart`].
    Sqlite,
    /// A database of the [`Postgres`] that the process shares, or of another one ([`Bed::on`]).
    Postgres,
    /// The same, with [`NODES`] nodes on it. [`Server::url`] is a balancer's; signals go to all nodes, numbers are added up,
    /// addresses are the first node's.
    Cluster,
}

/// Leaves a test out where there are several nodes, for a reason, and says so on standard output. Anywhere else it does nothing, so
/// that no test is left out everywhere. For what is one process's own and has no meaning for several; what only has to be asked of
/// one of them is asked of [`Server::near`].
#[macro_export]
macro_rules! one_process {
    ($why:literal) => {
        const { assert!($why.len() > 10, "a reason") };
        fn here() {}
        if $crate::harness::server::is_left_out(std::any::type_name_of_val(&here), $why) {
            return;
        }
    };
}

/// Whether a test is left out: the one that something inside of it is called `inside`.
pub fn is_left_out(inside: &str, why: &str) -> bool {
    if Store::from_env() != Store::Cluster {
        return false;
    }
    let test = inside.trim_end_matches("::here").trim_end_matches("::{{closure}}");
    // To the stream itself: what tests print is shown only if they fail.
    let _ = writeln!(std::io::stdout(), "\nleft out on several nodes: {test}: {why}");
    true
}

/// How many nodes [`Store::Cluster`] starts.
pub const NODES: usize = 3;

impl Store {
    /// The store that `TOKKURI_TEST_STORE` names; memory without it.
    ///
    /// # Panics
    /// On a name that is none of them.
    pub fn from_env() -> Self {
        match std::env::var("TOKKURI_TEST_STORE").as_deref() {
            Err(_) | Ok("memory") => Self::Memory,
            Ok("sqlite") => Self::Sqlite,
            Ok("postgres") => Self::Postgres,
            Ok("cluster") => Self::Cluster,
            Ok(other) => panic!("TOKKURI_TEST_STORE={other}: memory, sqlite, postgres or cluster"),
        }
    }

    /// Whether a finished task outlives its server.
    pub fn is_durable(self) -> bool {
        self != Self::Memory
    }
}

/// A server that is not started yet: its store, flags, environment and configuration.
#[derive(Clone, Debug)]
pub struct Bed {
    bin: PathBuf,
    store: Store,
    args: Vec<String>,
    env: Vec<(String, String)>,
    config: Option<String>,
    /// The database, once it is chosen: as the directory, it is that of all clones.
    database: Arc<OnceLock<String>>,
    dir: Arc<TempDir>,
}

impl Bed {
    /// A bed for the binary `bin`: tests pass `env!("CARGO_BIN_EXE_tokkuri-testbed")`. `TOKKURI_TESTBED` names another
    /// binary with the same flags, to run the tests against a release build, say.
    ///
    /// # Panics
    /// If there is no temporary directory to be had.
    pub fn new(bin: &str) -> Self {
        let bin = std::env::var_os("TOKKURI_TESTBED").map_or_else(|| PathBuf::from(bin), PathBuf::from);
        Self {
            bin,
            store: Store::from_env(),
            args: Vec::new(),
            env: Vec::new(),
            config: None,
            database: Arc::default(),
            dir: Arc::new(tempfile::tempdir().expect("a temporary directory")),
        }
    }

    /// Adds a flag or its value.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Where it is to listen for gRPC: a free loopback port unless this is said.
    #[must_use]
    pub fn grpc(self, address: &str) -> Self {
        self.arg("--grpc").arg(address)
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl ToString) -> Self {
        self.env.push((name.into(), value.to_string()));
        self
    }

    /// Sets one setting through its environment variable: `setting("tasks.ttl_ms", 300)`.
    #[must_use]
    pub fn setting(self, key: &str, value: impl ToString) -> Self {
        let name = format!("TOKKURI_{}", key.replace('.', "_").to_uppercase());
        self.env(name, value)
    }

    /// Gives the server a configuration file with this content (TOML).
    #[must_use]
    pub fn config(mut self, toml: impl Into<String>) -> Self {
        self.config = Some(toml.into());
        self
    }

    /// Overrides the store that the environment chose.
    #[must_use]
    pub fn store(mut self, store: Store) -> Self {
        self.store = store;
        self
    }

    /// One node on the Postgres database of this URL.
    #[must_use]
    pub fn on(mut self, url: impl Into<String>) -> Self {
        self.store = Store::Postgres;
        self.database = Arc::new(OnceLock::from(url.into()));
        self
    }

    /// Starts the server and waits until it is ready.
    ///
    /// Start it on the test's own thread: the kernel kills the server when that thread ends without having dropped it (the
    /// test runner was killed, say).
    ///
    /// # Panics
    /// If the server does not say within the deadline where it listens; with its log.
    pub fn start(self) -> Server {
        if self.store != Store::Cluster {
            return self.spawn().ready();
        }
        let starting: Vec<Starting> = (0..NODES).map(|_| self.clone().spawn()).collect();
        let mut nodes: Vec<Server> = starting.into_iter().map(Starting::ready).collect();
        let addresses = nodes.iter().map(|node| Some(node.http())).collect();
        let mut first = nodes.remove(0);
        first.others = nodes;
        first.balancer = Some(Balancer::start(Arc::new(Mutex::new(addresses))));
        first
    }

    /// Starts the process, whatever the store.
    pub(super) fn spawn(self) -> Starting {
        let mut command = self.command(&["--http", "127.0.0.1:0"]);
        let mut child = command.spawn().unwrap_or_else(|e| panic!("start {}: {e}", self.bin.display()));
        let log = Log::default();
        log.follow(child.stderr.take().expect("stderr is piped"));
        let ready = first_line(child.stdout.take().expect("stdout is piped"));
        let addresses = Addresses::nowhere();
        let server = Server { child, log, bed: self, addresses, exit: None, others: Vec::new(), balancer: None };
        Starting { server, ready }
    }

    /// Starts the server, which has to refuse: its exit code, and what it wrote to stderr.
    ///
    /// # Panics
    /// If it says on stdout that it is ready.
    pub fn refused(self) -> (Option<i32>, String) {
        let mut child = self.command(&["--http", "127.0.0.1:0"]).spawn().expect("start the server");
        // Ready or over: either ends this.
        let ready = first_line(child.stdout.take().expect("stdout is piped")).recv();
        if let Ok(line) = ready {
            // It is to be gone, not only disliked.
            let _ = child.kill();
            panic!("a server that has to refuse is ready: {line}");
        }
        let output = child.wait_with_output().expect("its end");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// The binary.
    pub fn bin(&self) -> &Path {
        &self.bin
    }

    /// The directory in which the server runs.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The file of the SQLite store.
    pub fn database(&self) -> PathBuf {
        self.dir.path().join("tokkuri.db")
    }

    /// The process to be, with all three streams of ours; `listen` says where it is reached.
    pub(super) fn command(&self, listen: &[&str]) -> Command {
        let mut command = Command::new(&self.bin);
        command.args(listen);
        for listener in ["--grpc", "--admin"] {
            if !self.args.iter().any(|arg| arg == listener) {
                command.args([listener, "127.0.0.1:0"]);
            }
        }
        command.arg("--store").arg(self.store_url());
        if let Some(toml) = &self.config {
            let file = self.dir.path().join("config.toml");
            // In one step: another node of the same bed may be reading it.
            let mut whole = tempfile::NamedTempFile::new_in(self.dir.path()).expect("a file");
            whole.write_all(toml.as_bytes()).expect("write the configuration");
            whole.persist(&file).expect("put the configuration in place");
            command.arg("--config").arg(file);
        }
        command.args(&self.args);
        // What the developer's shell sets must not change what is tested, except for where to record it.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("TOKKURI_") && name != "TOKKURI_TEST_TRACE" {
                command.env_remove(name);
            }
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command.current_dir(self.dir.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // SAFETY: prctl is a bare system call: it allocates nothing and takes no lock, as the child of a fork requires.
        unsafe {
            command.pre_exec(|| {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                Ok(())
            });
        }
        command
    }

    fn store_url(&self) -> String {
        match self.store {
            Store::Memory => "memory".into(),
            Store::Sqlite => format!("sqlite:{}", self.database().display()),
            Store::Postgres | Store::Cluster => self.database.get_or_init(|| Postgres::shared().url()).clone(),
        }
    }
}

/// A process that has not said yet where it listens.
#[derive(Debug)]
pub(super) struct Starting {
    server: Server,
    ready: mpsc::Receiver<String>,
}

impl Starting {
    /// Waits until it is ready.
    pub(super) fn ready(mut self) -> Server {
        match self.ready.recv_timeout(DEADLINE) {
            Ok(line) => {
                self.server.addresses = Addresses::parse(&line).unwrap_or_else(|| panic!("not a ready line: {line}"));
            }
            Err(_) => panic!("the server said nothing on stdout"),
        }
        self.server
    }
}

/// A running test bed. Dropping it kills the process, and prints its log if the test is failing.
#[derive(Debug)]
pub struct Server {
    child: Child,
    log: Log,
    bed: Bed,
    addresses: Addresses,
    exit: Option<ExitStatus>,
    /// The further nodes of a cluster.
    others: Vec<Server>,
    balancer: Option<Balancer>,
}

impl Server {
    /// The MCP endpoint.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.balancer.as_ref().map_or(self.addresses.http, Balancer::address))
    }

    /// Where it listens for MCP.
    pub fn http(&self) -> SocketAddr {
        self.addresses.http
    }

    /// Where it listens for gRPC; `None` where there is none.
    pub fn grpc(&self) -> Option<SocketAddr> {
        self.addresses.grpc
    }

    /// Where it listens for operators.
    pub fn admin(&self) -> Option<SocketAddr> {
        self.addresses.admin
    }

    /// The name of the node.
    pub fn node(&self) -> &str {
        &self.addresses.node
    }

    /// The store that it runs on.
    pub fn store(&self) -> Store {
        self.bed.store
    }

    /// A client of the modern era that declares everything.
    pub fn client(&self) -> Client {
        Client::new(self.url())
    }

    /// A client of the first node alone: for what each process has for itself, as its places to run. Any other node will do for
    /// whatever else is asked of the task, so that is what [`Server::client`] is for. Where there is one node, both are the same.
    pub fn near(&self) -> Client {
        Client::new(format!("http://{}/mcp", self.addresses.http))
    }

    /// A client of each node.
    pub fn clients(&self) -> impl Iterator<Item = Client> {
        self.each().map(Server::near)
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        1 + self.others.len()
    }

    /// All nodes, this one first.
    pub(super) fn each(&self) -> impl Iterator<Item = &Server> {
        std::iter::once(self).chain(&self.others)
    }

    /// What the server has logged until now; all nodes of a cluster, one after the other.
    pub fn log(&self) -> String {
        self.each().map(|node| node.log.text().clone()).collect()
    }

    /// How much memory the process holds now, in KiB.
    ///
    /// # Panics
    /// If the process is gone.
    pub fn resident_kib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("the process is there");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a process holds memory");
        line.trim().trim_end_matches(" kB").parse().expect("a number of kB")
    }

    /// The process's id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal, by pid; to all nodes.
    ///
    /// # Panics
    /// If a process has been waited for already: its pid may be another's.
    pub fn signal(&self, signal: i32) {
        for node in self.each() {
            assert!(node.exit.is_none(), "the server has exited");
            let pid = libc::pid_t::try_from(node.child.id()).expect("a pid fits pid_t");
            // SAFETY: a bare system call on a child that has not been waited for, so the pid is still its own.
            let sent = unsafe { libc::kill(pid, signal) };
            assert_eq!(sent, 0, "kill {pid}");
        }
    }

    /// Waits for the process to end, for those of all nodes; the status is that of the first whose end was not a success, if there
    /// is one.
    ///
    /// # Panics
    /// If one still runs after `within`.
    pub async fn exited(&mut self, within: Duration) -> ExitStatus {
        let start = Instant::now();
        let mut all = self.ended(start, within).await;
        for node in &mut self.others {
            let status = node.ended(start, within).await;
            all = if all.success() { status } else { all };
        }
        all
    }

    async fn ended(&mut self, since: Instant, within: Duration) -> ExitStatus {
        loop {
            if let Some(status) = self.exit {
                return status;
            }
            self.exit = self.child.try_wait().expect("wait for the server");
            assert!(self.exit.is_some() || since.elapsed() < within, "the server still runs after {within:?}");
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// SIGTERM: a graceful stop, which has to exit 0.
    ///
    /// # Panics
    /// If it still runs after `within`, or exits with anything else.
    pub async fn terminate(&mut self, within: Duration) {
        self.signal(libc::SIGTERM);
        let status = self.exited(within).await;
        assert_eq!(status.code(), Some(0), "SIGTERM drains and exits 0, not {status}");
    }

    /// SIGKILL: no farewell.
    pub async fn kill(&mut self) {
        self.signal(libc::SIGKILL);
        self.exited(DEADLINE).await;
    }

    /// Starts the same bed again (same store, flags and configuration; other ports). Ends the old processes first if need be.
    pub async fn restart(mut self) -> Server {
        if self.exit.is_none() {
            self.kill().await;
        }
        self.bed.clone().start()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.exit.is_none() {
            // Nothing to do about a failure here: the process is gone already, which is what we want.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        if thread::panicking() {
            eprintln!("--- log of the server\n{}--- end of the log", self.log.text());
        }
    }
}

#[derive(Debug)]
struct Addresses {
    http: SocketAddr,
    grpc: Option<SocketAddr>,
    admin: Option<SocketAddr>,
    node: String,
}

impl Addresses {
    fn nowhere() -> Self {
        Self { http: SocketAddr::from(([0, 0, 0, 0], 0)), grpc: None, admin: None, node: String::new() }
    }

    fn parse(line: &str) -> Option<Self> {
        let fields = line.trim_end().strip_prefix("listening ")?;
        let field = |name: &str| fields.split(' ').find_map(|f| f.strip_prefix(name)?.strip_prefix('='));
        let address = |name: &str| match field(name)? {
            "off" => Some(None),
            text => text.parse().ok().map(Some),
        };
        Some(Self {
            http: address("http")??,
            grpc: address("grpc")?,
            admin: address("admin")?,
            node: field("node")?.to_owned(),
        })
    }
}

/// What the process wrote to stderr, read by a thread so that it never blocks on a full pipe.
#[derive(Clone, Debug, Default)]
pub(super) struct Log(Arc<Mutex<String>>);

impl Log {
    pub(super) fn follow(&self, stderr: impl Read + Send + 'static) {
        let log = self.clone();
        thread::spawn(move || {
            for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
                let mut text = log.text();
                text.push_str(&String::from_utf8_lossy(&line));
                text.push('\n');
            }
        });
    }

    pub(super) fn text(&self) -> MutexGuard<'_, String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The first line; the rest is read and dropped, so that the process never blocks on a full pipe.
fn first_line(stdout: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
            let _ = sender.send(String::from_utf8_lossy(&line).into_owned());
        }
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ready_line_names_every_listener() {
        let ready = Addresses::parse("listening http=127.0.0.1:81 grpc=off admin=127.0.0.1:83 node=a-1\n").unwrap();
        assert_eq!(ready.http.port(), 81);
        assert_eq!(ready.grpc, None);
        assert_eq!(ready.admin.unwrap().port(), 83);
        assert_eq!(ready.node, "a-1");
        assert!(Addresses::parse("listening http=off grpc=off admin=off node=a").is_none());
        assert!(Addresses::parse("ready").is_none());
    }
}
