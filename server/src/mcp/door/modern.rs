//! Requests of the modern era: which of them are ours, and what becomes of the others.

use axum::body::Body;
use bytes::Bytes;
use http::Response;
use http::request::Parts;
use http_body_util::Full;
use rmcp::ServerHandler;

use super::Door;
use crate::auth;
use crate::engine::followers::NotFollowed;
use crate::mcp::handler::InTheRequest;
use crate::mcp::ladder::Call;
use crate::mcp::listen::{self, Opening, Others, Permit, Permitted};
use crate::mcp::refusal::{Answer, Refusal};
use crate::mcp::until::Until;
use crate::mcp::{fault, tasks};

/// Where a request of the modern era goes.
pub(super) enum Way {
    /// This is the answer.
    Short(Answer),
    /// This is the answer, and it has to arrive.
    Created(Box<Response<Body>>),
    /// This is the answer, for as long as it lasts.
    Stream(Box<Response<Body>>),
    /// Something is wrong that the ladder could not see.
    Refused(Box<Refusal>),
    /// To rmcp, whose answer is a stream that holds this place.
    Listen(Permit),
    /// To rmcp.
    Long,
    /// To rmcp, to run in the request whatever its mode says.
    Inline,
}

impl<H: ServerHandler> Door<H> {
    /// The answer to a request.
    pub(super) async fn modern(
        &self,
        mut parts: Parts,
        body: &Bytes,
        call: &Call<'_>,
    ) -> Result<Response<Body>, Refusal> {
        match self.short_path(&parts, call).await {
            Way::Short(answer) => Ok(answer.map(Body::new)),
            Way::Created(response) | Way::Stream(response) => Ok(*response),
            Way::Refused(refusal) => Err(*refusal),
            Way::Listen(permit) => {
                let expires = auth::expires(&parts);
                let response = self.pass_on(parts, Full::new(body.clone())).await;
                Ok(response.map(|body| {
                    let body = Body::new(Permitted::new(body, permit));
                    match expires {
                        Some(end) => Body::new(Until::new(body, end)),
                        None => body,
                    }
                }))
            }
            Way::Inline => {
                parts.extensions.insert(InTheRequest);
                self.long_way(parts, body, Some(call.id)).await
            }
            Way::Long => self.long_way(parts, body, Some(call.id)).await,
        }
    }

    /// What is ours of the modern era; everything else goes the long way, through rmcp.
    async fn short_path(&self, parts: &Parts, call: &Call<'_>) -> Way {
        // Calls of tools say what else they need.
        if call.method != "tools/call"
            && let Some(answer) = self.lacks_scope(&self.caller(parts), &[])
        {
            return Way::Short(answer);
        }
        let engine = &self.handler.shared.calls.engine;
        let (caller, challenges) = (|| self.caller(parts), &self.challenges);
        match &*call.method {
            "tasks/get" | "tasks/update" | "tasks/cancel" if !call.meta.declared.tasks => {
                Way::Short(tasks::refuse(call, &fault::needs_tasks()))
            }
            "tasks/get" => Way::Short(tasks::get(engine, challenges, call, caller()).await),
            "tasks/update" => Way::Short(tasks::update(engine, challenges, call, caller()).await),
            "tasks/cancel" => Way::Short(tasks::cancel(engine, challenges, call, caller()).await),
            "subscriptions/listen" => self.listen(parts, call).await,
            "tools/call" => self.tool_call(parts, call).await,
            "prompts/get" | "resources/read" if call.name.is_none() => Way::Short(tasks::refuse(
                call,
                &fault::invalid_params("params: what is asked for is missing or no string"),
            )),
            _ => Way::Long,
        }
    }

    async fn listen(&self, parts: &Parts, call: &Call<'_>) -> Way {
        let engine = &self.handler.shared.calls.engine;
        let enabled = engine.settings().enabled;
        if enabled && !call.meta.declared.tasks && listen::names_tasks(call) {
            return Way::Short(tasks::refuse(call, &fault::needs_tasks()));
        }
        let asked = match listen::read(call, enabled) {
            Ok(asked) => asked,
            Err(fault) => return Way::Short(tasks::refuse(call, &fault)),
        };
        if let Err(refusal) = listen::check_accepted(&parts.headers, call.id) {
            return Way::Refused(Box::new(refusal));
        }
        let caller = self.caller(parts);
        let permit = match self.listening.permit(&caller) {
            Ok(permit) => permit,
            Err(fault) => return Way::Short(tasks::refuse(call, &fault)),
        };
        let Some(tasks) = asked.tasks else { return Way::Listen(permit) };
        let others = match asked.others {
            Some(request) => Others::open(self.pass_on(parts.clone(), Full::new(request)).await).await,
            None => None,
        };
        let opening = Opening { caller, tasks, others, permit, until: auth::expires(parts) };
        match self.listening.open(engine, call.id, opening).await {
            Ok(stream) => Way::Stream(Box::new(listen::response(stream).map(Body::new))),
            Err(NotFollowed::LacksScope { needed }) => Way::Short(self.challenges.lacks_scope(&needed)),
            Err(NotFollowed::Unavailable(unavailable)) => {
                Way::Short(tasks::refuse(call, &fault::unavailable(&unavailable)))
            }
        }
    }
}
