//! Access tokens: as they come, and with a good signature over whatever header and claims.

use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde_json::Value;

use crate::auth::judged::{Rules, Signed};

const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";
const RESOURCE: &str = "https://mcp.example.com/mcp";

static RULES: LazyLock<Rules> = LazyLock::new(|| Rules::new("https://id.example.com", &[RESOURCE.to_owned()]));

/// The first line is a header, the second are claims: unsigned they are never accepted, whatever they say; signed, only if they say
/// what they have to. The whole is also tried as a token by itself.
pub fn token(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    assert!(!accepted(&text), "nobody signed this");
    let (header, claims) = text.split_once('\n').unwrap_or((&text, ""));
    let unsigned = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
    assert!(!accepted(&unsigned) && !accepted(&format!("{unsigned}.")) && !accepted(&format!("{unsigned}.AAAA")));

    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(SECRET).expect("any length will do");
    mac.update(unsigned.as_bytes());
    let signed = format!("{unsigned}.{}", URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes()));
    if !accepted(&signed) {
        return;
    }
    let read = |json: &str| serde_json::from_str::<Value>(json).expect("what was accepted is JSON");
    let (header, claims) = (read(header), read(claims));
    assert_eq!(header["alg"], "HS256", "no other algorithm passes with this key");
    assert_eq!(claims["iss"], "https://id.example.com");
    let audience = &claims["aud"];
    let ours = audience == RESOURCE || audience.as_array().is_some_and(|all| all.iter().any(|one| one == RESOURCE));
    assert!(ours, "it is for us: {audience}");
    assert!(claims["sub"].as_str().is_some_and(|sub| !sub.is_empty()));
    assert!(claims["exp"].as_f64().is_some_and(|exp| exp > NOW as f64 - 60.0));
}

const NOW: u64 = 1_800_000_000;

fn accepted(token: &str) -> bool {
    if Signed::read(token).is_err() {
        return false;
    }
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(NOW);
    let key = DecodingKey::from_secret(SECRET).expect("the secret is long enough");
    RULES.verify(token, Algorithm::HS256, &key, now).is_ok()
}
