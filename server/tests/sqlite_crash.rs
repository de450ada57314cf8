//! A process that writes to a SQLite store is killed, again and again: whatever it had been answered is there afterwards.
//!
//! This program is also its own child: with a path in the environment it opens the store there, inserts and commits from many
//! tasks at once, and says each answer on its standard output as soon as it has it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use tokkuri_core::Text;
use tokkuri_core::access::Owner;
use tokkuri_core::id::{Attempt, NodeId, Revision, TaskId};
use tokkuri_core::store::{Outcome, Request};
use tokkuri_core::task::{self, Draft, Task};
use tokkuri_core::wire::Json;
use tokkuri_server::store::sqlite::OpenError;
use tokkuri_server::store::{SqliteStore, Store};

const PATH: &str = "TOKKURI_CRASH_CHILD";
const ROUNDS: u64 = 10;
const WRITERS: u64 = 16;

#[tokio::main(flavor = "multi_thread", worker_threads = 4)]
async fn main() {
    match std::env::var_os(PATH) {
        Some(path) => write_for_ever(Path::new(&path)).await,
        None => a_killed_writer_loses_nothing_that_was_answered().await,
    }
}

async fn a_killed_writer_loses_nothing_that_was_answered() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("tokkuri.db");
    let mut answered = BTreeMap::new();
    for round in 1..=ROUNDS {
        let (mut child, mut lines) = start(&path);
        let mut heard = 0;
        // Killed at another point each time, in the middle of whatever it does.
        while heard < 100 + 37 * round {
            let line = lines.next().expect("the child writes until it is killed").expect("text");
            heard += note(&mut answered, &line);
        }
        let refused = SqliteStore::open(&path).expect_err("the child has the file");
        assert!(matches!(refused, OpenError::InUse { pid: Some(pid), .. } if pid == child.id()), "{refused}");
        child.kill().expect("killed");
        child.wait().expect("ended");
        // What it said before it died, it had been answered.
        for line in lines.map_while(Result::ok) {
            note(&mut answered, &line);
        }
        let store = SqliteStore::open(&path).expect("the file of a killed process");
        for (id, revision) in &answered {
            let loaded = match store.carry_out(Request::Load { id: *id }).answer().await.outcome {
                Outcome::Loaded(Some(task)) => task,
                outcome => panic!("round {round}: {id} was answered at {revision:?}, and now: {outcome:?}"),
            };
            assert!(
                loaded.revision >= *revision,
                "round {round}: {id} was answered at {revision:?}, and is {loaded:?}"
            );
            assert_eq!(task::invariant::check(&loaded), Ok(()));
        }
    }
    println!("a_killed_writer_loses_nothing_that_was_answered ... ok ({} tasks, {ROUNDS} kills)", answered.len());
}

fn start(path: &Path) -> (Child, impl Iterator<Item = std::io::Result<String>>) {
    let program = std::env::current_exe().expect("this program");
    let mut child = Command::new(program).env(PATH, path).stdout(Stdio::piped()).spawn().expect("a child");
    let lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    (child, lines)
}

/// Takes down one answer; a line that the kill cut off is none.
fn note(answered: &mut BTreeMap<TaskId, Revision>, line: &str) -> u64 {
    let parsed = line.strip_suffix('.').and_then(|line| line.split_once(' '));
    let Some((id, revision)) = parsed else { return 0 };
    let id = id.parse().expect("an id");
    let revision = Revision(revision.parse().expect("a revision"));
    let known = answered.entry(id).or_insert(revision);
    *known = revision.max(*known);
    1
}

async fn write_for_ever(path: &Path) {
    let store = Arc::new(SqliteStore::open(path).expect("the file"));
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let store = Arc::clone(&store);
        writers.spawn(async move {
            loop {
                let draft = Box::new(draft(writer));
                let inserted = store.carry_out(Request::Insert { draft, limit: None }).answer().await;
                let Outcome::Inserted(task) = inserted.outcome else { panic!("{inserted:?}") };
                say(&task);
                let mut next = Task::clone(&task);
                let progress = task::Command::Progress { by: Attempt::FIRST, message: "half".into() };
                next.apply(inserted.now, progress, &mut Vec::new()).expect("a live task");
                let next = Arc::new(next);
                let commit = Request::Commit { expected: task.revision, task: Arc::clone(&next) };
                assert_eq!(store.carry_out(commit).answer().await.outcome, Outcome::Committed);
                say(&next);
            }
        });
    }
    let ended = writers.join_next().await;
    panic!("a writer writes for ever, but for a parent that no longer listens: {ended:?}");
}

fn say(task: &Task<Json>) {
    let line = format!("{} {}.\n", task.id, task.revision.0);
    std::io::stdout().lock().write_all(line.as_bytes()).expect("somebody listens");
}

fn draft(writer: u64) -> Draft<Json> {
    let mut id = [0; 18];
    getrandom::fill(&mut id).expect("randomness");
    let principal = format!("{writer}").into();
    let owner = Owner { principal, server: "crash".into(), client: Text::default(), resource: Text::default() };
    let arguments = Json::parse("{}").expect("JSON");
    Draft {
        keep_ms: 1_000,
        max_questions: 1,
        ..Draft::new(TaskId::from_bytes(id), owner, "tool", arguments, NodeId(1))
    }
}
