//! A throw-away Postgres: a cluster of its own in a temporary directory, on a free loopback port, run by an unprivileged
//! user; ended and removed when it is dropped, and also when the process that started it is killed.
//!
//! ```no_run
//! let postgres = tokkuri_tests::harness::Postgres::start();
//! let url = postgres.url(); // a fresh database per call
//! ```
//!
//! Durability is switched off for speed, which nobody can tell as long as the machine itself does not crash. Methods block:
//! each waits until what it does has happened.

use std::fs;
use std::io::Write as _;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{MetadataExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::{DEADLINE, LOOK_AGAIN};

/// The superuser of the cluster; everybody is trusted.
const USER: &str = "tokkuri";
/// Where Debian puts the server's commands; they are not on its `PATH`.
const DEBIAN: &str = "/usr/lib/postgresql/15/bin";
/// Who runs it if this is root, which the server's commands refuse to be run by.
const UNPRIVILEGED: &str = "postgres";
/// Below the range that the kernel hands out by itself: nobody gets the port while the server is away.
const PORTS: std::ops::Range<u32> = 20_000..32_000;

/// How a cluster is started.
#[derive(Clone, Debug, Default)]
pub struct Options {
    fsync: bool,
    settings: Vec<String>,
}

impl Options {
    /// Writes through to the disk, as in production.
    #[must_use]
    pub fn fsync(mut self) -> Self {
        self.fsync = true;
        self
    }

    /// Adds a setting of `postgresql.conf`.
    #[must_use]
    pub fn setting(mut self, name: &str, value: impl std::fmt::Display) -> Self {
        self.settings.push(format!("{name}={value}"));
        self
    }

    /// Starts a cluster.
    ///
    /// # Panics
    /// If there are no server commands, or it does not come up; with its log.
    pub fn start(self) -> Postgres {
        let bin = commands();
        let dir = tempfile::Builder::new().prefix("tokkuri-pg").tempdir().expect("a temporary directory");
        let user = User::unprivileged();
        if let Some(user) = user {
            chown(dir.path(), Some(user.uid), Some(user.gid)).expect("give the directory away");
        }
        let dir = dir.keep();
        let janitor = Janitor::start(&dir);
        let postgres = Postgres {
            bin,
            user,
            port: free_port(),
            options: self,
            databases: AtomicU32::new(0),
            postmaster: Mutex::new(None),
            janitor: Some(janitor),
            dir,
        };
        postgres.initialize();
        postgres.resume_service();
        postgres
    }
}

/// A running cluster.
#[derive(Debug)]
pub struct Postgres {
    bin: PathBuf,
    dir: PathBuf,
    user: Option<User>,
    port: u16,
    options: Options,
    databases: AtomicU32,
    postmaster: Mutex<Option<Child>>,
    /// `None` only while it is dropped.
    janitor: Option<Janitor>,
}

impl Postgres {
    /// Starts a cluster of its own.
    ///
    /// # Panics
    /// As [`Options::start`].
    pub fn start() -> Self {
        Options::default().start()
    }

    /// The cluster that all tests of this process share, started by the first: for tests that leave the server alone.
    /// It ends with the process.
    ///
    /// # Panics
    /// As [`Options::start`].
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Postgres> = OnceLock::new();
        // Statics are never dropped; the janitor's standard input ends with the process all the same.
        SHARED.get_or_init(Self::start)
    }

    /// The URL of a new, empty database.
    ///
    /// # Panics
    /// If it cannot be made.
    pub fn url(&self) -> String {
        let name = format!("t{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.query("postgres", &format!("create database {name}"));
        self.url_of(&name)
    }

    /// What `psql` prints for a statement in the database of this URL: a line a row, `|` between columns.
    ///
    /// # Panics
    /// If it fails.
    pub fn psql(&self, url: &str, sql: &str) -> String {
        let name = url.rsplit('/').next().unwrap_or_default();
        self.query(name, sql)
    }

    /// The port that it listens on, on the loopback address; the same after every restart.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL of a database of that name, which may not be there.
    pub fn url_of(&self, database: &str) -> String {
        format!("postgres://{USER}@127.0.0.1:{}/{database}", self.port)
    }

    /// A fast stop (connections are cut, transactions rolled back), then a start.
    ///
    /// # Panics
    /// If it does not stop or does not come up.
    pub fn restart(&self) {
        self.stop();
        self.resume_service();
    }

    /// A fast stop. [`Postgres::resume_service`] starts it again.
    ///
    /// # Panics
    /// If it does not stop.
    pub fn stop(&self) {
        self.end(libc::SIGINT);
    }

    /// An immediate stop, as a crash: nothing is written any more. [`Postgres::resume_service`] starts it again.
    ///
    /// # Panics
    /// If it does not stop.
    pub fn kill(&self) {
        self.end(libc::SIGQUIT);
    }

    /// Starts the server after [`Postgres::stop`] or [`Postgres::kill`], and waits until it serves.
    ///
    /// # Panics
    /// If it does not come up; with its log.
    pub fn resume_service(&self) {
        let mut postmaster = self.postmaster();
        assert!(postmaster.is_none(), "it runs");
        let log = fs::OpenOptions::new().create(true).append(true).open(self.log_file()).expect("its log");
        let mut command = self.command("postgres");
        command.arg("-D").arg(self.data());
        let durable = if self.options.fsync { "on" } else { "off" };
        let settings = [
            "listen_addresses=127.0.0.1".to_owned(),
            format!("port={}", self.port),
            format!("unix_socket_directories={}", self.dir.display()),
            format!("fsync={durable}"),
            format!("full_page_writes={durable}"),
            "max_connections=400".into(),
            "shared_buffers=64MB".into(),
            "log_line_prefix=%m [%p] %d ".into(),
        ];
        for setting in settings.iter().chain(&self.options.settings) {
            command.arg("-c").arg(setting);
        }
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("its log")).stderr(log);
        let child = postmaster.insert(command.spawn().expect("start the server"));
        let start = Instant::now();
        while !self.serves(child.id()) {
            let ended = child.try_wait().expect("look at the server");
            assert!(ended.is_none() && start.elapsed() < DEADLINE, "it did not come up: {}", self.log());
            thread::sleep(LOOK_AGAIN);
        }
    }

    /// Freezes all its processes: connections stay, nothing is answered.
    ///
    /// # Panics
    /// If it does not run.
    pub fn pause(&self) {
        let postmaster = self.postmaster();
        let pid = postmaster.as_ref().expect("it runs").id();
        send(pid, libc::SIGSTOP);
        // Only it makes new ones, so now these are all; one that ends by itself meanwhile needs no signal.
        self.processes().into_iter().for_each(|pid| send(pid, libc::SIGSTOP));
    }

    /// Lets all its processes go on after [`Postgres::pause`].
    pub fn resume(&self) {
        self.processes().into_iter().for_each(|pid| send(pid, libc::SIGCONT));
    }

    /// What it has logged.
    pub fn log(&self) -> String {
        fs::read(self.log_file()).map(|log| String::from_utf8_lossy(&log).into_owned()).unwrap_or_default()
    }

    fn initialize(&self) {
        let mut command = self.command("initdb");
        command.arg("-D").arg(self.data()).args(["-U", USER, "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"]);
        let output = command.stdin(Stdio::null()).output().expect("run initdb");
        assert!(output.status.success(), "initdb: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn query(&self, database: &str, sql: &str) -> String {
        let mut command = self.command("psql");
        command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", &self.url_of(database), "-c", sql]);
        let output = command.stdin(Stdio::null()).output().expect("run psql");
        assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    fn end(&self, signal: i32) {
        let mut postmaster = self.postmaster();
        let mut child = postmaster.take().expect("it runs");
        // It has not been waited for: the process id is still its own.
        send(child.id(), signal);
        let start = Instant::now();
        while child.try_wait().expect("look at the server").is_none() {
            assert!(start.elapsed() < DEADLINE, "it did not stop: {}", self.log());
            thread::sleep(LOOK_AGAIN);
        }
    }

    /// Whether this postmaster says that it serves.
    fn serves(&self, pid: u32) -> bool {
        let file = fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
        let mut lines = file.lines();
        lines.next() == Some(pid.to_string().as_str()) && lines.next_back().is_some_and(|line| line.trim() == "ready")
    }

    /// All its processes: they work in its data directory, and nobody else does.
    fn processes(&self) -> Vec<u32> {
        let data = self.data();
        let processes = fs::read_dir("/proc").expect("the processes");
        let ids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        ids.filter(|id| fs::read_link(format!("/proc/{id}/cwd")).is_ok_and(|cwd| cwd == data)).collect()
    }

    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(self.bin.join(name));
        if let Some(user) = self.user {
            command.uid(user.uid).gid(user.gid);
        }
        command.env_clear().env("LC_ALL", "C").current_dir(&self.dir);
        command
    }

    fn postmaster(&self) -> MutexGuard<'_, Option<Child>> {
        self.postmaster.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    fn log_file(&self) -> PathBuf {
        self.dir.join("log")
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if thread::panicking() {
            let log = self.log();
            let lines: Vec<&str> = log.lines().collect();
            eprintln!("--- end of Postgres's log\n{}\n---", lines[lines.len().saturating_sub(20)..].join("\n"));
        }
        if let Some(janitor) = self.janitor.take() {
            janitor.finish();
        }
        if let Some(mut child) = self.postmaster().take() {
            // Ended by the janitor; only its entry is left.
            let _ = child.wait();
        }
    }
}

/// A process beside this one that tidies up when this one is done, or dead.
#[derive(Debug)]
struct Janitor {
    child: Child,
    stdin: ChildStdin,
}

impl Janitor {
    fn start(dir: &Path) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", include_str!("postgres/janitor.sh"), "janitor"]).arg(dir);
        // A group of its own: what ends the tests' group is to leave it alive.
        command.stdin(Stdio::piped()).process_group(0);
        let mut child = command.spawn().expect("start sh");
        let stdin = child.stdin.take().expect("it is piped");
        Self { child, stdin }
    }

    fn finish(mut self) {
        let _ = self.stdin.flush();
        drop(self.stdin);
        let _ = self.child.wait();
    }
}

/// A user of this machine.
#[derive(Clone, Copy, Debug)]
struct User {
    uid: u32,
    gid: u32,
}

impl User {
    /// Who the server runs as, if not as ourselves.
    fn unprivileged() -> Option<Self> {
        let own = fs::metadata("/proc/self").expect("this process").uid();
        if own != 0 {
            return None;
        }
        let users = fs::read_to_string("/etc/passwd").expect("the users of this machine");
        let user = users.lines().find_map(|line| {
            let mut fields = line.split(':');
            (fields.next() == Some(UNPRIVILEGED)).then_some(())?;
            Some(Self { uid: fields.nth(1)?.parse().ok()?, gid: fields.next()?.parse().ok()? })
        });
        Some(user.unwrap_or_else(|| panic!("Postgres does not run as root, and there is no user {UNPRIVILEGED}")))
    }
}

/// The directory of the server's commands.
fn commands() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::iter::once(PathBuf::from(DEBIAN)).chain(std::env::split_paths(&path));
    let found = places.into_iter().find(|place| place.join("initdb").exists() && place.join("postgres").exists());
    found.unwrap_or_else(|| {
        panic!("no Postgres server in {DEBIAN} or on PATH; install it (Debian: apt-get install postgresql-15)")
    })
}

fn free_port() -> u16 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).subsec_nanos();
    let first = std::process::id().wrapping_mul(7919).wrapping_add(now);
    let ports = (0..100).map(|n: u32| PORTS.start + first.wrapping_add(n * 97) % (PORTS.end - PORTS.start));
    let mut ports = ports.filter_map(|port| u16::try_from(port).ok());
    ports.find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok()).expect("a free port")
}

fn send(pid: u32, signal: i32) {
    let pid = libc::pid_t::try_from(pid).expect("a process id fits");
    // SAFETY: a bare system call. A process that has ended by itself is the one thing that can go wrong, and is fine.
    unsafe { libc::kill(pid, signal) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_gives_databases_survives_restarts_and_leaves_nothing() {
        let postgres = Postgres::start();
        let (url, other) = (postgres.url(), postgres.url());
        assert_ne!(url, other);
        postgres.psql(&url, "create table t (n bigint); insert into t values (7)");
        postgres.restart();
        assert_eq!(postgres.psql(&url, "select n, n + 1 from t"), "7|8");
        postgres.kill();
        assert!(postgres.processes().is_empty());
        postgres.resume_service();
        assert_eq!(postgres.psql(&url, "select n from t"), "7");
        assert_eq!(postgres.psql(&other, "select count(*) from pg_class where relname = 't'"), "0");

        postgres.pause();
        thread::scope(|scope| {
            let query = scope.spawn(|| postgres.psql(&url, "select n from t"));
            thread::sleep(Duration::from_millis(200)); // nothing happens meanwhile: that is what is looked at
            assert!(!query.is_finished());
            postgres.resume();
            assert_eq!(query.join().unwrap(), "7");
        });

        // Dropped while it is frozen: the hardest case.
        postgres.pause();
        let (dir, data) = (postgres.dir.clone(), postgres.data());
        drop(postgres);
        assert!(!dir.exists());
        let left = fs::read_dir("/proc").unwrap().flatten();
        assert_eq!(left.filter(|p| fs::read_link(p.path().join("cwd")).is_ok_and(|cwd| cwd == data)).count(), 0);
    }
}
