//! Who follows what, and what happens to it.

use crate::frame::payload::Who;

/// Tasks and their listeners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listeners {
    /// Its name.
    pub name: &'static str,
    /// What it is about.
    pub about: &'static str,
    /// The tasks, all of them ann's: whether this node runs them.
    pub runs_here: Vec<bool>,
    /// What happens to them: in the order of each lane, and in any order between lanes.
    pub lanes: Vec<Vec<Change>>,
    /// Who follows them.
    pub listeners: Vec<Listener>,
    /// Time passes in these steps, in milliseconds.
    pub waits: Vec<u64>,
    /// Whether others remove what has expired, and whether this node does.
    pub expiry: [bool; 2],
    /// Whether changes that are made elsewhere are hinted at.
    pub hints: bool,
    /// How often mail arrives twice.
    pub doubles: u8,
    /// How often the store is not there for a listener's first reading.
    pub away: u8,
    /// The claims whose premise it has to reach.
    pub reaches: &'static [&'static str],
}

impl Default for Listeners {
    fn default() -> Self {
        Self {
            name: "listeners",
            about: "",
            runs_here: vec![true],
            lanes: Vec::new(),
            listeners: vec![Listener::default()],
            waits: Vec::new(),
            expiry: [false; 2],
            hints: false,
            doubles: 0,
            away: 0,
            reaches: &[],
        }
    }
}

/// One change of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The task.
    pub task: u8,
    /// Whether it is made on this node.
    pub here: bool,
    /// What is done.
    pub deed: Deed,
}

/// What is done to a task. One that has ended does not change any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// It is created.
    Create,
    /// Its run says how far it is.
    Progress(u8),
    /// Its run asks.
    Ask,
    /// Its owner answers.
    Answer,
    /// Its run ends.
    Complete,
    /// Its owner cancels it.
    Cancel,
}

/// Somebody who follows tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Who.
    pub who: Who,
    /// Which tasks.
    pub tasks: Vec<u8>,
    /// Takes what it is owed before it has read: access is checked at delivery as well.
    pub eager: bool,
    /// Whether it may go at any moment.
    pub leaves: bool,
}

impl Default for Listener {
    fn default() -> Self {
        Self { who: Who::Ann, tasks: vec![0], eager: false, leaves: false }
    }
}
