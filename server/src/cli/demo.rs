//! `tokkuri demo`: a server and a client of it in one terminal, on the files that are there.
//!
//! The server is started as any program would start it; everything after that goes over HTTP, as with a server elsewhere. Each
//! step says what it does and is checked: the command exits with 0 only if all of it went as it should.

mod place;
mod player;
mod steps;

use std::future::Future;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use self::player::Player;
use crate::app::{ENDPOINT, Settings, Tokkuri};
use crate::cli::interrupt::Interrupts;
use crate::cli::{Exit, Stop};
use crate::client::Client;
use crate::store::SqliteStore;

pub(crate) async fn run() -> anyhow::Result<Exit> {
    let mut interrupts = Interrupts::listen();
    let root = std::env::current_dir()
        .map_err(|error| Stop::new(Exit::Usage, format!("the current directory cannot be used: {error}")))?;
    tokio::select! {
        ended = play(&root) => ended.map(|()| Exit::Ok),
        // What was begun is dropped, and cleans up after itself.
        () = interrupts.next() => Ok(Exit::Interrupted),
    }
}

async fn play(root: &Path) -> anyhow::Result<()> {
    let began = Instant::now();
    let store = StoreFile::new()?;
    let server = Serving::start(root, &store).await?;
    say("tokkuri demo: tools of an MCP server as tasks, on your own files")?;
    say("")?;
    say(&format!("A server has started in this process at {}.", server.url))?;
    say("Everything below is said to it over HTTP, by a client that knows nothing else of it.")?;
    say(&format!("Its tools work below {} and change nothing that is yours.", root.display()))?;

    let player = Player::new(Client::new(&server.url, None)?);
    player.expect_tools().await?;
    let (finished, digest) = steps::a_call_becomes_a_task(&player).await?;
    steps::a_task_asks(&player, root).await?;
    steps::a_task_is_cancelled(&player, root).await?;
    steps::without_the_extension(&Player::new(Client::new(&server.url, None)?.without_tasks()), &digest).await?;
    let waiting = steps::before_the_restart(&player).await?;
    server.stop().await?;
    let server = Serving::start(root, &store).await?;
    steps::after_the_restart(&Player::new(Client::new(&server.url, None)?), &finished, &digest, &waiting).await?;
    server.stop().await?;

    say("")?;
    say(&format!(
        "All of it went as it should, in {:.1} s. The same by hand, in two terminals:",
        began.elapsed().as_secs_f64()
    ))?;
    say("  tokkuri serve --root .")?;
    say("  tokkuri call export_files --arg path=. --arg to=files.tar.gz")
}

/// A server in this process.
struct Serving {
    url: String,
    stop: CancellationToken,
    serving: tokio::task::JoinHandle<std::io::Result<()>>,
}

impl Serving {
    /// Starts it as an embedding would: tools, a listener, `serve`.
    async fn start(root: &Path, store: &StoreFile) -> anyhow::Result<Self> {
        let tools = crate::demo::tools(root).map_err(|error| Stop::new(Exit::Usage, error.to_string()))?;
        let store = SqliteStore::open(&store.path())?;
        // What still waits when the server stops is not waited for: the demo shows what becomes of it.
        let settings =
            Settings { shutdown: Duration::ZERO, state_secret: Some(store.secret().to_vec()), ..Settings::default() };
        let server = Tokkuri::new().tools(tools).settings(settings).store(Arc::new(store)).build()?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}{ENDPOINT}", listener.local_addr()?);
        let stop = CancellationToken::new();
        let serving = tokio::spawn(server.serve(listener, stop.clone().cancelled_owned()));
        Ok(Self { url, stop, serving })
    }

    async fn stop(self) -> anyhow::Result<()> {
        self.stop.cancel();
        match limited("the server to stop", self.serving).await? {
            Ok(served) => Ok(served?),
            Err(error) => Err(failed(format!("the server stopped by itself: {error}")).into()),
        }
    }
}

/// The file that the tasks are kept in, outside of what the tools work on; removed at the end.
struct StoreFile(PathBuf);

impl StoreFile {
    fn new() -> anyhow::Result<Self> {
        let directory = std::env::temp_dir().join(format!("tokkuri-demo-{:016x}", getrandom::u64()?));
        std::fs::create_dir(&directory)?;
        Ok(Self(directory))
    }

    fn path(&self) -> PathBuf {
        self.0.join("tasks.db")
    }
}

impl Drop for StoreFile {
    fn drop(&mut self) {
        // What cannot be removed is in the system's own place for what may be removed.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// How long any one thing may take. All of them are a matter of moments; this is for machines that are busy with others.
const LIMIT: Duration = Duration::from_secs(60);

/// Waits for something, but not for ever.
async fn limited<T>(what: &str, work: impl Future<Output = T>) -> Result<T, Stop> {
    tokio::time::timeout(LIMIT, work).await.map_err(|_| failed(format!("expected {what} within {} s", LIMIT.as_secs())))
}

fn failed(text: impl Into<String>) -> Stop {
    Stop::new(Exit::Failed, text)
}

/// The story goes to standard output, the bars to standard error.
fn say(line: &str) -> anyhow::Result<()> {
    writeln!(std::io::stdout().lock(), "{}", crate::cli::show::printable(line))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn it_plays_through_and_leaves_nothing_behind() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("d")).unwrap();
        std::fs::write(root.path().join("d/a"), "abc").unwrap();
        play(root.path()).await.unwrap();
        let left: Vec<_> = std::fs::read_dir(root.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["d"]);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn an_empty_directory_is_no_failure() {
        let root = tempfile::tempdir().unwrap();
        play(root.path()).await.unwrap();
    }
}
