//! A call that runs in the request.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::round::{self, End, play};
use super::{Call, Calls, Door, Reply, check_arguments};
use crate::tool::{Asks, Inline, Mode, ProgressSink, RunContext, ToolError, outcome};

impl Calls {
    /// Runs the tool in the request, `prepare` first. A question that has no answer yet ends the round with a reply that
    /// carries it (modern era) or is put to the client at once (earlier era).
    pub(crate) async fn run_inline(self: &Arc<Self>, call: Call, door: Door) -> Reply {
        self.try_inline(call, door).await.unwrap_or_else(|reply| reply)
    }

    async fn try_inline(self: &Arc<Self>, call: Call, door: Door) -> Result<Reply, Reply> {
        check_arguments(&call)?;
        let round = self.round(&call)?;
        let asks = match door.session {
            Some(session) => Asks::Session(session),
            None => Asks::Replay,
        };
        let progress = door.progress.map(|progress| Box::new(Sink(progress)) as Box<dyn ProgressSink>);
        let inline = Arc::new(Inline { cancelled: door.cancelled, progress, round, asks });
        let arguments = self.prepare(&call, &inline).await?.unwrap_or_else(|| call.arguments.clone());

        let cx = RunContext {
            mode: Mode::Inline(Arc::clone(&inline)),
            info: Arc::new(call.info.clone()),
            capabilities: call.declared.asks,
            presence: Some(self.engine.present(call.caller.owner.clone(), None)),
        };
        let tool = Arc::clone(&call.tool);
        let run = async move { tool.body.run(arguments, cx).await };
        let outcome = match play(&inline, call.tool.grace, run).await {
            End::Returned(Err(ToolError(outcome::Kind::Suspended))) | End::Open => {
                return Err(self.open(&call, &inline));
            }
            End::Returned(outcome) => outcome,
            End::Panicked => return Err(Reply::Fault(round::panicked(&call.tool))),
            // Nobody reads this.
            End::Gone => Err(ToolError::failed("the client is gone")),
        };
        match outcome::settle(&call.tool, self.engine.settings().max_result_bytes, outcome) {
            Ok(result) => Ok(Reply::Result(result)),
            Err(fault) => Err(Reply::Fault(fault)),
        }
    }
}

/// The newest progress of a run in the request, on its way to the client: what comes faster than it can be sent is conflated.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    newest: Mutex<Option<Told>>,
    more: Notify,
}

/// One progress notification.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Told {
    pub(crate) done: u64,
    pub(crate) total: Option<u64>,
    pub(crate) message: String,
}

impl Progress {
    /// The shortest time between two notifications (MCP 2026-07-28, Progress: a server should limit their rate).
    pub(crate) const INTERVAL: Duration = Duration::from_millis(20);

    /// What is to be told next; waits until there is something.
    pub(crate) async fn next(&self) -> Told {
        loop {
            if let Some(told) = self.take() {
                return told;
            }
            self.more.notified().await;
        }
    }

    /// What is left to be told, if anything is.
    pub(crate) fn take(&self) -> Option<Told> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[derive(Debug)]
struct Sink(Arc<Progress>);

impl ProgressSink for Sink {
    fn progress(&self, done: u64, total: Option<u64>, message: &str) {
        let told = Told { done, total, message: message.to_owned() };
        *self.0.newest.lock().unwrap_or_else(PoisonError::into_inner) = Some(told);
        self.0.more.notify_one();
    }
}
