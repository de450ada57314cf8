//! Counters of runs, by name.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokkuri_server::tool::{Elicited, RunContext, Stop, TaskMode, Tool};

use super::{Bed, json_text};

#[derive(Debug, Default)]
pub(super) struct Counters(Mutex<HashMap<String, Counter>>);

/// What a counter reads.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Counter {
    started: u64,
    finished: u64,
    cancelled: u64,
    lost: u64,
    /// When a run was last told of a cancel, in microseconds since 1970.
    #[serde(rename = "cancelledAtUs")]
    cancelled_at_us: u64,
}

/// Now, by the machine's clock.
fn now_us() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_micros()).unwrap_or(u64::MAX)
}

impl Counters {
    fn with<T>(&self, name: &str, change: impl FnOnce(&mut Counter) -> T) -> T {
        let mut counters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        change(counters.entry(name.to_owned()).or_default())
    }
}

#[derive(Deserialize, JsonSchema)]
struct Count {
    name: String,
    #[serde(default)]
    ms: u64,
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

pub(super) fn tools(bed: &Bed) -> Vec<Tool> {
    let counters = Arc::clone(&bed.counters);
    let counter = Tool::new("counter", move |args: Name, _| {
        let read = counters.with(&args.name, |counter| *counter);
        async move { Ok(json_text(&serde_json::to_value(read)?)) }
    })
    .description("Reads a counter");
    vec![
        count("count", bed).task(TaskMode::Optional),
        count("restartable", bed).task(TaskMode::Optional).restartable(),
        restartable_ask(bed).task(TaskMode::Optional).restartable(),
        counter,
    ]
}

fn count(name: &'static str, bed: &Bed) -> Tool {
    let bed = bed.clone();
    Tool::new(name, move |args: Count, cx: RunContext| {
        let (alive, counters) = (bed.alive(), Arc::clone(&bed.counters));
        async move {
            let _alive = alive;
            counters.with(&args.name, |counter| counter.started += 1);
            tokio::select! {
                biased;
                stop = cx.cancelled() => {
                    counters.with(&args.name, |counter| match stop {
                        Stop::Lost | Stop::LeaseLost => counter.lost += 1,
                        Stop::Cancelled | Stop::Expired | Stop::Shutdown | Stop::Drain => {
                            counter.cancelled += 1;
                            counter.cancelled_at_us = now_us();
                        }
                    });
                    Ok("stopped")
                }
                () = tokio::time::sleep(Duration::from_millis(args.ms)) => {
                    counters.with(&args.name, |counter| counter.finished += 1);
                    Ok("counted")
                }
            }
        }
    })
    // So that it is told why it stops, and can count it.
    .cancel_grace(Duration::from_secs(5))
    .description("Counts its runs")
}

#[derive(Deserialize, JsonSchema)]
struct Ask {
    name: String,
    n: u32,
}

/// The form of its questions.
#[derive(Deserialize, JsonSchema)]
struct Person {
    name: String,
}

fn restartable_ask(bed: &Bed) -> Tool {
    let bed = bed.clone();
    Tool::new("restartable_ask", move |args: Ask, cx: RunContext| {
        let (alive, counters) = (bed.alive(), Arc::clone(&bed.counters));
        async move {
            let _alive = alive;
            counters.with(&args.name, |counter| counter.started += 1);
            let mut names = Vec::new();
            for n in 1..=args.n {
                match cx.elicit::<Person>(format!("q{n}"), "Who?").await? {
                    Elicited::Accepted(person) => names.push(person.name),
                    Elicited::Declined | Elicited::Dismissed => names.push("nobody".to_owned()),
                }
            }
            counters.with(&args.name, |counter| counter.finished += 1);
            Ok(names.join(","))
        }
    })
    .description("Counts its starts, asks n questions one after another, and may be started again")
}
