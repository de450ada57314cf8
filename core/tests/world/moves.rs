//! What can happen in a world, in words, and how to draw it.

use std::fmt;

use proptest::prelude::*;

/// One thing that happens. Numbers of tasks, runs, requests and messages are taken modulo how many there are, so that every
/// sequence of moves means something and shrinking keeps it meaningful.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    /// A client creates a task.
    Create { node: u8, who: u8, restartable: bool },
    /// A client reads one.
    Read { node: u8, task: u8, who: u8 },
    /// A client answers a question.
    Answer { node: u8, task: u8, who: u8, key: u8, value: u8 },
    /// A client cancels.
    Cancel { node: u8, task: u8, who: u8 },
    /// The create reply was not received.
    Abandon { node: u8, task: u8 },
    /// A run asks, reports progress or writes its slot.
    Report { run: u8, what: u8 },
    /// A run ends.
    End { run: u8, ok: bool },
    /// A node looks for orphans.
    Sweep { node: u8, heir: bool },
    /// A node removes what is due.
    Expire { node: u8 },
    /// A request that is under way goes one step on.
    Step { request: u8, store: Store },
    /// A message arrives, or is lost, or arrives and will arrive once more.
    Deliver { message: u8, how: How },
    /// A node looks at the store for its runs, and observes what it finds.
    Look { node: u8 },
    /// A node renews its lease.
    Renew { node: u8 },
    /// A node dies and comes back as another.
    Crash { node: u8 },
    /// Time passes. A node that does not sleep keeps its lease.
    Wait { ms: u64, asleep: Option<u8> },
}

/// How the store takes a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Store {
    /// It carries it out.
    Well,
    /// It is not there.
    Away,
    /// It carries it out, and its answer is lost.
    Mute,
    /// It does not carry it out, and cannot say so.
    Unsure,
    /// It says that the row changed, though it did not.
    Conflict,
}

/// How a message arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Once,
    Twice,
    Never,
}

/// A sequence of moves. A failure prints it numbered, one a line.
#[derive(Clone)]
pub(crate) struct Script(pub(crate) Vec<Move>);

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f)?;
        for (i, it) in self.0.iter().enumerate() {
            writeln!(f, "  {:>3}. {it}", i + 1)?;
        }
        Ok(())
    }
}

impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |who: u8| ["ann", "bob"][usize::from(who) % 2];
        match *self {
            Self::Create { node, who, restartable } => {
                let kind = if restartable { "restartable task" } else { "task" };
                write!(f, "{} creates a {kind} at node {}", name(who), node % 2)
            }
            Self::Read { node, task, who } => write!(f, "{} reads task #{task} at node {}", name(who), node % 2),
            Self::Answer { node, task, who, key, value } => {
                write!(f, "{} answers {value} to {} of task #{task} at node {}", name(who), key_name(key), node % 2)
            }
            Self::Cancel { node, task, who } => write!(f, "{} cancels task #{task} at node {}", name(who), node % 2),
            Self::Abandon { node, task } => write!(f, "node {} abandons task #{task}", node % 2),
            Self::Report { run, what } => match what % 4 {
                0 | 1 => write!(f, "run #{run} asks {}", key_name(what / 4)),
                2 => write!(f, "run #{run} reports progress {}", what / 4),
                _ => write!(f, "run #{run} writes {} into its slot", what / 4),
            },
            Self::End { run, ok } => write!(f, "run #{run} {}", if ok { "completes" } else { "fails" }),
            Self::Sweep { node, heir } => {
                let heir = if heir { " for itself" } else { "" };
                write!(f, "node {} takes orphans over{heir}", node % 2)
            }
            Self::Expire { node } => write!(f, "node {} removes what is due", node % 2),
            Self::Step { request, store } => match store {
                Store::Well => write!(f, "request #{request} goes on"),
                Store::Away => write!(f, "request #{request} goes on, but the store is away"),
                Store::Mute => write!(f, "request #{request} goes on; the store does it, but its answer is lost"),
                Store::Unsure => write!(f, "request #{request} goes on; it is lost on the way to the store"),
                Store::Conflict => write!(f, "request #{request} goes on; a commit would meet a conflict"),
            },
            Self::Deliver { message, how } => match how {
                How::Once => write!(f, "message #{message} arrives"),
                How::Twice => write!(f, "message #{message} arrives, and will again"),
                How::Never => write!(f, "message #{message} is lost"),
            },
            Self::Look { node } => write!(f, "node {} looks at the store", node % 2),
            Self::Renew { node } => write!(f, "node {} renews its lease", node % 2),
            Self::Crash { node } => write!(f, "node {} crashes and comes back", node % 2),
            Self::Wait { ms, asleep: None } => write!(f, "{ms} ms pass"),
            Self::Wait { ms, asleep: Some(node) } => write!(f, "{ms} ms pass, and node {} sleeps", node % 2),
        }
    }
}

/// The keys of the questions that runs ask.
pub(crate) fn key_name(key: u8) -> &'static str {
    ["a", "b", "c"][usize::from(key) % 3]
}

/// A sequence of up to `most` moves.
pub(crate) fn script(most: usize) -> impl Strategy<Value = Script> {
    let store = prop_oneof![
        20 => Just(Store::Well),
        1 => Just(Store::Away),
        1 => Just(Store::Mute),
        1 => Just(Store::Unsure),
        1 => Just(Store::Conflict)
    ];
    let how = prop_oneof![6 => Just(How::Once), 1 => Just(How::Twice), 2 => Just(How::Never)];
    let one = || 0..2_u8;
    let few = || 0..4_u8;
    // The owner's own requests are what moves tasks on; strangers have to be refused just as reliably.
    let step = prop_oneof![
        6 => (one(), one(), any::<bool>())
            .prop_map(|(node, who, restartable)| Move::Create { node, who, restartable }),
        2 => (one(), few(), one()).prop_map(|(node, task, who)| Move::Read { node, task, who }),
        6 => (one(), few(), one(), one(), prop_oneof![5 => 1..3_u8, 1 => Just(255)])
            .prop_map(|(node, task, who, key, value)| Move::Answer { node, task, who, key, value }),
        2 => (one(), few(), one()).prop_map(|(node, task, who)| Move::Cancel { node, task, who }),
        1 => (one(), few()).prop_map(|(node, task)| Move::Abandon { node, task }),
        8 => (few(), 0..12_u8).prop_map(|(run, what)| Move::Report { run, what }),
        3 => (few(), any::<bool>()).prop_map(|(run, ok)| Move::End { run, ok }),
        4 => (one(), prop_oneof![3 => Just(true), 1 => Just(false)])
            .prop_map(|(node, heir)| Move::Sweep { node, heir }),
        1 => one().prop_map(|node| Move::Expire { node }),
        60 => (0..6_u8, store).prop_map(|(request, store)| Move::Step { request, store }),
        20 => (0..6_u8, how).prop_map(|(message, how)| Move::Deliver { message, how }),
        4 => one().prop_map(|node| Move::Look { node }),
        5 => one().prop_map(|node| Move::Renew { node }),
        2 => one().prop_map(|node| Move::Crash { node }),
        8 => (prop::sample::select(vec![1, 3_000, 11_000, 16_000, 30_000, 60_000]), prop::option::weighted(0.4, one()))
            .prop_map(|(ms, asleep)| Move::Wait { ms, asleep }),
    ];
    prop::collection::vec(step, 0..most).prop_map(Script)
}
