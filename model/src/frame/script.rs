//! A scene and a way through it as text: what was found once, to be replayed for ever.
//!
//! ```text
//! claim cancel_is_final
//! found tokkuri-model check cancel/races
//! nodes 2
//! running
//! request 0 ann cancel 0
//! tool complete
//! step begin 0 well        # ann sends to node 0: cancel task 0
//! ```
//!
//! A line is a word and what belongs to it; `#` begins a remark. The scene is written out, so that a file means the same
//! whatever becomes of the worlds. Mail is named by what it is about, and a step that cannot be any more is passed over.

use std::fmt::Write as _;
use std::str::FromStr;

use tokkuri_core::procedure::Seen;

use crate::frame::action::describe;
use crate::frame::payload::{Who, task_number};
use crate::frame::scene::{Do, Faults, Request, Scene, What};
use crate::frame::state::{Mail, Slot, State};
use crate::frame::{Action, Store, World};

/// Writes a scene and a way through it.
pub fn write(claim: &str, found: &str, why: &str, scene: &Scene, trace: &[Action]) -> String {
    let mut text = format!("# {why}\nclaim {claim}\nfound {found}\n\n");
    let mut line = |words: String| {
        text.push_str(&words);
        text.push('\n');
    };
    line(format!("nodes {}", scene.nodes));
    for (flag, word) in [
        (scene.running, "running"),
        (scene.restartable, "restartable"),
        (scene.looks, "looks"),
        (scene.replies_get_lost, "replies_get_lost"),
        (scene.undrain, "undrain"),
    ] {
        if flag {
            line(word.to_owned());
        }
    }
    line(format!("limit {}", scene.limit));
    let join = |numbers: &[u64]| numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(" ");
    line(format!("waits {}", join(&scene.waits)));
    line(format!("expiry {}", scene.expiry.map(|it| u8::from(it).to_string()).join(" ")));
    line(format!("sweeps {}", scene.sweeps.map(|it| it.to_string()).join(" ")));
    if let Some(node) = scene.slow {
        line(format!("slow {node}"));
    }
    if let Some(node) = scene.lags {
        line(format!("lags {node}"));
    }
    if let Some((node, ms)) = scene.drain {
        line(format!("drain {node} {ms}"));
    }
    let Faults { crash, double, away, mute, unsure, drop } = scene.faults;
    line(format!("faults {crash} {double} {away} {mute} {unsure} {drop}"));
    for request in &scene.requests {
        let who = match request.who {
            Who::Ann => "ann",
            Who::AnnUnscoped => "ann_unscoped",
            Who::Bob => "bob",
        };
        let or_none = |value: Option<u8>| value.map_or("-".to_owned(), |value| value.to_string());
        let what = match request.what {
            What::Create { task, retries } => format!("create {task} {}", or_none(retries)),
            What::Get { task } => format!("get {task}"),
            What::Answer { task, values: [a, b] } => format!("answer {task} {} {}", or_none(a), or_none(b)),
            What::AnswerUnknown { task } => format!("answer_unknown {task}"),
            What::Cancel { task } => format!("cancel {task}"),
        };
        line(format!("request {} {who} {what}", request.door));
    }
    for act in &scene.tool {
        line(match act {
            Do::Ask { key, request } => format!("tool ask {key} {request}"),
            Do::Await { key } => format!("tool await {key}"),
            Do::Progress(progress) => format!("tool progress {progress}"),
            Do::Note(slot) => format!("tool note {slot}"),
            Do::Complete => "tool complete".to_owned(),
            Do::Fail => "tool fail".to_owned(),
        });
    }
    text.push('\n');
    let world = World::new(scene.clone());
    let mut state = world.beginning();
    for &action in trace {
        let words = words(&state, action);
        let _ = writeln!(text, "step {words:<34} # {}", describe(scene, &state, action));
        if let Some(next) = world.carry_out(&state, action) {
            state = next;
        }
    }
    text
}

fn words(state: &State, action: Action) -> String {
    let mail = |at: u8| mail(&state.mail[usize::from(at)]);
    match action {
        Action::Begin(request, how) => format!("begin {request} {}", store(how)),
        Action::Hear(task) => format!("hear {task}"),
        Action::Unheard(task) => format!("unheard {task}"),
        Action::Step(it, how) => format!("step {} {}", slot(it), store(how)),
        Action::Drop(it) => format!("drop {}", slot(it)),
        Action::Deliver(at) => format!("deliver {}", mail(at)),
        Action::Double(at) => format!("double {}", mail(at)),
        Action::Act(task, attempt, how) => format!("act {task} {} {}", attempt.0, store(how)),
        Action::Stop(task, attempt) => format!("stop {task} {}", attempt.0),
        Action::WriteProgress(task, attempt) => format!("write_progress {task} {}", attempt.0),
        Action::Look(node) => format!("look {node}"),
        Action::Expire(node) => format!("expire {node}"),
        Action::Sweep(node) => format!("sweep {node}"),
        Action::Renew(node) => format!("renew {node}"),
        Action::Beat(node) => format!("beat {node}"),
        Action::Carry(at) => format!("carry {}", state.renewals[usize::from(at)].node()),
        Action::Told(at) => format!("told {}", state.renewals[usize::from(at)].node()),
        Action::Operate => "operate".to_owned(),
        Action::Crash(node) => format!("crash {node}"),
        Action::Wait => "wait".to_owned(),
    }
}

const fn store(store: Store) -> &'static str {
    match store {
        Store::Well => "well",
        Store::Away => "away",
        Store::Mute => "mute",
        Store::Unsure => "unsure",
    }
}

fn slot(slot: Slot) -> String {
    match slot {
        Slot::Request(request) => format!("request {request}"),
        Slot::Abandon(task) => format!("abandon {task}"),
        Slot::Run(task, attempt) => format!("run {task} {}", attempt.0),
        Slot::Progress(task, attempt) => format!("progress {task} {}", attempt.0),
        Slot::Expire(node) => format!("expire {node}"),
        Slot::Sweep(node, number) => format!("sweep {node} {number}"),
    }
}

/// What it is, to which node, of which task, at which revision.
fn mail(mail: &Mail) -> String {
    let seen = |seen: &Seen<_>| match seen {
        Seen::Task(task) => task.revision.0,
        Seen::Gone => 0,
    };
    let (kind, revision) = match mail {
        Mail::After { after, .. } => ("after", seen(&after.seen)),
        Mail::Signal { revision, .. } => ("signal", revision.map_or(0, |revision| revision.0)),
        Mail::Seen { seen: it, .. } => ("seen", seen(it)),
    };
    format!("{kind} {} {} {revision}", mail.node(), task_number(mail.task()))
}

/// A scene and a way through it, as read from text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// The claim that was broken.
    pub claim: String,
    /// The scene.
    pub scene: Scene,
    /// The steps, in words.
    steps: Vec<String>,
}

impl FromStr for Script {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut scene = Scene { running: false, looks: false, tool: Vec::new(), ..Scene::default() };
        let (mut claim, mut steps) = (String::new(), Vec::new());
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            let Some((word, rest)) = line.split_once(' ').or((!line.is_empty()).then_some((line, ""))) else {
                continue;
            };
            let read = match word {
                "claim" => {
                    claim = rest.to_owned();
                    Some(())
                }
                "found" => Some(()),
                "step" => {
                    steps.push(rest.split_whitespace().collect::<Vec<_>>().join(" "));
                    Some(())
                }
                _ => read(&mut scene, word, &rest.split_whitespace().collect::<Vec<_>>()),
            };
            read.ok_or_else(|| format!("line {}: {line:?} means nothing", number + 1))?;
        }
        Ok(Self { claim, scene, steps })
    }
}

fn read(scene: &mut Scene, word: &str, rest: &[&str]) -> Option<()> {
    let small = |at: usize| rest.get(at)?.parse::<u8>().ok();
    let maybe = |at: usize| rest.get(at).map(|word| word.parse::<u8>().ok());
    match word {
        "nodes" => scene.nodes = small(0)?,
        "running" => scene.running = true,
        "restartable" => scene.restartable = true,
        "looks" => scene.looks = true,
        "replies_get_lost" => scene.replies_get_lost = true,
        "limit" => scene.limit = u32::from(small(0)?),
        "waits" => scene.waits = rest.iter().map(|word| word.parse().ok()).collect::<Option<_>>()?,
        "undrain" => scene.undrain = true,
        // Files from when there were two nodes at most end after the second.
        "expiry" => scene.expiry = [small(0)? == 1, small(1)? == 1, small(2) == Some(1)],
        "sweeps" => scene.sweeps = [small(0)?, small(1)?, small(2).unwrap_or(0)],
        "slow" => scene.slow = Some(small(0)?),
        "lags" => scene.lags = Some(small(0)?),
        "drain" => scene.drain = Some((small(0)?, rest.get(1)?.parse().ok()?)),
        "faults" => {
            let [crash, double, away, mute, unsure, drop] =
                [small(0)?, small(1)?, small(2)?, small(3)?, small(4)?, small(5)?];
            scene.faults = Faults { crash, double, away, mute, unsure, drop };
        }
        "request" => {
            let who = match *rest.get(1)? {
                "ann" => Who::Ann,
                "ann_unscoped" => Who::AnnUnscoped,
                "bob" => Who::Bob,
                _ => return None,
            };
            let task = small(3)?;
            let what = match *rest.get(2)? {
                "create" => What::Create { task, retries: maybe(4)? },
                "get" => What::Get { task },
                "answer" => What::Answer { task, values: [maybe(4)?, maybe(5)?] },
                "answer_unknown" => What::AnswerUnknown { task },
                "cancel" => What::Cancel { task },
                _ => return None,
            };
            scene.requests.push(Request { door: small(0)?, who, what });
        }
        "tool" => scene.tool.push(match *rest.first()? {
            "ask" => Do::Ask { key: small(1)?, request: small(2)? },
            "await" => Do::Await { key: small(1)? },
            "progress" => Do::Progress(small(1)?),
            "note" => Do::Note(small(1)?),
            "complete" => Do::Complete,
            "fail" => Do::Fail,
            _ => return None,
        }),
        _ => return None,
    }
    Some(())
}

impl Script {
    /// Replays it, and holds every state against every claim.
    ///
    /// # Errors
    /// The claim that does not hold, why, and after which step.
    pub fn replay(&self) -> Result<(), String> {
        let world = World::new(self.scene.clone());
        let mut state = world.beginning();
        let mut actions = Vec::new();
        let mut done = 0;
        for (number, step) in self.steps.iter().enumerate() {
            actions.clear();
            world.possible(&state, &mut actions);
            let Some(action) = actions.iter().find(|action| words(&state, **action) == *step) else { continue };
            let Some(next) = world.carry_out(&state, *action) else { continue };
            done += 1;
            state = next;
            for claim in &world.claims {
                claim.holds(&self.scene, &state).map_err(|why| {
                    format!("{} does not hold after step {}, {step:?}: {why}", claim.name, number + 1)
                })?;
            }
        }
        // A script of which nothing is possible any more checks nothing.
        if done * 2 < self.steps.len() {
            return Err(format!("only {done} of {} steps are possible", self.steps.len()));
        }
        Ok(())
    }

    /// The steps, in words.
    pub fn steps(&self) -> &[String] {
        &self.steps
    }
}
