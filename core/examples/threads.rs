//! A task server in one file, on plain threads and channels: what an embedding of tokkuri-core has to do, and nothing else.
//!
//! ```sh
//! cargo run -p tokkuri-core --example threads
//! ```
//!
//! Core decides; a host has three duties, and each is one function here:
//!
//! 1. **Carry out store requests**: [`keep_store`], a thread around the reference store with the wall clock.
//! 2. **Feed procedures**: [`Node::drive`], the loop that every request goes through.
//! 3. **Spawn and stop runs**: [`Node::carry_out`] spawns, [`Run`] is how a tool asks, reports and learns that it has to stop.
//!
//! Beside them [`housekeeping`] does what no request asks for: it renews the lease, looks at the store for signals that were
//! lost, ends what has expired and takes over what dead nodes left.
//!
//! The client at the bottom is a script instead of a wire: it creates a task, answers its question and reads its result, then
//! creates another and cancels it.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokkuri_core::access::{Caller, Owner, Scopes};
use tokkuri_core::host::Watch;
use tokkuri_core::id::{Attempt, Key, NodeId, TaskId};
use tokkuri_core::payload::Capabilities;
use tokkuri_core::procedure::{
    After, Answered, Create, Created, Expire, Input, Procedure, Read, Seen, Step, TakeOver, Write, Written,
};
use tokkuri_core::run::{ProgressDue, Stop};
use tokkuri_core::signal::Registry;
use tokkuri_core::store::{self, Answer, Load, Outcome, Request, Shelf};
use tokkuri_core::task::{Command, Draft, Effect, Fault, Status, Task};
use tokkuri_core::time::Millis;
use tokkuri_core::wire::{CreateTaskResult, DetailedTask, Json};

/// How often the node renews its lease and looks at the store, and how long others think it alive.
const HOUSEKEEPING: Duration = Duration::from_millis(200);
const LEASE_MS: u64 = 5_000;

// ---------------------------------------------------------------------------------------------------------------- the store

/// A request to the store, and where its answer goes.
type Ask = (Request<Json>, Sender<Answer<Json>>);

/// The first duty. The store alone reads a clock; all that procedures know of time is in its answers.
fn keep_store(asked: &Receiver<Ask>) {
    let mut shelf = Shelf::default();
    let mut last = Millis(0);
    for (request, reply_to) in asked {
        // A wall clock may be set back, the store's time may not.
        last = last.max(wall_clock());
        let answer = shelf.carry_out(last, request);
        // Whoever asked may have gone.
        let _ = reply_to.send(answer);
    }
}

fn wall_clock() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

// ----------------------------------------------------------------------------------------------------------------- the node

/// What all threads of this node share.
struct Node {
    id: NodeId,
    store: Sender<Ask>,
    registry: Registry<Json>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Node {
    fn ask(&self, request: Request<Json>) -> Answer<Json> {
        let (reply_to, reply) = mpsc::channel();
        self.store.send((request, reply_to)).expect("the store outlives the node");
        reply.recv().expect("the store answers everything")
    }

    /// The second duty: do what the procedure says, tell it what came of it, until it is done. What has to happen happens
    /// before the reply is given.
    fn drive<P: Procedure<Payload = Json>>(self: &Arc<Self>, mut procedure: P) -> P::Reply {
        let mut input = Input::Begin;
        loop {
            input = match procedure.step(input) {
                Step::Store(request) => Input::Store(self.ask(request)),
                Step::Pause { ms } => {
                    thread::sleep(Duration::from_millis(ms));
                    Input::Paused
                }
                Step::Host(local) => {
                    self.registry.local(local);
                    Input::Host
                }
                Step::Done { reply, after } => {
                    for it in after {
                        self.carry_out(it);
                    }
                    return reply;
                }
            };
        }
    }

    /// The third duty: what has to happen now that a change is stored.
    fn carry_out(self: &Arc<Self>, After { id, seen, effects }: After<Json>) {
        // Runs learn from readings: this alone delivers answers and stops to the runs of this node.
        self.registry.observe(id, &seen);
        for effect in effects {
            match (effect, &seen) {
                (Effect::Start { node, .. }, Seen::Task(task)) if node == self.id && self.registry.start(task) => {
                    let (node, task) = (Arc::clone(self), Arc::clone(task));
                    let run = thread::spawn(move || Run { node, id: task.id, attempt: task.attempt }.run(&task));
                    self.threads.lock().unwrap_or_else(PoisonError::into_inner).push(run);
                }
                // With several nodes, the other node would be told here: that the task has a newer revision. It may be lost.
                (Effect::Start { .. } | Effect::Signal { .. }, _) => {}
                // Followers would be told here, and an upstream's task cancelled.
                (Effect::Publish | Effect::Release { .. }, _) => {}
            }
        }
    }
}

/// What no request asks for. Ends when the other end of `stop` is dropped.
fn housekeeping(node: &Arc<Node>, stop: &Receiver<()>) {
    let mut watch = Watch::new(node.id);
    while stop.recv_timeout(HOUSEKEEPING) == Err(RecvTimeoutError::Timeout) {
        node.ask(Request::Renew { node: node.id, load: Load::default(), lease_ms: LEASE_MS });

        let looked = node.ask(watch.request());
        if let Outcome::Touched(touched) = looked.outcome {
            for (id, revision) in touched {
                if node.registry.is_behind(id, revision)
                    && let Outcome::Loaded(task) = node.ask(Request::Load { id }).outcome
                {
                    node.registry.observe(id, &task.map_or(Seen::Gone, Seen::Task));
                }
            }
            watch.answered(looked.now);
        }
        node.registry.clock(looked.now);

        // Both say when the store is away: the next round comes soon enough.
        let _ = node.drive(Expire::new(100));
        let _ = node.drive(TakeOver::new(Some(node.id), "the node that ran the task was lost".into(), 100));
    }
}

// ------------------------------------------------------------------------------------------------------------------ the run

/// One attempt at running a tool, as the tool sees it.
struct Run {
    node: Arc<Node>,
    id: TaskId,
    attempt: Attempt,
}

/// Why a tool ends without a result.
enum Ended {
    /// It has to stop, and whatever it would return is of no interest.
    Stopped(Stop),
    /// It failed.
    Failed(Fault<Json>),
}

impl Run {
    /// Runs the tool and stores how it ended; then, and only then, the run leaves the table.
    fn run(self, task: &Task<Json>) {
        let arguments = task.live().map(|live| live.arguments.clone());
        let (id, by) = (self.id, self.attempt);
        // A tool that panics has failed; what it panicked with is nothing for the client to see.
        let returned = catch_unwind(AssertUnwindSafe(|| greet(&self, arguments.as_ref())))
            .unwrap_or_else(|_| Err(Ended::Failed(Fault::internal("the tool failed"))));
        let command = match returned {
            Ok(result) => {
                let message = self.node.registry.finish(id, by);
                Some(Command::Complete { by, result, message })
            }
            Err(Ended::Failed(fault)) => Some(Command::Fail { by, fault }),
            Err(Ended::Stopped(why)) => {
                println!("run    {id}: told to stop ({why:?})");
                None
            }
        };
        if let Some(command) = command {
            // Tried until it is stored, or another end came first.
            self.node.drive(Write::end(id, command));
        }
        self.node.registry.release(id, by);
    }

    /// Asks the client something and waits for the answer, or for the stop.
    fn ask(&self, key: &str, request: Json) -> Result<Json, Ended> {
        let key = Key::from(key);
        let ask = Command::Ask { by: self.attempt, key: key.clone(), request };
        match self.node.drive(Write::question(self.id, ask)) {
            Written::Done(_) => {}
            Written::Rejected { why, .. } => return Err(self.refused(&why.to_string())),
            Written::Absent | Written::LacksScope { .. } | Written::Unavailable(_) => {
                return Err(self.refused("the question could not be put"));
            }
        }
        let mut waiter = self.node.registry.waiter(self.id, self.attempt);
        wait(|cx| waiter.poll_answer(&key, cx)).map_err(Ended::Stopped)
    }

    /// A refused write of a run that has to stop means only that.
    fn refused(&self, why: &str) -> Ended {
        match self.node.registry.stop(self.id, self.attempt) {
            Some(stop) => Ended::Stopped(stop),
            None => Ended::Failed(Fault::internal(why)),
        }
    }

    /// Says how far the tool is. It is written at most every 250 ms; what is left over is written with the end.
    fn progress(&self, message: &str) {
        let Node { registry, .. } = &*self.node;
        registry.progress(self.id, self.attempt, message.into());
        let now = wall_clock();
        let due = registry.waiter(self.id, self.attempt).poll_progress(now, &mut Context::from_waker(Waker::noop()));
        if let Poll::Ready(ProgressDue::Write(message)) = due {
            self.node.drive(Write::report(self.id, Command::Progress { by: self.attempt, message }));
            registry.progress_written(self.id, self.attempt);
        }
    }
}

/// The tool: greets whoever the client says.
fn greet(run: &Run, _arguments: Option<&Json>) -> Result<Json, Ended> {
    let broken = |error: serde_json::Error| Ended::Failed(Fault::internal(error.to_string()));
    run.progress("waiting to be told a name");
    let question = serde_json::json!({"method": "elicitation/create", "params": {"message": "Whom shall I greet?",
        "requestedSchema": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}}});
    let answer = run.ask("name", Json::from(&question))?;
    run.progress("greeting");
    let answer: serde_json::Value = answer.read().map_err(broken)?;
    let text = match answer["content"]["name"].as_str() {
        Some(name) => format!("hello {name}"),
        None => "declined".to_owned(),
    };
    Ok(Json::from(&serde_json::json!({"content": [{"type": "text", "text": text}], "isError": false})))
}

/// Polls until it is ready, and parks this thread in between. Whoever changes the run's state unparks it.
fn wait<T>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut cx = Context::from_waker(&waker);
    loop {
        match poll(&mut cx) {
            Poll::Ready(it) => return it,
            Poll::Pending => thread::park(),
        }
    }
}

// --------------------------------------------------------------------------------------------------------------- the client

/// A client that creates tasks through this node.
struct Client {
    node: Arc<Node>,
    caller: Caller,
}

impl Client {
    /// `tools/call` that becomes a task.
    fn call(&self) -> TaskId {
        let owner = self.caller.owner.clone();
        let draft = Draft {
            capabilities: Capabilities { form: true, ..Capabilities::default() },
            ttl_ms: 60_000,
            poll_interval_ms: 20,
            keep_ms: 10_000,
            max_questions: 8,
            ..Draft::new(fresh_id(), owner, "greet", Json::from(&serde_json::json!({})), self.node.id)
        };
        match self.node.drive(Create::new(draft, Some(10))) {
            Created::Task(task) => {
                println!("create {}", text(&CreateTaskResult(&task)));
                task.id
            }
            other => panic!("the store is here and empty: {other:?}"),
        }
    }

    /// `tasks/get`, as often as the task's `pollIntervalMs` allows, until it has this status.
    fn poll_until(&self, id: TaskId, status: Status) -> Arc<Task<Json>> {
        loop {
            match self.node.drive(Read::new(id, self.caller.clone())) {
                Answered::Task(task) if task.status() == status => {
                    println!("get    {}", text(&DetailedTask(&task)));
                    return task;
                }
                Answered::Task(task) if task.status().is_terminal() => panic!("it ended otherwise: {task:?}"),
                Answered::Task(task) => thread::sleep(Duration::from_millis(task.origin.poll_interval_ms)),
                other => panic!("its owner may read it: {other:?}"),
            }
        }
    }

    /// `tasks/update`.
    fn answer(&self, id: TaskId, key: &str, answer: serde_json::Value) -> Written<Json> {
        println!("update {id}: {answer}");
        let answers = BTreeMap::from([(key.into(), Json::from(&answer))]);
        self.node.drive(Write::answers(id, self.caller.clone(), answers))
    }

    /// `tasks/cancel`.
    fn cancel(&self, id: TaskId) -> Written<Json> {
        println!("cancel {id}");
        self.node.drive(Write::cancel(id, self.caller.clone()))
    }
}

/// A name that nobody guesses. A server takes 18 bytes of the operating system's randomness; the standard library has none to
/// give, but seeds its hashers with it.
fn fresh_id() -> TaskId {
    let mut bytes = [0; 18];
    for chunk in bytes.chunks_mut(8) {
        let random = RandomState::new().hash_one(0_u8).to_le_bytes();
        chunk.copy_from_slice(&random[..chunk.len()]);
    }
    TaskId::from_bytes(bytes)
}

fn text(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("tasks have a form in JSON")
}

fn main() {
    let (store, asked) = mpsc::channel();
    let store_thread = thread::spawn(move || keep_store(&asked));
    let id = NodeId::drawn(RandomState::new().hash_one("a node that starts again is another one"));
    let node = Arc::new(Node { id, store, registry: Registry::new(4, id), threads: Mutex::default() });
    // Before the first task: a node without a lease is thought dead.
    let joining = store::Node { id, name: "threads".into(), address: None, version: env!("CARGO_PKG_VERSION").into() };
    node.ask(Request::Join { node: Box::new(joining), lease_ms: LEASE_MS });
    let (stop, stopped) = mpsc::channel::<()>();
    let housekeeper = thread::spawn({
        let node = Arc::clone(&node);
        move || housekeeping(&node, &stopped)
    });

    let owner = Owner { principal: "ann".into(), server: "example".into(), client: "".into(), resource: "".into() };
    let ann = Client { node: Arc::clone(&node), caller: Caller { owner, scopes: Scopes::Unrestricted } };

    // Create, answer, completed. An answer that does not fit is refused, and the question stays.
    let task = ann.call();
    ann.poll_until(task, Status::InputRequired);
    let junk = ann.answer(task, "name", serde_json::json!({"action": "accept", "content": {"name": 7}}));
    assert!(matches!(junk, Written::Rejected { .. }));
    let ack = ann.answer(task, "name", serde_json::json!({"action": "accept", "content": {"name": "Ann"}}));
    assert!(matches!(ack, Written::Done(_)));
    let done = ann.poll_until(task, Status::Completed);
    assert!(text(&DetailedTask(&done)).contains("hello Ann"));
    assert_eq!(done.status_message.as_deref(), Some("greeting"), "the last progress stands before the end");

    // Create, cancel, cancelled: for good, and the run is told.
    let task = ann.call();
    ann.poll_until(task, Status::InputRequired);
    assert!(matches!(ann.cancel(task), Written::Done(_)));
    ann.poll_until(task, Status::Cancelled);

    // Somebody else sees nothing at all.
    let bob =
        Caller { owner: Owner { principal: "bob".into(), ..ann.caller.owner.clone() }, scopes: Scopes::Unrestricted };
    assert_eq!(node.drive(Read::new(task, bob)), Answered::Absent);

    let runs = std::mem::take(&mut *node.threads.lock().unwrap_or_else(PoisonError::into_inner));
    for run in runs {
        run.join().expect("no tool panics here");
    }
    assert!(node.registry.is_empty(), "every run has left the table");
    drop(stop);
    housekeeper.join().expect("housekeeping does not panic");
    drop((ann, node));
    store_thread.join().expect("the store does not panic");
    println!("done");
}

#[test]
fn it_plays_to_its_end() {
    main();
}
