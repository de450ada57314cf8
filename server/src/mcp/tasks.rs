//! `tasks/get`, `tasks/update` and `tasks/cancel` on the short path: borrowed parameters in, bytes out.

use http::StatusCode;
use http::header::{HeaderValue, RETRY_AFTER};
use serde::Deserialize;
use tokkuri_core::access::Caller;
use tokkuri_core::id::{Key, TaskId};
use tokkuri_core::procedure::{Answered, Written};
use tokkuri_core::task::Fault;
use tokkuri_core::wire::{ACK, CancelParams, GetParams, Json, UpdateParams};

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::auth::Challenges;
use crate::engine::{Closed, Engine};
use crate::mcp::fault;
use crate::mcp::ladder::Call;
use crate::mcp::refusal::{self, Answer};

/// `tasks/get`.
pub(super) async fn get(engine: &Arc<Engine>, challenges: &Challenges, call: &Call<'_>, caller: Caller) -> Answer {
    let id = match params::<GetParams<'_>>(call).and_then(|params| task_id(&params.task_id)) {
        Ok(id) => id,
        Err(fault) => return refuse(call, &fault),
    };
    match engine.get(id, caller).await {
        Answered::Task(task) => refusal::task(call.id, &task),
        Answered::Absent => refuse(call, &fault::no_such_task()),
        Answered::LacksScope { needed } => challenges.lacks_scope(&needed),
        Answered::Unavailable(unavailable) => refuse(call, &fault::unavailable(&unavailable)),
    }
}

/// `tasks/update`.
pub(super) async fn update(engine: &Arc<Engine>, challenges: &Challenges, call: &Call<'_>, caller: Caller) -> Answer {
    let (id, answers) = match params::<UpdateParams<'_>>(call)
        .and_then(|params| task_id(&params.task_id).map(|id| (id, params.answers())))
    {
        Ok(read) => read,
        Err(fault) => return refuse(call, &fault),
    };
    if let Err(fault) = fit(engine, &answers) {
        return refuse(call, &fault);
    }
    acknowledge(challenges, call, engine.update(id, caller, answers).await)
}

/// Whether the answers of one update are no more than a task may keep of them.
pub(crate) fn fit(engine: &Engine, answers: &BTreeMap<Key, Json>) -> Result<(), Fault<Json>> {
    let bytes = answers.values().map(|answer| answer.as_str().len()).sum();
    let limit = engine.settings().max_argument_bytes;
    if bytes <= limit { Ok(()) } else { Err(fault::too_many_bytes("answers", bytes, limit)) }
}

/// `tasks/cancel`.
pub(super) async fn cancel(engine: &Arc<Engine>, challenges: &Challenges, call: &Call<'_>, caller: Caller) -> Answer {
    let id = match params::<CancelParams<'_>>(call).and_then(|params| task_id(&params.task_id)) {
        Ok(id) => id,
        Err(fault) => return refuse(call, &fault),
    };
    acknowledge(challenges, call, engine.cancel(id, caller).await)
}

fn acknowledge(challenges: &Challenges, call: &Call<'_>, written: Written<Json>) -> Answer {
    match written {
        Written::Done(_) => refusal::result_text(call.id, ACK),
        Written::Absent => refuse(call, &fault::no_such_task()),
        Written::LacksScope { needed } => challenges.lacks_scope(&needed),
        Written::Rejected { why, .. } => refuse(call, &fault::rejected(&why)),
        Written::Unavailable(unavailable) => refuse(call, &fault::unavailable(&unavailable)),
    }
}

/// Reads the parameters of a method.
pub(super) fn params<'a, T: Deserialize<'a>>(call: &Call<'a>) -> Result<T, Fault<Json>> {
    serde_json::from_str(call.params.get()).map_err(|error| fault::invalid_params(format!("params: {error}")))
}

/// What is not an id names no task: the answer is that of any unknown one.
fn task_id(text: &str) -> Result<TaskId, Fault<Json>> {
    text.parse().map_err(|_| fault::no_such_task())
}

/// The node takes no new tasks: 503, so that whatever balances between the nodes, or the client itself, tries again.
pub(super) fn closed(call: &Call<'_>, closed: Closed) -> Answer {
    let mut answer = refuse(call, &fault::closed(closed));
    *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    answer
}

/// A JSON-RPC error for a request.
pub(super) fn refuse(call: &Call<'_>, fault: &Fault<Json>) -> Answer {
    refusal::fault(call.id, fault)
}
