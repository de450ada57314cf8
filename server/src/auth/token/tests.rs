//! Tokens that are really signed, by keys of all kinds and with everything wrong that can be.

use jsonwebtoken::Header;
use serde_json::{Value, json};

use super::*;
use crate::auth::jwks::KeySet;
use crate::auth::testing::{SECRET, Signer, ec, ed, hs, rsa};

const ISSUER: &str = "https://issuer.example";
const NOW: u64 = 1_800_000_000;

fn rules() -> Rules {
    Rules::new(ISSUER, &["https://h/mcp".into(), "https://h/b".into()])
}

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(NOW)
}

fn claims() -> Value {
    json!({
        "iss": ISSUER, "sub": "alice", "aud": "https://h/mcp", "exp": NOW + 300, "iat": NOW, "nbf": NOW,
        "client_id": "c1", "scope": "files:read files:write",
    })
}

fn with(member: &str, value: Value) -> Value {
    let mut claims = claims();
    claims[member] = value;
    claims
}

fn without(member: &str) -> Value {
    let mut claims = claims();
    claims.as_object_mut().unwrap().remove(member);
    claims
}

/// Judges a token with the keys of `signers`.
fn judge(token: &str, signers: &[&Signer]) -> Result<Identity, Invalid> {
    let signed = Signed::read(token)?;
    rules().verify(token, signed.alg, set_of(signers).find(&signed)?, now())
}

fn set_of(signers: &[&Signer]) -> KeySet {
    let keys: Vec<Value> = signers.iter().map(|signer| signer.jwk()).collect();
    KeySet::read(json!({ "keys": keys }).to_string().as_bytes()).unwrap()
}

fn said(claims: &Value) -> Result<Identity, Invalid> {
    let signer = ed("k");
    judge(&signer.sign(claims), &[&signer])
}

fn words(scopes: &BTreeSet<Text>) -> Vec<&str> {
    scopes.iter().map(Text::as_str).collect()
}

#[test]
fn a_token_of_every_kind_of_key_is_accepted() {
    for signer in [rsa("r"), ec("e"), ed("d")] {
        let identity = judge(&signer.sign(&claims()), &[&signer]).unwrap();
        assert_eq!(identity.principal, "https://issuer.example alice", "{:?}", signer.alg);
        assert_eq!((identity.client.as_str(), identity.resource.as_str()), ("c1", "https://h/mcp"));
        assert_eq!(words(&identity.scopes), ["files:read", "files:write"]);
        assert_eq!(identity.expires, now() + Duration::from_secs(330));
    }
    let secret = DecodingKey::from_secret(SECRET.as_bytes()).unwrap();
    rules().verify(&hs().sign(&claims()), Algorithm::HS256, &secret, now()).unwrap();
}

#[test]
fn claims_have_to_be_right() {
    let long = "x".repeat(MAX_NAME_BYTES + 1);
    let table = [
        (with("iss", json!("https://issuer.example/")), Invalid::Issuer),
        (with("iss", json!([ISSUER])), Invalid::Malformed),
        (without("iss"), Invalid::Malformed),
        (with("aud", json!("https://h/mcp/")), Invalid::Audience),
        (with("aud", json!("https://h/mcpx")), Invalid::Audience),
        (with("aud", json!("https://H/mcp")), Invalid::Audience),
        (with("aud", json!("https://h/mcp https://h/b")), Invalid::Audience),
        (with("aud", json!([])), Invalid::Audience),
        (with("aud", json!([7])), Invalid::Malformed),
        (without("aud"), Invalid::Malformed),
        (with("exp", json!(NOW - 30)), Invalid::Expired),
        (with("exp", json!(0)), Invalid::Expired),
        (with("exp", json!(-1)), Invalid::Expired),
        (with("exp", json!(NOW.to_string())), Invalid::Malformed),
        (without("exp"), Invalid::Malformed),
        (with("nbf", json!(NOW + 31)), Invalid::NotYet),
        (with("nbf", json!("now")), Invalid::Malformed),
        (with("sub", json!("")), Invalid::Name),
        (with("sub", json!("a\u{0}b")), Invalid::Name),
        (with("sub", json!(long)), Invalid::Name),
        (with("sub", json!(7)), Invalid::Malformed),
        (without("sub"), Invalid::Malformed),
        (with("client_id", json!("a\nb")), Invalid::Name),
        (json!({}), Invalid::Malformed),
        (json!(7), Invalid::Malformed),
    ];
    for (claims, wrong) in table {
        assert_eq!(said(&claims).unwrap_err(), wrong, "{claims}");
    }
}

#[test]
fn a_clock_may_be_off_by_the_leeway_and_no_more() {
    for good in [with("exp", json!(NOW - 29)), with("nbf", json!(NOW + 30)), with("exp", json!(1e300)), without("nbf")]
    {
        said(&good).unwrap_or_else(|wrong| panic!("{wrong}: {good}"));
    }
    assert!(said(&with("exp", json!(NOW as f64 - 29.5))).is_ok(), "a fraction of a second is a time too");
}

#[test]
fn the_resource_is_the_one_of_ours_that_the_token_is_for() {
    let table = [
        (json!("https://h/b"), "https://h/b"),
        (json!(["https://elsewhere/mcp", "https://h/b"]), "https://h/b"),
        (json!(["https://h/b", "https://h/mcp"]), "https://h/mcp"),
        (json!(["https://h/mcp", "https://h/b"]), "https://h/mcp"),
    ];
    for (aud, resource) in table {
        assert_eq!(said(&with("aud", aud.clone())).unwrap().resource, resource, "{aud}");
    }
}

#[test]
fn the_client_is_client_id_or_else_azp() {
    let mut both = with("azp", json!("other"));
    assert_eq!(said(&both).unwrap().client, "c1");
    both.as_object_mut().unwrap().remove("client_id");
    assert_eq!(said(&both).unwrap().client, "other");
    assert_eq!(said(&without("client_id")).unwrap().client, "");
}

#[test]
fn scopes_are_read_however_the_issuer_writes_them() {
    let none: [&str; 0] = [];
    for (member, value, scopes) in [
        ("scp", json!(["b", "a"]), vec!["a", "b"]),
        ("scp", json!("b a"), vec!["a", "b"]),
        ("scope", json!("a  b a"), vec!["a", "b"]),
        ("scope", json!(["a b", "c"]), vec!["a", "b", "c"]),
        ("scope", json!("a\"b c"), vec!["c"]),
        ("scope", json!(""), none.to_vec()),
        ("scope", Value::Null, none.to_vec()),
    ] {
        let mut claims = without("scope");
        claims[member] = value;
        assert_eq!(words(&said(&claims).unwrap().scopes), scopes, "{claims}");
    }
    let mut both = with("scp", json!(["c"]));
    both["scope"] = json!("a");
    assert_eq!(words(&said(&both).unwrap().scopes), ["a", "c"]);
}

#[test]
fn a_signature_of_anybody_else_is_refused() {
    // The same name, another key.
    let forged = ed("mallory").sign_with(&header(Algorithm::EdDSA, "k"), &claims());
    assert_eq!(judge(&forged, &[&ed("k")]).unwrap_err(), Invalid::Signature);
    let token = ed("k").sign(&claims());
    let (rest, signature) = token.rsplit_once('.').unwrap();
    for broken in ["", "AAAA", &signature[1..], &format!("{signature}A")] {
        let broken = format!("{rest}.{broken}");
        assert!(judge(&broken, &[&ed("k")]).is_err(), "{broken}");
    }
    // Claims of one token under the signature of another.
    let other = ed("k").sign(&with("sub", json!("bob")));
    let mixed: Vec<&str> = [&token, &other].iter().flat_map(|token| token.split('.')).collect();
    let mixed = [mixed[0], mixed[4], mixed[2]].join(".");
    assert_eq!(judge(&mixed, &[&ed("k")]).unwrap_err(), Invalid::Signature);
}

#[test]
fn algorithms_are_not_taken_from_the_token() {
    let b64 = |json: &Value| {
        use base64::Engine as _;
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(json.to_string())
    };
    // No signature at all, in every spelling.
    for alg in ["none", "None", "NONE", ""] {
        for signature in ["", "AAAA"] {
            let token = format!("{}.{}.{signature}", b64(&json!({"alg": alg, "kid": "k"})), b64(&claims()));
            assert_eq!(judge(&token, &[&ed("k")]).unwrap_err(), Invalid::Malformed, "{token}");
        }
    }
    // The public key as a secret: the classic.
    for signer in [rsa("k"), ec("k"), ed("k")] {
        let jwk = signer.jwk();
        let public = ["n", "x"].into_iter().find_map(|member| jwk[member].as_str()).unwrap();
        let secret = jsonwebtoken::EncodingKey::from_secret(public.as_bytes()).unwrap();
        let token = jsonwebtoken::encode(&header(Algorithm::HS256, "k"), &claims(), &secret).unwrap();
        assert_eq!(judge(&token, &[&signer]).unwrap_err(), Invalid::Algorithm);
    }
    // Another algorithm of the same family, and another family's key under a name that is known.
    let secret = DecodingKey::from_secret(SECRET.as_bytes()).unwrap();
    let wrong = rules().verify(&ed("k").sign(&claims()), Algorithm::HS256, &secret, now());
    assert_eq!(wrong.unwrap_err(), Invalid::Algorithm);
    assert_eq!(judge(&ec("k").sign(&claims()), &[&ed("k")]).unwrap_err(), Invalid::UnknownKey);
}

#[test]
fn keys_that_a_token_brings_along_are_not_looked_at() {
    let mallory = ed("mallory");
    let mut header = header(Algorithm::EdDSA, "k");
    header.jwk = Some(serde_json::from_value(mallory.jwk()).unwrap());
    header.jku = Some("https://mallory.example/jwks".into());
    header.x5u = Some("https://mallory.example/cert".into());
    assert_eq!(judge(&mallory.sign_with(&header, &claims()), &[&ed("k")]).unwrap_err(), Invalid::Signature);
}

#[test]
fn tokens_of_other_kinds_are_refused() {
    let signer = ed("k");
    for (typ, good) in [
        (Some("at+jwt"), true),
        (Some("application/at+jwt"), true),
        (Some("AT+JWT"), true),
        (Some("JWT"), true),
        (None, true),
        (Some("logout+jwt"), false),
        (Some("dpop+jwt"), false),
    ] {
        let mut header = header(Algorithm::EdDSA, "k");
        header.typ = typ.map(str::to_owned);
        assert_eq!(judge(&signer.sign_with(&header, &claims()), &[&signer]).is_ok(), good, "{typ:?}");
    }
    let mut critical = header(Algorithm::EdDSA, "k");
    critical.crit = Some(vec!["exp".into()]);
    assert_eq!(judge(&signer.sign_with(&critical, &claims()), &[&signer]).unwrap_err(), Invalid::Malformed);
}

#[test]
fn what_is_no_token_is_refused() {
    let token = ed("k").sign(&claims());
    let long = format!("{token}{}", "A".repeat(MAX_BYTES));
    for text in ["", ".", "..", "a.b.c", "a.b.c.d", &token[1..], &token.replace('.', "+"), &long] {
        assert_eq!(judge(text, &[&ed("k")]).unwrap_err(), Invalid::Malformed, "{text}");
    }
}

#[test]
fn a_claim_that_is_there_twice_is_refused() {
    use base64::Engine as _;
    let text = claims().to_string().replacen('{', r#"{"sub":"bob","#, 1);
    let header = json!({"alg": "EdDSA", "kid": "k"}).to_string();
    let b64 = |text: &str| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text);
    let token = format!("{}.{}.AAAA", b64(&header), b64(&text));
    assert!(judge(&token, &[&ed("k")]).is_err());
    assert!(serde_json::from_str::<Claims>(&text).is_err());
}

fn header(alg: Algorithm, kid: &str) -> Header {
    let mut header = Header::new(alg);
    header.kid = Some(kid.to_owned());
    header
}
