use http_body_util::BodyExt;
use tower_service::Service;

use super::*;
use crate::engine::{NodeLoop, TaskSettings};
use crate::store::MemoryStore;
use crate::tool::ToolSet;

fn admin(address: &str, token: Option<&str>) -> Arc<Admin> {
    let engine = Engine::new(Arc::new(MemoryStore::new()), ToolSet::new(), TaskSettings::default()).unwrap();
    let token = token.map(Secret::new);
    Arc::new(Admin::new(&Arc::new(engine), address.parse().unwrap(), token.as_ref()).unwrap())
}

async fn ask(admin: &Arc<Admin>, method: &str, path: &str, headers: &[(&str, &str)]) -> (u16, Response<Body>) {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = admin.router().call(request.body(Body::empty()).unwrap()).await.unwrap();
    (response.status().as_u16(), response)
}

async fn body(response: Response<Body>) -> String {
    String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

#[test]
fn strangers_are_kept_out_by_address_or_by_token() {
    let token = Secret::new("t");
    for address in ["127.0.0.1:0", "127.1.2.3:1", "[::1]:0", "[::ffff:127.0.0.1]:0"] {
        assert_eq!(may_listen(address.parse().unwrap(), None), Ok(()), "{address}");
    }
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:8091", "[::ffff:192.0.2.1]:1"] {
        let address = address.parse().unwrap();
        let exposed = may_listen(address, None).unwrap_err();
        assert!(exposed == Exposed(address) && exposed.to_string().contains("admin.token"), "{exposed}");
        assert_eq!(may_listen(address, Some(&token)), Ok(()));
    }
}

#[tokio::test]
async fn on_loopback_no_page_reaches_it_by_another_name() {
    let admin = admin("127.0.0.3:0", None);
    for (host, status) in [
        ("localhost:1", 200),
        ("127.0.0.1", 200),
        ("[::1]:8091", 200),
        ("127.0.0.3:5", 200),
        ("evil.example", 403),
        ("", 400),
    ] {
        assert_eq!(ask(&admin, "GET", "/metrics", &[("host", host)]).await.0, status, "{host}");
        assert_eq!(ask(&admin, "GET", "/healthz", &[("host", host)]).await.0, status, "{host}");
    }
    assert_eq!(ask(&admin, "GET", "/metrics", &[]).await.0, 400);
    let foreign = [("host", "localhost"), ("origin", "http://evil.example")];
    assert_eq!(ask(&admin, "GET", "/metrics", &foreign).await.0, 403);
}

#[tokio::test]
async fn elsewhere_the_token_is_asked_for_and_any_host_will_do() {
    let admin = admin("0.0.0.0:0", Some("s3cret"));
    let (status, refused) = ask(&admin, "GET", "/metrics", &[("host", "node-1.example")]).await;
    assert_eq!((status, &refused.headers()[WWW_AUTHENTICATE]), (401, &HeaderValue::from_static("Bearer")));
    let shown = [("host", "node-1.example"), ("authorization", "Bearer s3cret")];
    let (status, good) = ask(&admin, "GET", "/metrics", &shown).await;
    assert_eq!((status, &good.headers()[CONTENT_TYPE]), (200, &HeaderValue::from_static(METRICS)));
    assert!(body(good).await.contains("tokkuri_build_info{version="));
    assert_eq!(ask(&admin, "GET", "/healthz", &[]).await.0, 200);
    assert_eq!(ask(&admin, "GET", "/readyz", &[]).await.0, 503);
}

#[tokio::test]
async fn there_is_nothing_to_change_here() {
    let admin = admin("127.0.0.1:0", None);
    let host = [("host", "localhost")];
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"] {
        let (status, answer) = ask(&admin, method, "/metrics", &host).await;
        assert_eq!((status, &answer.headers()[ALLOW]), (405, &HeaderValue::from_static("GET, HEAD")), "{method}");
    }
    let (status, head) = ask(&admin, "HEAD", "/healthz", &host).await;
    assert_eq!((status, &head.headers()[CACHE_CONTROL]), (200, &HeaderValue::from_static("no-store")));
    for (path, word) in [("/", "/metrics"), ("/metrics/", "/metrics"), ("/console", "not in this build")] {
        let (status, answer) = ask(&admin, "GET", path, &host).await;
        assert_eq!(status, 404, "{path}");
        assert!(body(answer).await.contains(word), "{path}");
    }
    NodeLoop::new(Arc::clone(&admin.engine)).begin().await;
    admin.readiness().begun();
    let (status, answer) = ask(&admin, "GET", "/readyz", &host).await;
    assert_eq!((status, body(answer).await.as_str()), (200, "ready\n"));
}
