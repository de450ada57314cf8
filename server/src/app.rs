//! A server put together: tools, a handler of the user's, a store, and the settings.

mod serve;
mod settings;

use std::sync::Arc;

use rmcp::ServerHandler;
use rmcp::model::ServerConfig;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

pub use serve::Server;
pub use settings::Settings;

use crate::auth::{ByToken, FlatScopes, Guard, OwnerResolver, ScopeHierarchy, SharedHost};
use crate::config::AuthConfig;
use crate::engine::Engine;
use crate::engine::probe::Probe;
use crate::engine::recorder::Recorder;
use crate::listener::Tls;
use crate::mcp::budget::Budget;
use crate::mcp::call::Calls;
use crate::mcp::door::{Door, Reading};
use crate::mcp::handler::{Handler, Identity};
use crate::mcp::ladder::{self, Ladder};
use crate::mcp::listen::Listening;
use crate::mcp::request_state::RequestState;
use crate::store::{MemoryStore, Store};
use crate::telemetry::{self, Metrics};
use crate::tool::{AddToolError, TaskMode, Tool, ToolSet, wrapped};

/// The endpoint's path.
pub const ENDPOINT: &str = "/mcp";

/// A server to be: declare tools, choose a store, then [`build`](Self::build) it.
///
/// ```no_run
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use tokkuri_server::Tokkuri;
/// use tokkuri_server::tool::{RunContext, TaskMode, Tool};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Sleep {
///     seconds: u64,
/// }
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let sleep = Tool::new("sleep", |args: Sleep, cx: RunContext| async move {
///     for second in 1..=args.seconds {
///         tokio::time::sleep(std::time::Duration::from_secs(1)).await;
///         cx.progress(second, args.seconds, "");
///     }
///     Ok("good morning")
/// });
/// let server = Tokkuri::new().tool(sleep.task(TaskMode::Optional)).build()?;
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
/// server.serve(listener, std::future::pending()).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Tokkuri<H = NoHandler> {
    handler: Arc<H>,
    tools: Vec<Tool>,
    /// Tools that the handler was to run as tasks, and does not know.
    missing: Vec<String>,
    identity: Identity,
    settings: Settings,
    store: Option<Arc<dyn Store>>,
    owners: Arc<dyn OwnerResolver>,
    auth: Option<AuthConfig>,
    hierarchy: Arc<dyn ScopeHierarchy>,
    probe: Option<Arc<dyn Probe>>,
    recorder: Option<Recorder>,
    metrics: Option<Metrics>,
    tls: Option<Tls>,
    signals: bool,
}

/// A server without a handler of the user's: it has nothing but its tools.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHandler;

impl ServerHandler for NoHandler {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::default()
    }
}

/// Why a server cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A tool cannot be added.
    #[error(transparent)]
    Tool(#[from] AddToolError),
    /// A tool of the handler's is to run as tasks, but the handler does not say what its arguments are.
    #[error(
        "the handler's tool {0:?} cannot run as a task: the handler's get_tool does not know it, so its arguments could not be checked"
    )]
    NoSchema(String),
    /// A tool's schema asks for headers that clients would refuse to send.
    #[error("the tool {tool:?} would be dropped by clients: {reason}")]
    Headers {
        /// The tool.
        tool: String,
        /// Where and why.
        reason: String,
    },
    /// `state_secret` is too short.
    #[error("{0}")]
    Secret(String),
    /// A host or origin is none.
    #[error("{0}")]
    Allowed(String),
    /// `[auth]` cannot be kept: its key file cannot be read, say.
    #[error("{0}")]
    Auth(String),
    /// The operating system gives no random bits.
    #[error("the operating system gives no random bits: {0}")]
    Random(#[from] getrandom::Error),
}

impl Default for Tokkuri {
    fn default() -> Self {
        Self::new()
    }
}

impl Tokkuri {
    /// A server that has nothing yet.
    pub fn new() -> Self {
        Self::wrap(NoHandler)
    }
}

impl<H: ServerHandler> Tokkuri<H> {
    /// Keeps an rmcp handler: its prompts, resources and tools pass through, and our tools are merged into its list.
    pub fn wrap(handler: H) -> Self {
        Self {
            handler: Arc::new(handler),
            tools: Vec::new(),
            missing: Vec::new(),
            identity: Identity { name: "tokkuri".into(), instructions: None },
            settings: Settings::default(),
            store: None,
            owners: Arc::new(SharedHost),
            auth: None,
            hierarchy: Arc::new(FlatScopes),
            probe: None,
            recorder: None,
            metrics: None,
            tls: None,
            signals: true,
        }
    }

    /// Adds a tool.
    #[must_use]
    pub fn tool(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }

    /// Adds tools.
    #[must_use]
    pub fn tools(mut self, tools: impl IntoIterator<Item = Tool>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Runs a tool of the handler's as a task: what it asks for (`InputRequired`) become the task's questions, its progress the
    /// status message, and its cancellation token fires when the run has to stop. In the request it runs as it always did.
    ///
    /// The handler has to know the tool's schema ([`ServerHandler::get_tool`]), since arguments are checked before there is a
    /// task.
    #[must_use]
    pub fn task(self, name: &str, mode: TaskMode) -> Self {
        self.task_with(name, |tool| tool.task(mode))
    }

    /// The same, with everything that can be said about a tool: its grace, its time to live, whether it is restartable.
    #[must_use]
    pub fn task_with(mut self, name: &str, declare: impl FnOnce(Tool) -> Tool) -> Self {
        match self.handler.get_tool(name) {
            Some(listed) => {
                let tool = declare(wrapped::tool(&self.handler, &listed));
                self.tools.push(wrapped::with_grace(&self.handler, tool));
            }
            None => self.missing.push(name.to_owned()),
        }
        self
    }

    /// The same, for a tool whose first questions are asked on the request itself, before there is a task. A call that needs
    /// no answer is over with that request.
    #[must_use]
    pub fn task_asking_first(self, name: &str, mode: TaskMode) -> Self {
        let handler = Arc::clone(&self.handler);
        self.task_with(name, |tool| wrapped::asking_first(&handler, tool.task(mode)))
    }

    /// The server's name (default `tokkuri`). It is part of who owns a task, so changing it hides all tasks from their owners.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.identity.name = name.into();
        self
    }

    /// What clients are told about how to use the server.
    #[must_use]
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.identity.instructions = Some(instructions.into());
        self
    }

    /// All settings at once.
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Where tasks are kept. Default: in memory, gone with the process.
    #[must_use]
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.store = Some(store);
        self
    }

    /// Who owns what a request creates. Default: one shared owner ([`SharedHost`]).
    #[must_use]
    pub fn owners(mut self, owners: impl OwnerResolver) -> Self {
        self.owners = Arc::new(owners);
        self
    }

    /// Makes the endpoint an OAuth resource server: every HTTP request needs an access token as this says, and what it creates
    /// belongs to the token's principal and client. The resolver of [`owners`](Self::owners) is asked on stdio alone.
    ///
    /// The token goes no further than the door: neither tools nor the wrapped handler get to see it.
    #[must_use]
    pub fn auth(mut self, auth: AuthConfig) -> Self {
        self.auth = Some(auth);
        self
    }

    /// Which scopes imply which others. Default: none ([`FlatScopes`]).
    #[must_use]
    pub fn scope_hierarchy(mut self, hierarchy: impl ScopeHierarchy) -> Self {
        self.hierarchy = Arc::new(hierarchy);
        self
    }

    /// Speaks HTTPS on the listener. Default: plain HTTP.
    #[must_use]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Counts in this registry: for an application with a recorder of its own ([`Metrics::also_to`]). Default: a new one.
    #[must_use]
    pub fn metrics(mut self, metrics: Metrics) -> Self {
        self.metrics = Some(metrics);
        self
    }

    /// Neither sends signals to other nodes nor takes theirs: a switch of the test bed. What they bring sooner, looks at the store
    /// bring later.
    #[must_use]
    pub fn without_signals(mut self) -> Self {
        self.signals = false;
        self
    }

    /// Lets a test bed hold the node at its named points.
    #[must_use]
    pub fn probe(mut self, probe: Arc<dyn Probe>) -> Self {
        self.probe = Some(probe);
        self
    }

    /// Records what the node stores, for `tokkuri-model replay`: a switch of the test bed.
    #[must_use]
    pub fn recorder(mut self, recorder: Recorder) -> Self {
        self.recorder = Some(recorder);
        self
    }

    /// Puts it together.
    ///
    /// # Errors
    /// [`BuildError`]: two tools of one name, a schema that cannot be used, a setting that is none.
    pub fn build(self) -> Result<Server<H>, BuildError> {
        if let Some(name) = self.missing.into_iter().next() {
            return Err(BuildError::NoSchema(name));
        }
        let mut tools = ToolSet::new();
        for tool in self.tools {
            tools.add(tool)?;
        }
        let settings = self.settings;
        let store = self.store.unwrap_or_else(|| Arc::new(MemoryStore::new()));
        let kept = store.state_secret();
        let mut engine = Engine::new(store, tools, settings.tasks.clone())?;
        if let Some(probe) = self.probe {
            engine = engine.with_probe(probe);
        }
        if let Some(recorder) = self.recorder {
            engine = engine.with_recorder(recorder);
        }
        if let Some(metrics) = self.metrics {
            engine = engine.with_metrics(metrics);
        }
        let engine = Arc::new(engine);
        let counted = Arc::downgrade(&engine);
        engine.metrics().before_reading(move || {
            if let Some(engine) = counted.upgrade() {
                engine.take_stock();
            }
        });

        let secret = match settings.state_secret.clone().or_else(|| kept.map(Vec::from)) {
            Some(secret) => secret,
            None => {
                let mut secret = vec![0; 32];
                getrandom::fill(&mut secret)?;
                secret
            }
        };
        let state =
            RequestState::new(&secret, settings.state_ttl_ms).map_err(|error| BuildError::Secret(error.to_string()))?;
        let calls = Arc::new(Calls { engine: Arc::clone(&engine), state });
        let guard = match &self.auth {
            Some(auth) => Some(Arc::new(
                Guard::new(auth, &self.identity.name, ENDPOINT, self.hierarchy).map_err(BuildError::Auth)?,
            )),
            None => None,
        };
        let handler = Handler::new(self.handler, calls, Arc::new(ByToken(self.owners)), self.identity);

        let stopping = CancellationToken::new();
        let door = Arc::new(door(&settings, &engine, handler.clone(), guard, stopping.clone())?);
        let (connections, tls, signals) = (settings.connections, self.tls, self.signals);
        Ok(Server {
            engine,
            handler,
            door,
            stopping,
            shutdown: settings.shutdown,
            connections,
            tls,
            signals,
            grpc: None,
            admin: None,
        })
    }
}

fn door<H: ServerHandler>(
    settings: &Settings,
    engine: &Engine,
    handler: Handler<H>,
    guard: Option<Arc<Guard>>,
    stopping: CancellationToken,
) -> Result<Door<H>, BuildError> {
    let tasks = settings.tasks.enabled;
    let known = handler.clone();
    let mut rungs = ladder::Settings::new(Arc::new(move |method: &str| known.knows(method, tasks)));
    if !settings.allowed_hosts.is_empty() {
        rungs.allowed_hosts.clone_from(&settings.allowed_hosts);
    }
    rungs.allowed_origins.clone_from(&settings.allowed_origins);
    rungs.max_body_bytes = settings.max_body_bytes;
    rungs.max_depth = settings.max_depth;
    let ladder = Ladder::new(rungs).map_err(|error| BuildError::Allowed(error.to_string()))?;
    // Host, Origin and size are our ladder's affair; rmcp behind it is not asked again.
    let mut config = StreamableHttpServerConfig::default()
        .with_cancellation_token(stopping.clone())
        .with_sse_keep_alive(Some(settings.stream_keep_alive))
        .with_max_request_body_bytes(settings.max_body_bytes.saturating_add(1));
    config.allowed_hosts.clear();
    config = config.disable_allowed_origins();
    let factory = handler.clone();
    let sessions = Arc::new(handler.sessions(settings.max_sessions_per_principal));
    let rmcp = StreamableHttpService::new(move || Ok(factory.clone()), Arc::clone(&sessions), config);
    let budget = Budget::new(settings.max_buffered_bytes);
    let counted = Arc::downgrade(&budget);
    let buffered = engine.meters().buffered.clone();
    engine.metrics().before_reading(move || {
        if let Some(budget) = counted.upgrade() {
            telemetry::set(&buffered, budget.held());
        }
    });
    let reading = Reading { timeout: settings.request_timeout, budget };
    let open = engine.meters().streams_open.clone();
    let listening =
        Arc::new(Listening::new(settings.max_streams_per_principal, settings.stream_keep_alive, stopping, open));
    Door::new(ladder, handler, rmcp, sessions, guard, reading, listening)
}
