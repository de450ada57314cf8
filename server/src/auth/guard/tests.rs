//! From a head to a caller.

use serde_json::{Value, json};

use super::*;
use crate::auth::testing::{SECRET, hs};
use crate::auth::{FlatScopes, SharedHost};
use crate::config::Secret;

#[derive(Debug)]
struct WriteImpliesRead;

impl ScopeHierarchy for WriteImpliesRead {
    fn widen(&self, mut granted: std::collections::BTreeSet<Text>) -> std::collections::BTreeSet<Text> {
        if granted.contains("files:write") {
            granted.insert("files:read".into());
        }
        granted
    }
}

fn guard(hierarchy: impl ScopeHierarchy) -> Guard {
    let auth = AuthConfig {
        issuer: "https://issuer.example".into(),
        audience: vec!["https://h/mcp".into()],
        keys: TokenKeys::Hs256(Secret::new(SECRET)),
        required_scopes: Vec::new(),
    };
    Guard::new(&auth, "tokkuri", "/mcp", Arc::new(hierarchy)).unwrap()
}

fn claims() -> Value {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    json!({"iss": "https://issuer.example", "sub": "alice", "aud": "https://h/mcp", "exp": now + 60, "client_id": "c1",
        "scope": "files:write"})
}

fn parts(lines: &[&str]) -> Parts {
    let mut request = http::Request::new(()).into_parts().0;
    for line in lines {
        request.headers.append(AUTHORIZATION, line.parse().unwrap());
    }
    request
}

#[tokio::test]
async fn the_caller_is_what_the_token_says_and_the_token_goes_no_further() {
    let guard = guard(FlatScopes);
    let mut parts = parts(&[&format!("Bearer {}", hs().sign(&claims()))]);
    guard.admit(&mut parts).await.unwrap();
    assert!(!parts.headers.contains_key(AUTHORIZATION));
    assert!(expires(&parts).is_some());
    let caller = ByToken(Arc::new(SharedHost)).resolve(Some(&parts), "ignored");
    let owner = Owner {
        principal: "https://issuer.example alice".into(),
        server: "tokkuri".into(),
        client: "c1".into(),
        resource: "https://h/mcp".into(),
    };
    assert_eq!(caller, Caller { owner, scopes: Scopes::Granted(["files:write".into()].into()) });
}

#[tokio::test]
async fn a_hierarchy_widens_what_was_granted() {
    let mut parts = parts(&[&format!("bearer   {} ", hs().sign(&claims()))]);
    guard(WriteImpliesRead).admit(&mut parts).await.unwrap();
    let caller = ByToken(Arc::new(SharedHost)).resolve(Some(&parts), "");
    assert!(caller.scopes.cover(&["files:read".into(), "files:write".into()]));
    assert!(!caller.scopes.cover(&["admin".into()]));
}

#[tokio::test]
async fn credentials_that_are_missing_malformed_or_wrong_are_told_apart() {
    let good = format!("Bearer {}", hs().sign(&claims()));
    let table: [(&[&str], u16); 11] = [
        (&[], 401),
        (&["Basic dTpw"], 401),
        (&["Bearer"], 400),
        (&["Bearer "], 400),
        (&["Bearer a b"], 400),
        (&["Bearer a,b"], 400),
        (&[&good, &good], 400),
        (&["Bearer abc"], 401),
        (&["Bearer a.b.c"], 401),
        (&[&good[..good.len() - 2]], 401),
        (&[&good], 200),
    ];
    for (lines, status) in table {
        let mut parts = parts(lines);
        let got = guard(FlatScopes).admit(&mut parts).await.map_or_else(|answer| answer.status().as_u16(), |()| 200);
        assert_eq!(got, status, "{lines:?}");
        assert!(!parts.headers.contains_key(AUTHORIZATION));
        assert_eq!(expires(&parts).is_some(), status == 200);
    }
}

#[test]
fn nothing_that_is_printed_holds_a_secret() {
    let shown = format!("{:?}", guard(FlatScopes));
    assert!(!shown.contains(SECRET), "{shown}");
}

#[test]
fn an_issuer_with_blanks_is_refused_since_owners_could_be_mistaken() {
    let auth = AuthConfig {
        issuer: "a b".into(),
        audience: vec!["r".into()],
        keys: TokenKeys::Hs256(Secret::new(SECRET)),
        required_scopes: Vec::new(),
    };
    assert!(Guard::new(&auth, "s", "/mcp", Arc::new(FlatScopes)).unwrap_err().contains("auth.issuer"));
}

#[test]
fn without_a_token_the_application_decides() {
    let resolver = ByToken(Arc::new(SharedHost));
    assert_eq!(resolver.resolve(None, "s").scopes, Scopes::Unrestricted);
    assert_eq!(resolver.resolve(Some(&parts(&[])), "s").owner.principal, "host");
}
