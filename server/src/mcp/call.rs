//! `tools/call` of our own tools: one implementation, whichever door the call came through.

mod inline;
mod round;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokkuri_core::access::{Caller, Owner};
use tokkuri_core::admission::{Admission, AtTheLimit, Era, at_the_limit, decide};
use tokkuri_core::id::Key;
use tokkuri_core::procedure::Created;
use tokkuri_core::task::{Fault, Task};
use tokkuri_core::wire::{Declared, Json};

pub(crate) use inline::{Progress, Told};

use self::round::{End, play};
use crate::engine::probe::Point;
use crate::engine::{Closed, Engine, NewTask};
use crate::mcp::fault;
use crate::mcp::request_state::{Binding, RequestState};
use crate::tool::{
    AskError, Asks, CallInfo, Inline, PrepareContext, PrepareError, Prepared, Round, Session, Tool, ToolError,
    ToolResult, outcome,
};

/// What is needed to carry out calls.
#[derive(Debug)]
pub(crate) struct Calls {
    pub(crate) engine: Arc<Engine>,
    pub(crate) state: RequestState,
}

/// One call of one of our tools.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) tool: Arc<Tool>,
    pub(crate) arguments: Json,
    /// `inputResponses`, unread.
    pub(crate) responses: BTreeMap<Key, Json>,
    /// `requestState`, unverified.
    pub(crate) state: Option<String>,
    pub(crate) era: Era,
    pub(crate) declared: Declared,
    pub(crate) caller: Caller,
    pub(crate) info: CallInfo,
}

/// How the request that carries a call is told things while it runs.
pub(crate) struct Door {
    /// Fires when the client is gone.
    pub(crate) cancelled: CancellationToken,
    pub(crate) progress: Option<Arc<Progress>>,
    /// The session, in the earlier era.
    pub(crate) session: Option<Box<dyn Session>>,
}

/// What becomes of a call.
#[derive(Debug)]
pub(crate) enum Reply {
    /// It is a task, stored and readable.
    Task(Arc<Task<Json>>),
    /// A `CallToolResult`.
    Result(Json),
    /// The client is asked, and has to call again.
    InputRequired { requests: BTreeMap<Key, Json>, state: String },
    /// A JSON-RPC error.
    Fault(Fault<Json>),
    /// This node takes no new tasks now. Another one may.
    Closed(Closed),
}

/// What becomes of a call that may be a task.
#[derive(Debug)]
pub(crate) enum Admitted {
    /// This is the reply.
    Reply(Reply),
    /// It runs in the request.
    Inline,
}

impl Calls {
    /// Carries out a call to its end, as a task or in the request.
    pub(crate) async fn carry_out(self: &Arc<Self>, call: Call, door: Door) -> Reply {
        match self.admit(&call).await {
            Admitted::Reply(reply) => reply,
            Admitted::Inline => self.run_inline(call, door).await,
        }
    }

    /// Decides what becomes of a call, and creates its task if it is to be one. Dropping the future cancels that task: nobody
    /// would learn its name.
    pub(crate) async fn admit(self: &Arc<Self>, call: &Call) -> Admitted {
        let admission = decide(tokkuri_core::admission::Call {
            mode: call.tool.mode,
            tasks_enabled: self.engine.settings().enabled,
            era: call.era,
            declares_tasks: call.declared.tasks,
        });
        match admission {
            Admission::Inline => Admitted::Inline,
            Admission::NeedsTasks => Admitted::Reply(Reply::Fault(fault::needs_tasks())),
            Admission::NotInThisEra => Admitted::Reply(Reply::result(&ToolResult::error(format!(
                "The tool {:?} runs only as a task (io.modelcontextprotocol/tasks), which this client's version of MCP does not know. Use a client for MCP 2026-07-28.",
                call.tool.name
            )))),
            Admission::Task => match self.create(call).await {
                Ok(admitted) => admitted,
                Err(reply) => Admitted::Reply(reply),
            },
        }
    }

    /// The call is to be a task: its arguments are checked, its owner's room, then `prepare` runs, and only then is it created.
    async fn create(self: &Arc<Self>, call: &Call) -> Result<Admitted, Reply> {
        check_arguments(call)?;
        self.fits(&call.arguments)?;
        let full = |limit: u32| match at_the_limit(call.tool.mode) {
            AtTheLimit::Inline => Ok(Admitted::Inline),
            AtTheLimit::Refused => Err(Reply::Fault(fault::at_the_limit(limit))),
        };
        if let Some(closed) = self.engine.closed() {
            return Err(Reply::Closed(closed));
        }
        match self.engine.has_room(&call.caller.owner).await {
            Ok(true) => {}
            Ok(false) => return full(self.engine.settings().max_per_principal.unwrap_or(u32::MAX)),
            Err(unavailable) => return Err(Reply::Fault(fault::unavailable(&unavailable))),
        }
        // A task asks by itself, but its `prepare` asks on this request. Nothing can cancel that but the client's going, and
        // then this future is dropped.
        let round = self.round(call)?;
        let inline =
            Arc::new(Inline { cancelled: CancellationToken::new(), progress: None, round, asks: Asks::Replay });
        let prepared = self.prepare(call, &inline).await?;
        let arguments = prepared.unwrap_or_else(|| call.arguments.clone());
        self.fits(&arguments)?;
        let new = NewTask {
            tool: Arc::clone(&call.tool),
            arguments,
            caller: call.caller.clone(),
            capabilities: call.declared.asks,
            info: call.info.clone(),
        };
        match Creation::begin(&self.engine, new).finish().await {
            Created::Task(task) => Ok(Admitted::Reply(Reply::Task(task))),
            Created::AtTheLimit { limit } => full(limit),
            Created::Unavailable(unavailable) => Err(match self.engine.closed() {
                Some(closed) => Reply::Closed(closed),
                None => Reply::Fault(fault::unavailable(&unavailable)),
            }),
            Created::IdTaken => Err(Reply::Fault(Fault::internal("The server could not name the task."))),
        }
    }

    /// Whether a task may keep these arguments.
    fn fits(&self, arguments: &Json) -> Result<(), Reply> {
        let (bytes, limit) = (arguments.as_str().len(), self.engine.settings().max_argument_bytes);
        match bytes <= limit {
            true => Ok(()),
            false => Err(Reply::Fault(fault::too_many_bytes("arguments", bytes, limit))),
        }
    }

    /// The answers that this request and earlier ones brought.
    fn round(&self, call: &Call) -> Result<Round, Reply> {
        let earlier = match &call.state {
            None => BTreeMap::new(),
            Some(state) => {
                let owner = owner_text(&call.caller.owner);
                // Tampered with, expired, another caller's or another call's: the client is told one and the same.
                let opened = self.state.open(binding(call, &owner), state);
                let answers = opened.map_err(|error| Reply::Fault(fault::invalid_params(error.to_string())))?;
                answers.into_iter().map(|(key, answer)| (Key::from(key), answer)).collect()
            }
        };
        Ok(Round::new(tokkuri_core::replay::Replay::new(call.declared.asks, earlier, call.responses.clone())))
    }

    /// Runs the tool's `prepare`, if it has one, and gives the arguments that it left for the body.
    async fn prepare(&self, call: &Call, inline: &Arc<Inline>) -> Result<Option<Json>, Reply> {
        let Some(prepare) = call.tool.prepare.clone() else { return Ok(None) };
        let prepared = Prepared::default();
        let cx = PrepareContext {
            inline: Arc::clone(inline),
            info: Arc::new(call.info.clone()),
            prepared: prepared.clone(),
            capabilities: call.declared.asks,
        };
        let arguments = call.arguments.clone();
        let outcome = play(inline, Duration::ZERO, async move { prepare.prepare(arguments, cx).await }).await;
        let ended = match outcome {
            End::Returned(ended) => ended,
            End::Open | End::Gone => return Err(self.open(call, inline)),
            End::Panicked => return Err(Reply::Fault(round::panicked(&call.tool))),
        };
        match ended {
            Ok(()) => {
                inline.round.prepared();
                Ok(prepared.take())
            }
            Err(PrepareError::Ask(AskError::Suspended)) => Err(self.open(call, inline)),
            // The earlier era has no such error: there it is a result that says so, as any other that a tool cannot get over.
            Err(PrepareError::Ask(AskError::Undeclared(missing))) if call.era == Era::Modern => {
                Err(Reply::Fault(fault::needs(missing)))
            }
            Err(PrepareError::Ask(error)) => Err(self.settled(call, Err(error.into()))),
            Err(PrepareError::Refused(error)) => Err(self.settled(call, Err(error))),
            Err(PrepareError::Answered(result)) => Err(self.settled(call, Ok(result))),
        }
    }

    fn settled(&self, call: &Call, outcome: Result<ToolResult, ToolError>) -> Reply {
        match outcome::settle(&call.tool, self.engine.settings().max_result_bytes, outcome) {
            Ok(result) => Reply::Result(result),
            Err(fault) => Reply::Fault(fault),
        }
    }

    /// The reply of a round in which something is missing.
    fn open(&self, call: &Call, inline: &Inline) -> Reply {
        if let Asks::Session(_) = inline.asks {
            return Reply::Fault(Fault::internal("The tool gave up waiting."));
        }
        if let Some(misfit) = inline.round.misfit() {
            return Reply::Fault(fault::invalid_params(misfit));
        }
        let replay = inline.round.replay();
        let given = replay.given().iter().map(|(key, answer)| (key.to_string(), answer.clone())).collect();
        let owner = owner_text(&call.caller.owner);
        match self.state.seal(binding(call, &owner), &given) {
            Ok(state) => Reply::InputRequired { requests: replay.open().clone(), state },
            Err(error) => Reply::Fault(Fault::internal(format!("The state of the call could not be sealed: {error}"))),
        }
    }
}

impl Reply {
    pub(crate) fn result(result: &ToolResult) -> Self {
        match Json::of(result) {
            Ok(json) => Self::Result(json),
            Err(error) => Self::Fault(Fault::internal(format!("The result is not JSON: {error}"))),
        }
    }
}

/// What a request state is good for: this caller's call of this tool with these arguments.
fn binding<'a>(call: &'a Call, owner: &'a str) -> Binding<'a> {
    Binding { owner, method: "tools/call", name: &call.tool.name, arguments: Some(call.arguments.as_str()) }
}

/// A text that tells owners apart.
fn owner_text(owner: &Owner) -> String {
    format!("{:?}", (&owner.principal, &owner.server, &owner.client, &owner.resource))
}

/// Faults inside `arguments` are results that say so (MCP 2026-07-28, Tools § Error Handling).
fn check_arguments(call: &Call) -> Result<(), Reply> {
    let Some(schema) = &call.tool.input else { return Ok(()) };
    schema.check(&call.arguments).map_err(|faults| {
        Reply::result(&ToolResult::error(format!("The arguments do not fit the tool's input schema:\n{faults}")))
    })
}

/// A create under way. It goes on when this is dropped, and its task is then cancelled.
struct Creation {
    engine: Arc<Engine>,
    created: Option<tokio::task::JoinHandle<Created<Json>>>,
}

impl Creation {
    fn begin(engine: &Arc<Engine>, new: NewTask) -> Self {
        let creating = Arc::clone(engine);
        let created = tokio::spawn(async move { creating.create(new).await });
        Self { engine: Arc::clone(engine), created: Some(created) }
    }

    async fn finish(mut self) -> Created<Json> {
        let Some(created) = self.created.as_mut() else { unreachable!("a creation is finished once") };
        let created = created.await;
        self.created = None;
        match created {
            Ok(Created::Task(task)) => {
                let mut undelivered = Undelivered::new(&self.engine, &task);
                self.engine.at(Point::BeforeReply, task.id).await;
                undelivered.delivered();
                Created::Task(task)
            }
            Ok(created) => created,
            Err(error) => Created::Unavailable(tokkuri_core::store::Unavailable {
                why: format!("the create did not come to its end: {error}").into(),
                maybe_done: true,
            }),
        }
    }
}

impl Drop for Creation {
    fn drop(&mut self) {
        if let Some(created) = self.created.take() {
            let engine = Arc::clone(&self.engine);
            tokio::spawn(async move {
                if let Ok(Created::Task(task)) = created.await {
                    engine.abandon(task.id);
                }
            });
        }
    }
}

/// A task whose create reply is on its way. Dropped before it is [`delivered`](Self::delivered), it cancels the task.
#[derive(Debug)]
pub(crate) struct Undelivered {
    engine: Arc<Engine>,
    task: Option<tokkuri_core::id::TaskId>,
}

impl Undelivered {
    pub(crate) fn new(engine: &Arc<Engine>, task: &Task<Json>) -> Self {
        Self { engine: Arc::clone(engine), task: Some(task.id) }
    }

    pub(crate) fn delivered(&mut self) {
        self.task = None;
    }
}

impl Drop for Undelivered {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            self.engine.abandon(task);
        }
    }
}
