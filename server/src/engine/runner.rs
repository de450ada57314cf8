//! One run of one attempt: spawn, watch, stop, and store how it ended.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{Either, select};
use tokkuri_core::procedure::Write;
use tokkuri_core::run::{ProgressDue, Stop};
use tokkuri_core::task::{Command, Fault, Task};
use tokkuri_core::wire::Json;

use crate::engine::places::{Ticket, WAITING};
use crate::engine::probe::Point;
use crate::engine::{Engine, Presence, TaskRun};
use crate::tool::{CallInfo, Mode, RunContext, Tool, ToolError, ToolResult, outcome};

/// What a client learns of a panic. What the panic said stays in the log.
const PANICKED: &str = "The tool stopped unexpectedly.";

/// Runs a task that is stored and registered to its end, once it has a place.
pub(super) async fn run(engine: Arc<Engine>, task: Arc<Task<Json>>, mut ticket: Ticket) {
    let handle = TaskRun::new(Arc::clone(&engine), task.id, task.attempt);
    let waited = match wait_for_turn(&handle, &task, &mut ticket).await {
        Ok(()) if engine.registry.begin(task.id, task.attempt) => Ok(()),
        Ok(()) => Err(handle.stop().unwrap_or(Stop::Lost)),
        Err(stop) => Err(stop),
    };
    let began = waited.is_ok();
    // Held here to the end as well: the next run starts when the end of this one is stored.
    let presence = engine.present(task.origin.owner.clone(), Some(ticket));
    let ended = match (waited, engine.tools.find(&task.origin.tool).cloned()) {
        (Err(stop), _) => Ended::Stopped(stop),
        (Ok(()), Some(tool)) => attend(&handle, &tool, &task, &presence).await,
        // It was created by a process that had the tool.
        (Ok(()), None) => {
            Ended::Of(Err(Fault::internal(format!("This server has no tool {:?} any more.", task.origin.tool))))
        }
    };
    if let Some(command) = end_command(&handle, &task, began, ended) {
        engine.at(Point::BeforeEndWrite, task.id).await;
        // Boxed, like the other write below: a run spends its life waiting, and should not hold the room for what it does at
        // its end.
        Box::pin(engine.drive(Write::end(task.id, command))).await;
    }
    engine.registry.release(task.id, task.attempt);
    drop(presence);
}

/// Over once the run has a place, or will never need one.
async fn wait_for_turn(handle: &TaskRun, task: &Task<Json>, ticket: &mut Ticket) -> Result<(), Stop> {
    if !ticket.waits() {
        return Ok(());
    }
    let TaskRun { engine, id, attempt, .. } = handle;
    let say = |message: &str| {
        let command = Command::Progress { by: *attempt, message: message.into() };
        Box::pin(engine.drive(Write::report(*id, command)))
    };
    // A new task was stored with these words; one that was taken over was not.
    if task.status_message.as_deref() != Some(WAITING) {
        say(WAITING).await;
    }
    let stopped = std::pin::pin!(handle.stopped());
    // The stop is looked at first: a task that was cancelled while it waited never starts.
    if let Either::Left((stop, _)) = select(stopped, std::pin::pin!(ticket.turn())).await {
        return Err(stop);
    }
    say("").await;
    Ok(())
}

/// How a run came to its end.
enum Ended {
    /// By itself.
    Of(Result<Json, Fault<Json>>),
    /// It was told to stop, and whatever it returned is thrown away.
    Stopped(Stop),
}

/// Polls the body until it ends or has to stop, and writes its progress meanwhile.
async fn attend(handle: &TaskRun, tool: &Arc<Tool>, task: &Arc<Task<Json>>, presence: &Arc<Presence>) -> Ended {
    let Some(live) = task.live() else { return Ended::Stopped(Stop::Lost) };
    let origin = &task.origin;
    let info = CallInfo {
        tool: origin.tool.clone(),
        principal: origin.owner.principal.clone(),
        client: origin.owner.client.clone(),
        resource: origin.owner.resource.clone(),
        scopes: origin.granted.clone(),
        traceparent: origin.traceparent.clone(),
    };
    let cx = RunContext {
        mode: Mode::Task(handle.clone()),
        info: Arc::new(info),
        capabilities: origin.capabilities,
        presence: Some(Arc::clone(presence)),
    };
    let (body, arguments) = (Arc::clone(tool), live.arguments.clone());
    // Everything of the tool's own happens inside the guarded future: also what it does before its first await.
    let run = Box::pin(async move { body.body.run(arguments, cx).await });
    let mut run = AssertUnwindSafe(run).catch_unwind();

    let ended = {
        let stopped = std::pin::pin!(handle.stopped());
        let progress = std::pin::pin!(write_progress(handle));
        // The stop is looked at first, each time anything happens: after it, nothing of the body runs.
        let watch = select(stopped, progress);
        match select(watch, &mut run).await {
            Either::Left((Either::Left((stop, _)), _)) => Err(stop),
            Either::Left((Either::Right(((), _)), _)) => Err(Stop::Lost),
            Either::Right((outcome, _)) => Ok(outcome),
        }
    };
    let ended = match ended {
        // A stop that came during its last steps counts: it may have returned because of it.
        Ok(outcome) => match handle.stop() {
            Some(stop) => Ended::Stopped(stop),
            None => Ended::Of(settle(handle, tool, outcome)),
        },
        Err(stop) => {
            if stop.leaves_grace() && !tool.grace.is_zero() {
                let _ = tokio::time::timeout(tool.grace, &mut run).await;
            }
            Ended::Stopped(stop)
        }
    };
    // Dropping the body runs code of the tool's, which may panic as well.
    if catch_unwind(AssertUnwindSafe(|| drop(run))).is_err() {
        tracing::error!(task = %task.id, tool = %tool.name, "the tool panicked while it was dropped");
    }
    ended
}

/// Writes progress as it becomes due; never ends by itself.
async fn write_progress(handle: &TaskRun) {
    let TaskRun { engine, id, attempt, .. } = handle;
    let mut waiter = engine.registry.waiter(*id, *attempt);
    loop {
        match poll_fn(|cx| waiter.poll_progress(engine.uptime(), cx)).await {
            ProgressDue::Write(message) => {
                let command = Command::Progress { by: *attempt, message };
                // Whatever comes of it, the next one or the end says more.
                Box::pin(engine.drive(Write::report(*id, command))).await;
                engine.registry.progress_written(*id, *attempt);
            }
            ProgressDue::At(moment) => {
                tokio::time::sleep(Duration::from_millis(moment.since(engine.uptime()).max(1))).await;
            }
            // The attempt is not in the table any more; its stop says so as well.
            ProgressDue::Nothing => std::future::pending().await,
        }
    }
}

type Outcome = Result<Result<ToolResult, ToolError>, Box<dyn std::any::Any + Send>>;

/// What the body returned, as the task's result or error.
fn settle(handle: &TaskRun, tool: &Tool, outcome: Outcome) -> Result<Json, Fault<Json>> {
    match outcome {
        Ok(outcome) => outcome::settle(tool, handle.engine.settings.max_result_bytes, outcome),
        Err(_) => {
            tracing::error!(task = %handle.id, tool = %tool.name, "the tool panicked");
            Err(Fault::internal(PANICKED))
        }
    }
}

/// What is to be stored of the end; nothing if the store knows of it already. Whether what comes to its end now still counts, the
/// task says when it is stored.
fn end_command(handle: &TaskRun, task: &Task<Json>, began: bool, ended: Ended) -> Option<Command<Json>> {
    let by = task.attempt;
    match ended {
        Ended::Stopped(stop) => stop.end(by, began, task.origin.restartable),
        Ended::Of(Ok(result)) => {
            let message = handle.engine.registry.finish(task.id, by);
            Some(Command::Complete { by, result, message })
        }
        Ended::Of(Err(fault)) => Some(Command::Fail { by, fault }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_waits_is_small() {
        fn size<F: Future>(_: impl FnOnce(Arc<Engine>, Arc<Task<Json>>, Ticket) -> F) -> usize {
            size_of::<F>()
        }
        assert!(size(run) <= 768, "a run takes {} bytes beside its tool's own", size(run));
    }
}
