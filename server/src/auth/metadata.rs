//! Protected-resource metadata (RFC 9728): where clients learn who issues tokens for this server.
//!
//! It is public: it stands at the well-known path of each resource and at the root, without authentication and for every origin.

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::HeaderValue;
use http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, CONTENT_TYPE, HOST};
use http::uri::Uri;
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::config::AuthConfig;

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// The documents of one endpoint.
#[derive(Clone, Debug)]
pub(crate) struct Metadata {
    /// One for each resource, the canonical one first.
    documents: Arc<[Document]>,
    /// The path of the endpoint itself.
    endpoint: &'static str,
}

#[derive(Clone, Debug)]
struct Document {
    resource: Resource,
    json: String,
}

/// A resource of ours, taken apart. One whose name is no URL is found by nothing but the endpoint's own path.
#[derive(Clone, Debug)]
struct Resource {
    scheme: String,
    authority: String,
    path: String,
}

#[derive(Serialize)]
struct Body<'a> {
    resource: &'a str,
    authorization_servers: [&'a str; 1],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    scopes_supported: &'a [String],
    bearer_methods_supported: [&'a str; 1],
    resource_name: &'a str,
}

impl Metadata {
    /// The metadata of the server `name`, whose own path is `endpoint`.
    pub(crate) fn new(auth: &AuthConfig, name: &str, endpoint: &'static str) -> Self {
        let document = |resource: &String| {
            let body = Body {
                resource,
                authorization_servers: [&auth.issuer],
                scopes_supported: &auth.required_scopes,
                bearer_methods_supported: ["header"],
                resource_name: name,
            };
            Document {
                resource: Resource::parse(resource),
                json: serde_json::to_string(&body).expect("texts always have a form in JSON"),
            }
        };
        Self { documents: auth.audience.iter().map(document).collect(), endpoint }
    }

    /// The URL of the canonical resource's document, for challenges; `None` if its name is no URL.
    pub(crate) fn url(&self) -> Option<String> {
        let Resource { scheme, authority, path } = &self.documents.first()?.resource;
        (!authority.is_empty()).then(|| format!("{scheme}://{authority}{WELL_KNOWN}{path}"))
    }

    /// The routes of the documents.
    pub(crate) fn routes(&self) -> Router {
        let own = format!("{WELL_KNOWN}{}", self.endpoint);
        let of_resources = self.documents.iter().map(|document| format!("{WELL_KNOWN}{}", document.resource.path));
        let paths: BTreeSet<String> = of_resources.chain([own, WELL_KNOWN.to_owned()]).collect();
        let route = |router: Router<Self>, path: String| match path.contains(['{', '}', '*']) {
            // Not what anybody calls a server, and the router reads them as its own.
            true => router,
            false => router.route(&path, axum::routing::get(serve)),
        };
        paths.into_iter().fold(Router::new(), route).with_state(self.clone())
    }

    /// The document for a request: of the resource with this path and authority, or else of the first with this path, or else the
    /// canonical one's.
    fn document(&self, uri: &Uri, host: Option<&str>) -> &str {
        let path = uri.path().strip_prefix(WELL_KNOWN).unwrap_or_default();
        let host = uri.authority().map(http::uri::Authority::as_str).or(host).unwrap_or_default();
        let at = |document: &&Document| path.is_empty() || document.resource.path == path;
        let exact = self.documents.iter().filter(at).find(|it| it.resource.authority.eq_ignore_ascii_case(host));
        let chosen = exact.or_else(|| self.documents.iter().find(at)).or(self.documents.first());
        chosen.map(|document| document.json.as_str()).unwrap_or_default()
    }
}

impl Resource {
    fn parse(text: &str) -> Self {
        let uri = text.parse::<Uri>().ok();
        let parts = uri.as_ref().and_then(|uri| Some((uri.scheme_str()?, uri.authority()?, uri.path())));
        match parts {
            Some((scheme, authority, path)) => Self {
                scheme: scheme.to_owned(),
                authority: authority.to_string(),
                path: path.trim_end_matches('/').to_owned(),
            },
            None => Self { scheme: String::new(), authority: String::new(), path: String::new() },
        }
    }
}

async fn serve(State(metadata): State<Metadata>, request: Request) -> Response {
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    let json = metadata.document(request.uri(), host).to_owned();
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (CACHE_CONTROL, HeaderValue::from_static("max-age=300")),
        (ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*")),
    ];
    (headers, json).into_response()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::config::{Secret, TokenKeys};

    fn metadata(audience: &[&str], required: &[&str]) -> Metadata {
        let owned = |list: &[&str]| list.iter().map(|it| (*it).to_owned()).collect();
        let auth = AuthConfig {
            issuer: "https://issuer.example".into(),
            audience: owned(audience),
            keys: TokenKeys::Hs256(Secret::new("s")),
            required_scopes: owned(required),
        };
        Metadata::new(&auth, "tokkuri", "/mcp")
    }

    fn resource(metadata: &Metadata, path: &str, host: &str) -> Value {
        let uri = path.parse().unwrap();
        let document: Value = serde_json::from_str(metadata.document(&uri, Some(host))).unwrap();
        document["resource"].clone()
    }

    #[test]
    fn a_document_says_what_a_client_needs_to_get_a_token() {
        let metadata = metadata(&["https://h.example/a/mcp"], &["mcp"]);
        let document: Value = serde_json::from_str(metadata.document(&"/".parse().unwrap(), None)).unwrap();
        let expected = json!({
            "resource": "https://h.example/a/mcp",
            "authorization_servers": ["https://issuer.example"],
            "scopes_supported": ["mcp"],
            "bearer_methods_supported": ["header"],
            "resource_name": "tokkuri",
        });
        assert_eq!(document, expected);
        assert_eq!(metadata.url().unwrap(), "https://h.example/.well-known/oauth-protected-resource/a/mcp");
    }

    #[test]
    fn each_resource_has_the_document_at_its_own_path_and_host() {
        let metadata = metadata(&["https://new.example/mcp", "https://old.example/mcp", "https://new.example/b"], &[]);
        let table = [
            ("/mcp", "new.example", "https://new.example/mcp"),
            ("/mcp", "old.example", "https://old.example/mcp"),
            ("/mcp", "elsewhere.example", "https://new.example/mcp"),
            ("/b", "old.example", "https://new.example/b"),
            ("", "old.example", "https://old.example/mcp"),
            ("", "elsewhere.example", "https://new.example/mcp"),
        ];
        for (path, host, wanted) in table {
            assert_eq!(resource(&metadata, &format!("{WELL_KNOWN}{path}"), host), wanted, "{path} {host}");
        }
    }

    #[test]
    fn a_resource_that_is_no_url_has_a_document_but_no_address() {
        let metadata = metadata(&["tokkuri"], &[]);
        assert_eq!(metadata.url(), None);
        assert_eq!(resource(&metadata, &format!("{WELL_KNOWN}/mcp"), "h"), "tokkuri");
        drop(metadata.routes());
        let root = self::metadata(&["https://h.example"], &[]);
        assert_eq!(root.url().unwrap(), "https://h.example/.well-known/oauth-protected-resource");
    }

    #[test]
    fn odd_paths_do_not_keep_the_server_from_starting() {
        drop(metadata(&["https://h.example/{x}/*", "https://h.example/mcp/", "https://h.example/mcp"], &[]).routes());
    }
}
