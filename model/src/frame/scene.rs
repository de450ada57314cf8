//! What a world is made of: who is there, what they may try, and how much may go wrong. Bounds are numbers in here.

use crate::frame::payload::Who;

/// One configuration of the frame. Its states are explored by themselves; a world is a list of scenes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scene {
    /// Its name, unique among the scenes of its world.
    pub name: &'static str,
    /// What it is about, in a sentence.
    pub about: &'static str,
    /// How many nodes there are: 1 to 3. Node 0 creates and runs the task that is there from the beginning.
    pub nodes: u8,
    /// The task that is stored and running when the world begins, if there is one: task 0.
    pub running: bool,
    /// Whether tasks may run again on another node.
    pub restartable: bool,
    /// What clients send: each at most once, at any time.
    pub requests: Vec<Request>,
    /// What a tool does, in order.
    pub tool: Vec<Do>,
    /// How many live tasks an owner may have.
    pub limit: u32,
    /// Time passes in these steps, in milliseconds.
    pub waits: Vec<u64>,
    /// Which nodes look for expired rows.
    pub expiry: [bool; 3],
    /// How many take-over sweeps each node may begin. With any, nodes hold leases.
    pub sweeps: [u8; 3],
    /// The node whose renewals take their time: they are carried out some time after they are sent, and answered some time
    /// after that, or never. Those of other nodes are answered at once.
    pub slow: Option<u8>,
    /// The node whose own clock goes slow: it counts 99 seconds where the store counts 100.
    pub lags: Option<u8>,
    /// The node that an operator may drain, and the milliseconds until it hands over.
    pub drain: Option<(u8, u64)>,
    /// Whether the operator may think better of it.
    pub undrain: bool,
    /// Whether nodes look at the store. A world without looks shows what signals alone achieve.
    pub looks: bool,
    /// Whether the reply to a create may be lost on its way.
    pub replies_get_lost: bool,
    /// How often each kind of thing may go wrong.
    pub faults: Faults,
    /// The claims whose premise this scene reaches: it fails if it does not.
    pub reaches: &'static [&'static str],
}

impl Default for Scene {
    fn default() -> Self {
        Self {
            name: "scene",
            about: "",
            nodes: 1,
            running: true,
            restartable: false,
            requests: Vec::new(),
            tool: vec![Do::Complete],
            limit: 2,
            waits: Vec::new(),
            expiry: [false; 3],
            sweeps: [0; 3],
            slow: None,
            lags: None,
            drain: None,
            undrain: false,
            looks: true,
            replies_get_lost: false,
            faults: Faults::default(),
            reaches: &[],
        }
    }
}

impl Scene {
    /// How many tasks there may come to be.
    pub fn tasks(&self) -> usize {
        let named = self.requests.iter().map(|request| usize::from(request.what.task()) + 1).max();
        named.unwrap_or(0).max(usize::from(self.running))
    }

    /// Whether nodes hold leases.
    pub const fn has_leases(&self) -> bool {
        self.sweeps[0] > 0 || self.sweeps[1] > 0 || self.sweeps[2] > 0
    }
}

/// A request of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// The node whose door it comes through.
    pub door: u8,
    /// Who sends it.
    pub who: Who,
    /// What it asks for.
    pub what: What,
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// `tools/call`: a task of this number.
    Create {
        /// The task.
        task: u8,
        /// Sent only once the reply to the create of that task was not heard.
        retries: Option<u8>,
    },
    /// `tasks/get`.
    Get {
        /// The task.
        task: u8,
    },
    /// `tasks/update`: values by key, `None` where there is none.
    Answer {
        /// The task.
        task: u8,
        /// The answers.
        values: [Option<u8>; 2],
    },
    /// `tasks/update` with an answer to a question that nobody asks.
    AnswerUnknown {
        /// The task.
        task: u8,
    },
    /// `tasks/cancel`.
    Cancel {
        /// The task.
        task: u8,
    },
}

impl What {
    /// The task that it is about.
    pub const fn task(self) -> u8 {
        match self {
            Self::Create { task, .. }
            | Self::Get { task }
            | Self::Answer { task, .. }
            | Self::AnswerUnknown { task }
            | Self::Cancel { task } => task,
        }
    }
}

/// One thing that a tool does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Do {
    /// Stores a question. It goes on once that is stored.
    Ask {
        /// Its key.
        key: u8,
        /// What is asked.
        request: u8,
    },
    /// Waits for the answer to a question.
    Await {
        /// Its key.
        key: u8,
    },
    /// Says how far it is.
    Progress(u8),
    /// Writes the host's slot.
    Note(u8),
    /// Ends with a result.
    Complete,
    /// Ends with an error.
    Fail,
}

/// How often each kind of thing may go wrong. A signal that is lost needs no number: it is one that never arrives, and every
/// claim holds whether it does or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Faults {
    /// A node dies and comes back as another.
    pub crash: u8,
    /// A signal or a reading arrives twice.
    pub double: u8,
    /// The store is not there.
    pub away: u8,
    /// The store does it, and its answer is lost.
    pub mute: u8,
    /// The store does not do it, and cannot say so.
    pub unsure: u8,
    /// A client goes away, and its request is dropped half-way.
    pub drop: u8,
}
