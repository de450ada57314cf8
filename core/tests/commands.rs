//! Whatever is asked of a task, in whatever order and at whatever time: its contract holds.

#[path = "world/payload.rs"]
mod payload;

use std::collections::BTreeMap;
use std::fmt;

use payload::{KEEP_MS, Number, TTL_MS, draft};
use proptest::prelude::*;
use tokkuri_core::id::{Attempt, Key, NodeId};
use tokkuri_core::task::{Command, Effect, Fault, Phase, Rejected, Status, Task, invariant};
use tokkuri_core::time::Millis;

const T0: Millis = Millis(1_000_000);

/// One command, at some moment.
#[derive(Clone, Debug)]
struct Said {
    at: Millis,
    command: Command<Number>,
}

/// A failure prints these, numbered, one a line.
#[derive(Clone)]
struct Script {
    restartable: bool,
    said: Vec<Said>,
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "a task that {} be restarted:", if self.restartable { "may" } else { "may not" })?;
        for (i, Said { at, command }) in self.said.iter().enumerate() {
            writeln!(f, "  {:>2}. {:+} ms: {command:?}", i + 1, at.0 as i64 - T0.0 as i64)?;
        }
        Ok(())
    }
}

fn key() -> impl Strategy<Value = Key> {
    prop_oneof![Just("a"), Just("b"), Just("c")].prop_map(Key::from)
}

fn value() -> impl Strategy<Value = Number> {
    prop_oneof![6 => (1..4_u8).prop_map(Number), 1 => Just(Number::JUNK), 1 => Just(Number::URL)]
}

fn attempt() -> impl Strategy<Value = Attempt> {
    prop_oneof![6 => Just(1), 3 => Just(2), 1 => Just(0), 1 => Just(9)].prop_map(Attempt)
}

fn command() -> impl Strategy<Value = Command<Number>> {
    let message = || prop_oneof![Just("1/2"), Just("2/2")];
    prop_oneof![
        3 => (attempt(), message()).prop_map(|(by, message)| Command::Progress { by, message: message.into() }),
        6 => (attempt(), key(), value()).prop_map(|(by, key, request)| Command::Ask { by, key, request }),
        6 => prop::collection::btree_map(key(), value(), 0..3).prop_map(|answers| Command::Answer { answers }),
        1 => (attempt(), value(), prop::option::of(message())).prop_map(|(by, result, message)| {
            Command::Complete { by, result, message: message.map(Into::into) }
        }),
        1 => attempt().prop_map(|by| Command::Fail { by, fault: Fault::internal("broken") }),
        1 => Just(Command::Cancel),
        2 => (attempt(), prop::option::of(1..3_u64)).prop_map(|(attempt, heir)| {
            Command::Lose { attempt, heir: heir.map(NodeId), why: "lost".into() }
        }),
        1 => (attempt(), any::<bool>()).prop_map(|(by, began)| Command::HandOver { by, began }),
        2 => (attempt(), value()).prop_map(|(by, slot)| Command::Note { by, slot }),
    ]
}

/// Mostly early in the task's life, sometimes around its end, sometimes before its beginning.
fn moment() -> impl Strategy<Value = Millis> {
    prop_oneof![
        12 => (0..1_000_u64).prop_map(|ms| T0.after(ms)),
        1 => (0..1_000_u64).prop_map(|ms| T0.before(ms)),
        2 => (0..3_u64).prop_map(|ms| T0.after(TTL_MS - 2 + ms)),
        1 => (0..3_u64).prop_map(|ms| T0.after(TTL_MS + KEEP_MS - 2 + ms)),
        1 => Just(Millis(u64::MAX)),
    ]
}

fn script() -> impl Strategy<Value = Script> {
    let said = (moment(), command()).prop_map(|(at, command)| Said { at, command });
    (any::<bool>(), prop::collection::vec(said, 0..40)).prop_map(|(restartable, said)| Script { restartable, said })
}

/// What a correct task is remembered by, kept apart from it.
#[derive(Default)]
struct Memory {
    asked: BTreeMap<Key, Number>,
    answered: BTreeMap<Key, Number>,
    end: Option<(Phase<Number>, u64)>,
}

impl Memory {
    /// Compares the task with all it was before.
    fn hold_against(&mut self, task: &Task<Number>) -> Result<(), TestCaseError> {
        if let Some((phase, ttl_ms)) = &self.end {
            prop_assert_eq!((&task.phase, task.ttl_ms), (phase, *ttl_ms), "an end is final");
        }
        let Phase::Live(live) = &task.phase else {
            self.end = Some((task.phase.clone(), task.ttl_ms));
            prop_assert!(task.slot.is_none());
            return Ok(());
        };
        for (key, question) in &live.questions {
            let first = *self.asked.entry(key.clone()).or_insert(question.request);
            prop_assert_eq!(first, question.request, "the key {} was used for another question", key);
            if let Some(answer) = question.answer {
                let first = *self.answered.entry(key.clone()).or_insert(answer);
                prop_assert_eq!(first, answer, "the first answer to {} did not win", key);
            }
        }
        prop_assert!(self.asked.keys().eq(live.questions.keys()), "a question is never taken back");
        let outstanding = live.questions.len() > self.answered.len();
        let want = if outstanding { Status::InputRequired } else { Status::Working };
        prop_assert_eq!(task.status(), want, "input_required exactly while a question is outstanding");
        Ok(())
    }
}

/// The attempt that a command claims to be from.
fn by(command: &Command<Number>) -> Option<Attempt> {
    match command {
        Command::Progress { by, .. }
        | Command::Ask { by, .. }
        | Command::Complete { by, .. }
        | Command::Fail { by, .. }
        | Command::HandOver { by, .. }
        | Command::Note { by, .. } => Some(*by),
        Command::Lose { attempt, .. } => Some(*attempt),
        Command::Answer { .. } | Command::Cancel => None,
    }
}

fn check(Script { restartable, said }: Script) -> Result<(), TestCaseError> {
    let mut task = draft(1, "ann", NodeId(1), restartable).created(T0);
    let mut memory = Memory::default();
    // What is in the list already belongs to others, and stays.
    let mut effects = vec![Effect::Release { slot: Number(77) }];
    for Said { at, command } in said {
        let (before, effects_before) = (task.clone(), effects.clone());
        let outcome = task.apply(at, command.clone(), &mut effects);
        prop_assert_eq!(invariant::check(&task), Ok(()));
        prop_assert_eq!(&effects[..effects_before.len()], &effects_before[..]);
        match &outcome {
            Err(rejected) => {
                prop_assert_eq!(&task, &before, "{:?} is inert", rejected);
                prop_assert_eq!(&effects, &effects_before, "{:?} has no effects", rejected);
            }
            Ok(()) if task.revision == before.revision => {
                prop_assert_eq!(&task, &before, "what leaves the revision alone changes nothing");
                prop_assert_eq!(&effects, &effects_before, "no change, no effects");
            }
            Ok(()) => {
                prop_assert_eq!(invariant::check_step(&before, &task), Ok(()));
                prop_assert_eq!(task.revision, before.revision.next());
                prop_assert_eq!(task.updated, at.max(before.updated), "time is the store's, and never goes back");
                let silent = matches!(command, Command::Note { .. });
                prop_assert_eq!(effects[effects_before.len()..].contains(&Effect::Publish), !silent);
            }
        }
        // The reasons to refuse, said again in other words.
        let expired = at >= before.expires();
        prop_assert_eq!(expired, outcome == Err(Rejected::Expired), "expired from createdAt + ttlMs on, not before");
        if let (Some(by), false) = (by(&command), expired) {
            let ended = before.live().is_none();
            prop_assert_eq!(ended, outcome == Err(Rejected::Ended));
            prop_assert_eq!(!ended && by != before.attempt, outcome == Err(Rejected::StaleAttempt));
        }
        memory.hold_against(&task)?;
    }
    Ok(())
}

fn config() -> ProptestConfig {
    let mut config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = 1_500;
    }
    config
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_task_keeps_its_contract_whatever_is_asked_of_it(script in script()) {
        check(script)?;
    }
}

/// The generator above is worth nothing if it never gets anywhere.
#[test]
fn the_scripts_reach_every_phase_and_every_refusal() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    let mut runner = TestRunner::deterministic();
    let mut reached = std::collections::BTreeSet::new();
    for _ in 0..1_000 {
        let Script { restartable, said } = script().new_tree(&mut runner).expect("nothing is filtered").current();
        let mut task = draft(1, "ann", NodeId(1), restartable).created(T0);
        for Said { at, command } in said {
            reached.insert(match task.apply(at, command, &mut Vec::new()) {
                Ok(()) => task.status().as_str().to_owned(),
                Err(rejected) => format!("{rejected:?}").split([' ', '{']).next().unwrap_or_default().to_owned(),
            });
            if task.attempt > Attempt::FIRST {
                reached.insert("restarted".to_owned());
            }
        }
    }
    let all = ["working", "input_required", "completed", "failed", "cancelled", "restarted"].into_iter();
    let refusals = ["Expired", "Ended", "StaleAttempt", "Undeclared", "TooManyQuestions", "Misfit"];
    for it in all.chain(refusals) {
        assert!(reached.contains(it), "{it} is never reached");
    }
}
