//! A client's life: it creates a task, reads it at random nodes, answers and cancels it, follows it, and begins again.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::calls::{Caller, state_of};
use super::random::Random;
use crate::harness::Listening;
use crate::harness::listen::Event;
use crate::harness::reply;
use crate::history::{Life, State, StreamEnd, What};

/// How long a client stays with a task before it cancels it.
const STAYS: Duration = Duration::from_secs(15);
/// How long a follower may be left without the end of a task that has ended: as long as a node may stand still, and more.
const TOLD_WITHIN: Duration = Duration::from_secs(25);

/// The tool that takes a place and nothing else.
pub(super) const PLACE: &str = "slow_required";

/// What is known of [`PLACE`].
pub(super) fn place() -> Life {
    Life { tool: PLACE.into(), ..Life::default() }
}

/// What all clients know: the tasks of everybody.
#[derive(Debug, Default)]
pub(super) struct Shared {
    tasks: Mutex<BTreeMap<String, Vec<String>>>,
    names: AtomicU64,
}

impl Shared {
    fn add(&self, owner: &str, task: &str) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.entry(owner.to_owned()).or_default().push(task.to_owned());
    }

    /// All tasks of an owner.
    pub(super) fn all_of(&self, owner: &str) -> Vec<String> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).get(owner).cloned().unwrap_or_default()
    }

    /// One of the last tasks of this owner, or of another one.
    fn recent(&self, owner: &str, own: bool, random: &mut Random) -> Option<String> {
        let tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let lists: Vec<_> =
            tasks.iter().filter(|(name, _)| (name.as_str() == owner) == own).map(|(_, list)| list).collect();
        let list = lists.get(random.below(lists.len()))?;
        let last = &list[list.len().saturating_sub(20)..];
        last.get(random.below(last.len())).cloned()
    }

    fn name(&self) -> String {
        format!("n{}", self.names.fetch_add(1, Ordering::Relaxed))
    }
}

/// What a client is up to.
struct Plan {
    arguments: Value,
    life: Life,
    /// Whether it answers what it is asked.
    answers: bool,
    /// When it cancels the task, if at all.
    cancels: Option<Duration>,
}

impl Plan {
    fn any(random: &mut Random) -> Self {
        let some_time = random.ms(50, 2500);
        let ms = u64::try_from(some_time.as_millis()).unwrap_or(0);
        let cancels = random.chance(25).then(|| random.ms(0, 1500));
        let answers = !random.chance(10);
        let asks = |tool: &str, restartable| Life { tool: tool.into(), restartable, questions: 2, endless: false };
        let (arguments, life) = match random.below(8) {
            0 | 1 => (json!({"ms": ms}), Life { tool: "slow".into(), ..Life::default() }),
            2 => (
                json!({"name": "soak", "ms": ms}),
                Life { tool: "restartable".into(), restartable: true, ..Life::default() },
            ),
            3 | 4 => (json!({"n": 2}), asks("ask_many", false)),
            5 => (json!({"name": "soak", "n": 2}), asks("restartable_ask", true)),
            6 => (json!({}), Life { tool: "nul".into(), ..Life::default() }),
            _ => {
                let life = Life { tool: "gate".into(), endless: true, ..Life::default() };
                (json!({"name": "never opened"}), life)
            }
        };
        let cancels = if life.endless || !answers { Some(random.ms(100, 3000)) } else { cancels };
        Self { arguments, life, answers, cancels }
    }
}

/// Lives until told to stop.
pub(super) async fn live(
    caller: Caller,
    number: usize,
    shared: Arc<Shared>,
    mut random: Random,
    stop: CancellationToken,
) {
    sleep(Duration::from_millis(u64::try_from(number).unwrap_or(0) * 37)).await;
    let mut followers = tokio::task::JoinSet::new();
    while !stop.is_cancelled() {
        let plan = Plan::any(&mut random);
        let node = random.below(caller.nodes());
        let Some(task) = caller.create(node, &plan.life.tool, plan.arguments.clone(), &plan.life).await else {
            // The limit, or a fault: somebody has to end something first.
            sleep(random.ms(20, 200)).await;
            continue;
        };
        shared.add(caller.name(), &task);
        if random.chance(20) {
            let (caller, task, stream) = (caller.clone(), task.clone(), random.number() >> 12);
            let node = random.below(caller.nodes());
            followers.spawn(async move { follow(&caller, node, &task, stream).await });
        }
        stay(&caller, &shared, &mut random, &plan, &task).await;
        while followers.try_join_next().is_some_and(|follower| follower.is_ok()) {}
    }
    while let Some(follower) = followers.join_next().await {
        follower.expect("no follower fails");
    }
}

/// Stays with a task to its end.
async fn stay(caller: &Caller, shared: &Shared, random: &mut Random, plan: &Plan, task: &str) {
    let start = Instant::now();
    let mut cancelled = false;
    loop {
        let node = random.below(caller.nodes());
        if let Some(state) = caller.read(node, task).await {
            if state.is_terminal() {
                // And what others say of it.
                caller.read(node + 1, task).await;
                return;
            }
            let key = state.questions.keys().next().filter(|_| plan.answers && random.chance(70));
            if let Some(key) = key {
                answer(caller, shared, random, task, key).await;
            }
        }
        if caller.is_gone(task) {
            return;
        }
        let due = plan.cancels.unwrap_or(STAYS).min(STAYS);
        if !cancelled && start.elapsed() >= due {
            cancelled = caller.cancel(random.below(caller.nodes()), task).await;
        }
        if random.chance(30) {
            // Somebody looks at what is not new, or not theirs.
            let own = random.chance(70);
            if let Some(other) = shared.recent(caller.name(), own, random) {
                caller.read(random.below(caller.nodes()), &other).await;
            }
        }
        sleep(random.ms(10, 250)).await;
    }
}

/// One answer, or two at once at two nodes.
async fn answer(caller: &Caller, shared: &Shared, random: &mut Random, task: &str, key: &str) {
    let (one, two) = (shared.name(), shared.name());
    let node = random.below(caller.nodes());
    if random.chance(60) {
        caller.answer(node, task, key, &one).await;
    } else {
        tokio::join!(caller.answer(node, task, key, &one), caller.answer(node + 1, task, key, &two));
    }
}

/// Follows a task to its end.
async fn follow(caller: &Caller, node: usize, task: &str, stream: u64) {
    let Some((node, mut listening)) = caller.follow(node, task).await else { return };
    let mut ended = None;
    let how = loop {
        let event = tokio::select! {
            event = heard(&mut listening) => event,
            () = sleep(Duration::from_millis(500)) => {
                // A reader beside it, who knows when the stream is late.
                let over = caller.read(node, task).await.is_some_and(|state| state.is_terminal()) || caller.is_gone(task);
                if over && ended.get_or_insert_with(Instant::now).elapsed() > TOLD_WITHIN {
                    break StreamEnd::Overdue;
                }
                continue;
            }
        };
        match event {
            Heard::State(state) => {
                let over = state.is_terminal();
                caller.record(node, caller.recorder().now(), told(task, stream, *state));
                if over {
                    break StreamEnd::Whole;
                }
            }
            Heard::Other => {}
            Heard::Over => break StreamEnd::Broken,
        }
    };
    if how == StreamEnd::Whole {
        // The stream stays, and nothing may follow.
        while let Ok(Heard::State(state)) = timeout(Duration::from_millis(300), heard(&mut listening)).await {
            caller.record(node, caller.recorder().now(), told(task, stream, *state));
        }
    }
    caller.record(node, caller.recorder().now(), What::StreamOver { task: task.into(), stream, how });
}

fn told(task: &str, stream: u64, state: State) -> What {
    What::Told { task: task.into(), stream, state }
}

enum Heard {
    State(Box<State>),
    Other,
    /// The server ended it, or the connection.
    Over,
}

/// The next event. Dropping this loses nothing: what was read of an event is kept.
async fn heard(listening: &mut Listening) -> Heard {
    match listening.next().await {
        Event::Comment => Heard::Other,
        Event::End => Heard::Over,
        Event::Message(_, message) if message.get("result").is_some() => Heard::Over,
        Event::Message(text, message) if message["method"] == "notifications/tasks" => {
            let raw = |member: &str| reply::member(&text, &["params", member]).unwrap_or_default().to_owned();
            Heard::State(Box::new(state_of(&message["params"], raw)))
        }
        Event::Message(..) => Heard::Other,
    }
}
