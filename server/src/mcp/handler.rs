//! The rmcp handler: everything that does not take our own short path comes through here, over HTTP and stdio alike.
//!
//! It stands around the handler that the user brought. Prompts, resources and plain tools pass through to that one; our tools
//! are merged into its list.

mod convert;

mod delegate;
mod session;

pub(crate) use convert::InTheRequest;

use std::collections::HashMap;
use std::sync::Arc;

use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CancelTaskParams, DiscoverResult, GetTaskParams,
    GetTaskResult, InitializeResult, ListToolsResult, PaginatedRequestParams, ServerConfig, TASKS_EXTENSION_ID,
    Tool as RmcpTool, UpdateTaskParams,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokkuri_core::access::Scopes;
use tokkuri_core::admission::{Era, is_listed};
use tokkuri_core::wire::Declared;

use crate::auth::OwnerResolver;
use crate::mcp::call::Calls;
use crate::mcp::fault;
use crate::mcp::sessions::OwnedSessions;
use crate::tool::Tool;

/// How long clients may keep what discovery and the list of tools say: neither changes while the process lives.
const LISTS_TTL_MS: u64 = 60_000;

/// The user's handler with tasks around it. Cheap to clone: rmcp takes one for each request.
pub(crate) struct Handler<H> {
    pub(super) inner: Arc<H>,
    pub(super) shared: Arc<Shared>,
}

impl<H> Clone for Handler<H> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), shared: Arc::clone(&self.shared) }
    }
}

impl<H> std::fmt::Debug for Handler<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handler").field("shared", &self.shared).finish_non_exhaustive()
    }
}

/// What all clones of a handler share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) calls: Arc<Calls>,
    pub(crate) owners: Arc<dyn OwnerResolver>,
    /// Name, version and instructions.
    pub(crate) identity: Identity,
    /// Our tools as rmcp lists them.
    pub(crate) listed: HashMap<String, RmcpTool>,
}

/// How the server introduces itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Identity {
    pub(crate) name: String,
    pub(crate) instructions: Option<String>,
}

impl<H: ServerHandler> Handler<H> {
    pub(crate) fn new(inner: Arc<H>, calls: Arc<Calls>, owners: Arc<dyn OwnerResolver>, identity: Identity) -> Self {
        let tools = calls.engine.tools().iter().filter(|tool| !tool.wrapped);
        let listed = tools.map(|tool| (tool.name().to_owned(), convert::tool(tool))).collect();
        Self { inner, shared: Arc::new(Shared { calls, owners, identity, listed }) }
    }

    /// Where the sessions of the earlier era are kept, each for the caller that opened it.
    pub(crate) fn sessions(&self, max_per_principal: usize) -> OwnedSessions {
        OwnedSessions::new(Arc::clone(&self.shared.owners), self.shared.identity.name.clone(), max_per_principal)
    }

    fn tasks_enabled(&self) -> bool {
        self.shared.calls.engine.settings().enabled
    }

    /// Whether the server has a method in the modern era.
    pub(crate) fn knows(&self, method: &str, tasks: bool) -> bool {
        let has = self.info().capabilities;
        match method {
            "server/discover" => true,
            "tools/list" | "tools/call" => has.tools.is_some(),
            "prompts/list" | "prompts/get" => has.prompts.is_some(),
            "resources/list" | "resources/templates/list" | "resources/read" => has.resources.is_some(),
            "completion/complete" => has.completions.is_some(),
            "tasks/get" | "tasks/update" | "tasks/cancel" => tasks,
            "subscriptions/listen" => {
                tasks || self.inner.accepted_subscription_filter(&rmcp::model::SubscriptionFilter::default()).is_some()
            }
            // Gone with the sessions of the earlier era, or with the tasks of 2025-11-25.
            "initialize" | "ping" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe" => false,
            _ if method.starts_with("tasks/") => false,
            // The user's handler may have methods of its own.
            _ => true,
        }
    }

    /// What the user's handler says of itself, with our tools and our name.
    fn introduced(&self, mut info: ServerConfig, era: Era) -> ServerConfig {
        let identity = &self.shared.identity;
        if !self.shared.listed.is_empty() {
            info.capabilities.tools.get_or_insert_default();
        }
        let extensions = info.capabilities.extensions.get_or_insert_default();
        extensions.remove(TASKS_EXTENSION_ID);
        if self.tasks_enabled() && era == Era::Modern {
            extensions.insert(TASKS_EXTENSION_ID.to_owned(), serde_json::Map::new());
        }
        if extensions.is_empty() {
            info.capabilities.extensions = None;
        }
        info.server_info.name.clone_from(&identity.name);
        env!("CARGO_PKG_VERSION").clone_into(&mut info.server_info.version);
        if identity.instructions.is_some() {
            info.instructions.clone_from(&identity.instructions);
        }
        info
    }
}

/// The era of a request.
pub(super) fn era(context: &RequestContext<RoleServer>) -> Era {
    match context.protocol_version() {
        Some(version) if !version.has_initialize() => Era::Modern,
        Some(_) | None => Era::Earlier,
    }
}

/// What a request declares, in core's words.
pub(super) fn declared(context: &RequestContext<RoleServer>) -> Declared {
    let capabilities = context.client_capabilities().unwrap_or_default();
    let text = serde_json::to_string(&capabilities).unwrap_or_default();
    tokkuri_core::wire::declared(&text).unwrap_or_default()
}

impl<H: ServerHandler> Handler<H> {
    pub(super) fn info(&self) -> ServerConfig {
        self.introduced(self.inner.get_info(), Era::Modern)
    }

    pub(super) fn initialized(&self, result: InitializeResult) -> InitializeResult {
        let version = result.protocol_version.clone();
        let mut result = self.introduced(result, Era::Earlier);
        result.protocol_version = version;
        result
    }

    pub(super) async fn discovered(&self, context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let own = DiscoverResult::from_server_info(self.supported_protocol_versions().into_owned(), self.info());
        let theirs = self.inner.discover(context).await?;
        Ok(own.with_ttl_ms(theirs.ttl_ms.max(LISTS_TTL_MS)).with_cache_scope(CacheScope::Public))
    }

    pub(super) async fn tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let era = era(&context);
        let scopes = convert::caller(self, &context).scopes;
        let mut list = match self.inner.get_info().capabilities.tools {
            Some(_) => self.inner.list_tools(request, context).await?,
            None => ListToolsResult::default(),
        };
        // Tools of the user's that run as tasks stand in their list already.
        let engine = &self.shared.calls.engine;
        let enabled = engine.settings().enabled;
        let shown = |tool: &Tool| is_listed(tool.mode(), enabled, era) && scopes.cover(&tool.scopes);
        let hidden = |name: &str| engine.tools().find(name).is_some_and(|tool| !shown(tool));
        list.tools.retain(|tool| !hidden(&tool.name));
        // Ours stand on the last page.
        if list.next_cursor.is_none() {
            let visible = engine.tools().iter().filter(|tool| !tool.wrapped && shown(tool));
            list.tools.extend(visible.filter_map(|tool| self.shared.listed.get(tool.name()).cloned()));
        }
        if era == Era::Modern {
            list.ttl_ms = Some(list.ttl_ms.unwrap_or(LISTS_TTL_MS).min(LISTS_TTL_MS));
            match scopes {
                Scopes::Unrestricted => _ = list.cache_scope.get_or_insert(CacheScope::Public),
                // Another caller may have another list.
                Scopes::Granted(_) => list.cache_scope = Some(CacheScope::Private),
            }
        }
        Ok(list)
    }

    pub(super) async fn call(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = self.shared.calls.engine.tools().find(&request.name).cloned() else {
            if self.inner.get_info().capabilities.tools.is_none() {
                return Err(convert::error(&fault::no_such_tool(&request.name)));
            }
            return self.inner.call_tool(request, context).await;
        };
        convert::call(self, tool, request, context).await
    }

    fn is_tasks_request(&self, context: &RequestContext<RoleServer>) -> Result<(), ErrorData> {
        if !self.tasks_enabled() || era(context) == Era::Earlier {
            return Err(ErrorData::method_not_found::<rmcp::model::GetTaskMethod>());
        }
        if !declared(context).tasks {
            return Err(convert::error(&fault::needs_tasks()));
        }
        Ok(())
    }

    pub(super) async fn task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.is_tasks_request(&context)?;
        convert::get(self, &request.task_id, &context).await
    }

    pub(super) async fn update(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.is_tasks_request(&context)?;
        convert::update(self, request, &context).await
    }

    pub(super) async fn cancel(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.is_tasks_request(&context)?;
        convert::cancel(self, &request.task_id, &context).await
    }
}
