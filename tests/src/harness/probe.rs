//! The probe tools of the test bed, by the names of the contract.

use std::time::Instant;

use serde_json::{Value, json};

use super::{Client, DEADLINE, LOOK_AGAIN};

/// What `counter` reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Runs that began.
    pub started: u64,
    /// Runs that came to their own end.
    pub finished: u64,
    /// Runs that were told of a cancel, or dropped by one.
    pub cancelled: u64,
    /// Runs that were told that another attempt took over.
    pub lost: u64,
}

impl Client {
    /// Reads the process-wide counter `name`.
    ///
    /// # Panics
    /// If the probe does not answer as the contract says.
    pub async fn counter(&self, name: &str) -> Counter {
        let read = self.probe("counter", json!({"name": name})).await;
        let field = |field: &str| read[field].as_u64().unwrap_or_else(|| panic!("counter {field}: {read}"));
        Counter {
            started: field("started"),
            finished: field("finished"),
            cancelled: field("cancelled"),
            lost: field("lost"),
        }
    }

    /// When a run of the counter `name` was last told of a cancel, by itself: microseconds since 1970.
    ///
    /// # Panics
    /// If the probe does not answer as the contract says.
    pub async fn cancelled_at_us(&self, name: &str) -> u64 {
        let read = self.probe("counter", json!({"name": name})).await;
        read["cancelledAtUs"].as_u64().unwrap_or_else(|| panic!("counter: {read}"))
    }

    /// How many runs are alive in the process.
    ///
    /// # Panics
    /// If the probe does not answer as the contract says.
    pub async fn runs(&self) -> u64 {
        let read = self.probe("runs", json!({})).await;
        read["runs"].as_u64().unwrap_or_else(|| panic!("runs: {read}"))
    }

    /// Waits until `n` runs are alive.
    ///
    /// # Panics
    /// If the deadline passes.
    pub async fn wait_runs(&self, n: u64) {
        let start = Instant::now();
        loop {
            let now = self.runs().await;
            if now == n {
                return;
            }
            assert!(start.elapsed() < DEADLINE, "waited for {n} runs; there are {now}");
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Waits until the counter is as `done` says.
    ///
    /// # Panics
    /// If the deadline passes.
    pub async fn wait_counter(&self, name: &str, done: impl Fn(Counter) -> bool) -> Counter {
        let start = Instant::now();
        loop {
            let now = self.counter(name).await;
            if done(now) {
                return now;
            }
            assert!(start.elapsed() < DEADLINE, "waited for the counter {name}; it reads {now:?}");
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Opens the gate `name`.
    pub async fn open(&self, name: &str) {
        self.call_tool("open", json!({"name": name})).await.text();
    }

    /// Holds the next task that reaches the internal point `point`.
    pub async fn hold(&self, point: &str) {
        self.call_tool("hold", json!({"point": point})).await.text();
    }

    /// Holds the given task at `point`.
    pub async fn hold_task(&self, point: &str, id: &str) {
        self.call_tool("hold", json!({"point": point, "taskId": id})).await.text();
    }

    /// How many tasks are held at `point`.
    ///
    /// # Panics
    /// If the probe does not answer as the contract says.
    pub async fn held(&self, point: &str) -> u64 {
        let read = self.probe("held", json!({"point": point})).await;
        read["held"].as_u64().unwrap_or_else(|| panic!("held: {read}"))
    }

    /// Waits until a task is held at `point`.
    ///
    /// # Panics
    /// If the deadline passes.
    pub async fn wait_held(&self, point: &str) {
        self.wait_held_by(point, 1).await;
    }

    /// Waits until so many are held at `point`.
    ///
    /// # Panics
    /// If the deadline passes.
    pub async fn wait_held_by(&self, point: &str, tasks: u64) {
        let start = Instant::now();
        while self.held(point).await < tasks {
            assert!(start.elapsed() < DEADLINE, "too few reached {point}");
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Lets what is held at `point` go on.
    pub async fn release(&self, point: &str) {
        self.call_tool("release", json!({"point": point})).await.text();
    }

    async fn probe(&self, name: &str, arguments: Value) -> Value {
        let reply = self.call_tool(name, arguments).await;
        serde_json::from_str(reply.text()).unwrap_or_else(|e| panic!("{name} answers JSON, {e}: {}", reply.body))
    }
}
