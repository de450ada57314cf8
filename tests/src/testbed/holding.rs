//! Holding the node at its named points, so that a test can put something in between.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::watch;
use tokkuri_server::engine::probe::{Point, Probe, TaskId};
use tokkuri_server::tool::{Tool, ToolError};

use super::{Bed, json_text};

#[derive(Debug, Default)]
pub(super) struct Holds(Mutex<HashMap<&'static str, Hold>>);

/// One point.
#[derive(Debug)]
struct Hold {
    /// Which task is to be held next; `None` when nothing is.
    next: Option<Next>,
    /// How many are held now.
    held: u64,
    /// Counts the releases: whoever is held waits for the next one.
    released: watch::Sender<u64>,
}

#[derive(Debug)]
enum Next {
    Any,
    Task(TaskId),
}

impl Default for Hold {
    fn default() -> Self {
        Self { next: None, held: 0, released: watch::channel(0).0 }
    }
}

impl Holds {
    fn lock(&self) -> MutexGuard<'_, HashMap<&'static str, Hold>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Probe for Holds {
    fn at(&self, point: Point, task: TaskId) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        let mut holds = self.lock();
        let hold = holds.entry(point.name()).or_default();
        let meant = match &hold.next {
            Some(Next::Any) => true,
            Some(Next::Task(id)) => *id == task,
            None => false,
        };
        if !meant {
            return Box::pin(std::future::ready(()));
        }
        hold.next = None;
        hold.held += 1;
        let mut released = hold.released.subscribe();
        // Dropped while it is held, it is held no more.
        let standing = Standing { holds: self, point };
        Box::pin(async move {
            let _standing = standing;
            let _ = released.changed().await;
        })
    }
}

/// A task that stands at a point.
struct Standing<'a> {
    holds: &'a Holds,
    point: Point,
}

impl Drop for Standing<'_> {
    fn drop(&mut self) {
        if let Some(hold) = self.holds.lock().get_mut(self.point.name()) {
            hold.held -= 1;
        }
    }
}

#[derive(Deserialize, JsonSchema)]
struct At {
    point: String,
    #[serde(rename = "taskId")]
    task_id: Option<String>,
}

fn point(name: &str) -> Result<Point, ToolError> {
    let known = Point::ALL.into_iter().find(|point| point.name() == name);
    known.ok_or_else(|| {
        let names: Vec<_> = Point::ALL.iter().map(|point| point.name()).collect();
        ToolError::failed(format!("there is no point {name:?}; there are {}", names.join(", ")))
    })
}

pub(super) fn tools(bed: &Bed) -> Vec<Tool> {
    let (hold, release, held) = (bed.clone(), bed.clone(), bed.clone());
    vec![
        Tool::new("hold", move |args: At, _| {
            let bed = hold.clone();
            async move {
                let next = match args.task_id {
                    None => Next::Any,
                    Some(id) => Next::Task(id.parse()?),
                };
                bed.holds.lock().entry(point(&args.point)?.name()).or_default().next = Some(next);
                Ok("held")
            }
        })
        .description("Holds the next task that reaches the point"),
        Tool::new("release", move |args: At, _| {
            let bed = release.clone();
            async move {
                let mut holds = bed.holds.lock();
                let hold = holds.entry(point(&args.point)?.name()).or_default();
                hold.next = None;
                hold.released.send_modify(|releases| *releases += 1);
                Ok("released")
            }
        })
        .description("Lets go what is held at the point"),
        Tool::new("held", move |args: At, _| {
            let bed = held.clone();
            async move {
                let held = bed.holds.lock().entry(point(&args.point)?.name()).or_default().held;
                Ok(json_text(&serde_json::json!({ "held": held })))
            }
        })
        .description("How many tasks stand at the point"),
    ]
}
