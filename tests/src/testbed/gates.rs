//! Gates: a run waits at one until it is opened.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::watch;
use tokkuri_server::tool::{TaskMode, Tool};

use super::Bed;

#[derive(Debug, Default)]
pub(super) struct Gates(Mutex<HashMap<String, watch::Sender<bool>>>);

impl Gates {
    fn gate(&self, name: &str) -> watch::Sender<bool> {
        let mut gates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        gates.entry(name.to_owned()).or_insert_with(|| watch::channel(false).0).clone()
    }
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

pub(super) fn tools(bed: &Bed) -> Vec<Tool> {
    let (at, opened) = (bed.clone(), bed.clone());
    vec![
        Tool::new("gate", move |args: Name, _| {
            let (alive, mut gate) = (at.alive(), at.gates.gate(&args.name).subscribe());
            async move {
                let _alive = alive;
                gate.wait_for(|open| *open).await?;
                Ok("open")
            }
        })
        .description("Waits until the gate is opened")
        .task(TaskMode::Optional),
        Tool::new("open", move |args: Name, _| {
            opened.gates.gate(&args.name).send_replace(true);
            async move { Ok("opened") }
        })
        .description("Opens a gate for good"),
    ]
}
