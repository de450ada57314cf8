//! The other filters of a listen: rmcp serves them on a stream of its own, whose events go on on ours.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Response, StatusCode};
use http_body::Body as _;
use http_body_util::BodyExt;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::event::{SUBSCRIPTION_ID, Wire};
use crate::client::Events;

/// What was granted of the other filters.
pub(crate) type Granted = BTreeMap<String, Box<RawValue>>;

/// What may stand on a stream besides tasks (MCP 2026-07-28, subscriptions). Progress and log messages may not.
const PASSED_ON: [&str; 4] = [
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
    "notifications/resources/updated",
];

/// rmcp's stream after its acknowledgement.
#[derive(Debug)]
pub(crate) struct Others {
    body: Body,
    events: Events,
}

/// A message of rmcp's.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: BTreeMap<Cow<'a, str>, &'a RawValue>,
}

impl Others {
    /// Reads rmcp's answer up to its acknowledgement. `None` if it is a refusal: then none of the other filters is served here,
    /// and what is not served is not granted.
    pub(crate) async fn open(response: Response<Body>) -> Option<(Granted, Self)> {
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if response.status() != StatusCode::OK || !kind.starts_with("text/event-stream") {
            tracing::debug!(status = %response.status(), "the handler serves none of the other filters");
            return None;
        }
        let mut others = Self { body: response.into_body(), events: Events::default() };
        let data = loop {
            if let Some(data) = others.events.next() {
                break data;
            }
            let frame = others.body.frame().await?.ok()?;
            if let Ok(data) = frame.into_data() {
                others.events.push(&data);
            }
        };
        let message: Message<'_> = serde_json::from_slice(&data).ok()?;
        if message.method.as_deref() != Some("notifications/subscriptions/acknowledged") {
            return None;
        }
        let mut granted: Granted = serde_json::from_str(message.params.get("notifications")?.get()).ok()?;
        granted.remove("taskIds");
        Some((granted, others))
    }

    /// The next event to pass on; none once rmcp's stream has ended.
    pub(super) fn poll_next(&mut self, wire: &Wire, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            while let Some(data) = self.events.next() {
                let Ok(message) = serde_json::from_slice::<Message<'_>>(&data) else { continue };
                match &message.method {
                    // Its result: the stream is over for rmcp, not for us.
                    None => return Poll::Ready(None),
                    Some(method) if PASSED_ON.contains(&&**method) => {
                        return Poll::Ready(Some(wire.notification(method, &tagged(&message.params, wire))));
                    }
                    Some(_) => {}
                }
            }
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.events.push(&data);
                    }
                }
                Some(Err(_)) | None => return Poll::Ready(None),
            }
        }
    }
}

/// The same parameters with the subscription's id as the client spelled it.
fn tagged(params: &BTreeMap<Cow<'_, str>, &RawValue>, wire: &Wire) -> BTreeMap<String, Box<RawValue>> {
    let mut tagged: BTreeMap<String, Box<RawValue>> =
        params.iter().map(|(key, raw)| (key.clone().into_owned(), (*raw).to_owned())).collect();
    let meta = tagged.get("_meta").and_then(|raw| serde_json::from_str(raw.get()).ok());
    let mut meta: BTreeMap<String, Box<RawValue>> = meta.unwrap_or_default();
    meta.insert(SUBSCRIPTION_ID.to_owned(), wire.id().to_owned());
    let meta = serde_json::value::to_raw_value(&meta).expect("an object of JSON texts has a form in JSON");
    tagged.insert("_meta".to_owned(), meta);
    tagged
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::stream;
    use http_body::Frame;
    use http_body_util::StreamBody;

    use super::*;
    use crate::mcp::envelope::RawId;

    fn response(chunks: Vec<&'static str>) -> Response<Body> {
        let frames = chunks.into_iter().map(|chunk| Ok::<_, Infallible>(Frame::data(Bytes::from(chunk))));
        let body = Body::new(StreamBody::new(stream::iter(frames)));
        Response::builder().header(CONTENT_TYPE, "text/event-stream").body(body).unwrap()
    }

    const ACK: &str = concat!(
        ": hello\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",",
        "\"params\":{\"_meta\":{},\"notifications\":{\"toolsListChanged\":true,\"taskIds\":[]}}}\n\n"
    );

    #[tokio::test]
    async fn only_what_may_stand_on_a_stream_is_passed_on_and_tagged() {
        let chunks = vec![
            ACK,
            "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\"}}\n\n",
            "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\",",
            "\"params\":{\"uri\":\"u\",\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":0,\"x\":1}}}\n\n",
            "data: {\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}\n\n",
        ];
        let (granted, mut others) = Others::open(response(chunks)).await.unwrap();
        assert_eq!(granted.keys().collect::<Vec<_>>(), ["toolsListChanged"]);
        let wire = Wire::new(RawId::of(serde_json::from_str("99999999999999999999").unwrap()).unwrap());
        let event = std::future::poll_fn(|cx| others.poll_next(&wire, cx)).await.unwrap();
        assert_eq!(
            event,
            concat!(
                "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\",\"params\":",
                "{\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":99999999999999999999,\"x\":1},\"uri\":\"u\"}}\n\n"
            )
        );
        assert_eq!(std::future::poll_fn(|cx| others.poll_next(&wire, cx)).await, None);
    }

    #[tokio::test]
    async fn a_refusal_grants_nothing() {
        let mut refused = response(vec![ACK]);
        *refused.status_mut() = StatusCode::NOT_FOUND;
        assert!(Others::open(refused).await.is_none());
        assert!(Others::open(response(vec!["data: {\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{}}\n\n"])).await.is_none());
        assert!(Others::open(response(vec![])).await.is_none());
    }
}
