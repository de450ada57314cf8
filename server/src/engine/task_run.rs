//! What a run has of its task: the handle behind [`RunContext`](crate::tool::RunContext).

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;

use futures_util::future::{Either, select};
use tokio::sync::Mutex;
use tokkuri_core::Text;
use tokkuri_core::id::{Attempt, Key, TaskId};
use tokkuri_core::procedure::{Write, Written};
use tokkuri_core::run::Stop;
use tokkuri_core::task::{Command, Rejected};
use tokkuri_core::wire::Json;

use crate::engine::Engine;
use crate::engine::probe::Point;
use crate::tool::AskError;

#[derive(Clone)]
pub(crate) struct TaskRun {
    pub(super) engine: Arc<Engine>,
    pub(super) id: TaskId,
    pub(super) attempt: Attempt,
    /// Questions of one run are stored one after another. At once, each but the first would only meet conflicts, as often as there are
    /// others.
    asking: Arc<Mutex<()>>,
}

impl fmt::Debug for TaskRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskRun").field("id", &self.id).field("attempt", &self.attempt).finish()
    }
}

impl TaskRun {
    pub(super) fn new(engine: Arc<Engine>, id: TaskId, attempt: Attempt) -> Self {
        Self { engine, id, attempt, asking: Arc::default() }
    }

    pub(crate) const fn id(&self) -> TaskId {
        self.id
    }

    pub(crate) fn progress(&self, message: Text) {
        self.engine.registry.progress(self.id, self.attempt, message);
    }

    pub(crate) fn stop(&self) -> Option<Stop> {
        self.engine.registry.stop(self.id, self.attempt)
    }

    pub(crate) async fn stopped(&self) -> Stop {
        let mut waiter = self.engine.registry.waiter(self.id, self.attempt);
        poll_fn(|cx| waiter.poll_stop(cx)).await
    }

    /// Stores the question, then waits for its answer or for the run's stop.
    pub(crate) async fn ask(&self, key: Key, request: Json) -> Result<Json, AskError> {
        if let Some(stop) = self.stop() {
            return Err(AskError::Stopped(stop));
        }
        self.engine.at(Point::BeforeAskWrite, self.id).await;
        let command = Command::Ask { by: self.attempt, key: key.clone(), request: request.clone() };
        let store = async {
            let _turn = self.asking.lock().await;
            self.engine.drive(Write::question(self.id, command)).await
        };
        let stopped = std::pin::pin!(self.stopped());
        let stored = match select(stopped, Box::pin(store)).await {
            Either::Left((stop, _)) => return Err(AskError::Stopped(stop)),
            Either::Right((stored, _)) => stored,
        };
        match stored {
            Written::Done(task) => {
                let asked = task.live().and_then(|live| live.questions.get(&key));
                if asked.is_some_and(|question| question.request != request) {
                    tracing::warn!(task = %self.id, %key, "another question under a used key: its first answer counts");
                }
            }
            Written::Rejected { why: Rejected::Undeclared { missing }, .. } => {
                return Err(AskError::Undeclared(missing));
            }
            Written::Rejected { why: Rejected::TooManyQuestions { limit }, .. } => {
                return Err(AskError::TooMany { limit });
            }
            // The task has ended or is another attempt's: the reading that came with it stops this run.
            Written::Rejected { .. } | Written::Absent | Written::LacksScope { .. } => {}
            Written::Unavailable(unavailable) => return Err(AskError::Store(unavailable.why.to_string())),
        }
        self.engine.at(Point::AfterAskWrite, self.id).await;
        let mut waiter = self.engine.registry.waiter(self.id, self.attempt);
        poll_fn(|cx| waiter.poll_answer(&key, cx)).await.map_err(AskError::Stopped)
    }
}
