//! Access tokens that are really signed, and an issuer whose key set is a file that a test can change.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The issuer that the server under test believes.
pub const ISSUER: &str = "https://issuer.example";
/// The canonical resource of the server under test.
pub const RESOURCE: &str = "https://tokkuri.example/mcp";
/// Another of its resources.
pub const SIBLING_RESOURCE: &str = "https://tokkuri.example/sibling";
/// Where the metadata of [`RESOURCE`] is.
pub const METADATA: &str = "https://tokkuri.example/.well-known/oauth-protected-resource/mcp";
/// A secret for HS256.
pub const SECRET: &str = "a secret of tests that guards nothing";

/// A signing key. It follows from its name, so that a test run is the same every time; none of them guards anything.
#[derive(Clone, Debug)]
pub struct Signer {
    kid: String,
    alg: Algorithm,
    key: EncodingKey,
}

impl Signer {
    /// EdDSA.
    pub fn ed(kid: &str) -> Self {
        const PREFIX: &[u8] = b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20";
        Self::new(kid, Algorithm::EdDSA, EncodingKey::from_ed_der(&[PREFIX, &seed(kid)].concat()))
    }

    /// ES256.
    pub fn ec(kid: &str) -> Self {
        const PREFIX: &[u8] = b"\x30\x41\x02\x01\x00\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07\x04\x27\x30\x25\x02\x01\x01\x04\x20";
        Self::new(kid, Algorithm::ES256, EncodingKey::from_ec_der(&[PREFIX, &seed(kid)].concat()))
    }

    /// RS256, with the one fixed key of the server's unit tests.
    ///
    /// # Panics
    /// If that is no key.
    pub fn rsa(kid: &str) -> Self {
        let text: String = include_str!("../../../server/src/auth/testing/rsa.b64").split_whitespace().collect();
        let der = base64::engine::general_purpose::STANDARD.decode(text).expect("Base64");
        Self::new(kid, Algorithm::RS256, EncodingKey::from_rsa_der(&der))
    }

    /// HS256 with `secret`.
    ///
    /// # Panics
    /// If the secret is empty.
    pub fn hs(kid: &str, secret: &str) -> Self {
        Self::new(kid, Algorithm::HS256, EncodingKey::from_secret(secret.as_bytes()).expect("a secret"))
    }

    fn new(kid: &str, alg: Algorithm, key: EncodingKey) -> Self {
        Self { kid: kid.to_owned(), alg, key }
    }

    /// The public key as a JWK.
    ///
    /// # Panics
    /// If it has none.
    pub fn jwk(&self) -> Value {
        let jwk = jsonwebtoken::jwk::Jwk::from_encoding_key(&self.key, self.alg).expect("a public key");
        let mut jwk = serde_json::to_value(jwk).expect("JSON");
        jwk["kid"] = json!(self.kid);
        jwk
    }
}

/// 32 bytes that follow from a name.
fn seed(name: &str) -> [u8; 32] {
    let mut seed = [7; 32];
    for (byte, c) in seed.iter_mut().zip(name.bytes()) {
        *byte = c;
    }
    seed
}

/// Who issues tokens to the tests.
#[derive(Clone, Debug)]
pub struct Issuer {
    dir: Arc<TempDir>,
    signer: Signer,
}

impl Default for Issuer {
    fn default() -> Self {
        Self::new()
    }
}

impl Issuer {
    /// One that signs with an EdDSA key, the only one of its set.
    ///
    /// # Panics
    /// If there is no temporary directory to be had.
    pub fn new() -> Self {
        let dir = Arc::new(tempfile::tempdir().expect("a temporary directory"));
        let issuer = Self { dir, signer: Signer::ed("first") };
        issuer.publish(std::slice::from_ref(&issuer.signer));
        issuer
    }

    /// Replaces the key set.
    ///
    /// # Panics
    /// If the file cannot be written.
    pub fn publish(&self, signers: &[Signer]) {
        let keys: Vec<Value> = signers.iter().map(Signer::jwk).collect();
        // In one step, as whoever rotates a key file has to.
        let fresh = self.dir.path().join("fresh.json");
        std::fs::write(&fresh, json!({ "keys": keys }).to_string()).expect("write the key set");
        std::fs::rename(fresh, self.key_file()).expect("put the key set in place");
    }

    /// The file of the key set.
    pub fn key_file(&self) -> PathBuf {
        self.dir.path().join("jwks.json")
    }

    /// The section `[auth]` of a server that believes this issuer; `more` is added to it.
    pub fn config(&self, more: &str) -> String {
        format!(
            "[auth]\nissuer = {ISSUER:?}\naudience = [{RESOURCE:?}, {SIBLING_RESOURCE:?}]\njwks = \"file:{}\"\n{more}\n",
            self.key_file().display()
        )
    }

    /// The same, with the key set at a URL.
    pub fn config_with_url(&self, url: &str) -> String {
        format!("[auth]\nissuer = {ISSUER:?}\naudience = [{RESOURCE:?}, {SIBLING_RESOURCE:?}]\njwks = {url:?}\n")
    }

    /// The key that it signs with.
    pub const fn signer(&self) -> &Signer {
        &self.signer
    }

    /// A token for `sub`, good for an hour: client `c1`, resource [`RESOURCE`], no scopes.
    pub fn token(&self, sub: &str) -> Token {
        Token {
            signer: self.signer.clone(),
            header: Header { kid: Some(self.signer.kid.clone()), ..Header::new(self.signer.alg) },
            claims: json!({"iss": ISSUER, "sub": sub, "aud": RESOURCE, "client_id": "c1", "iat": now(), "exp": now() + 3600}),
        }
    }
}

/// A token that is not signed yet.
#[derive(Clone, Debug)]
pub struct Token {
    signer: Signer,
    header: Header,
    claims: Value,
}

impl Token {
    /// Sets a claim.
    #[must_use]
    pub fn claim(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.claims[name] = value.into();
        self
    }

    /// For another client.
    #[must_use]
    pub fn client(self, client: &str) -> Self {
        self.claim("client_id", client)
    }

    /// For another resource.
    #[must_use]
    pub fn audience(self, resource: &str) -> Self {
        self.claim("aud", resource)
    }

    /// With these scopes, separated by blanks.
    #[must_use]
    pub fn scopes(self, scopes: &str) -> Self {
        self.claim("scope", scopes)
    }

    /// Expires so many seconds from now.
    #[must_use]
    pub fn expires_in(self, seconds: i64) -> Self {
        self.claim("exp", now() + seconds)
    }

    /// Signed by another key.
    #[must_use]
    pub fn signed_by(mut self, signer: &Signer) -> Self {
        self.header = Header { kid: Some(signer.kid.clone()), ..Header::new(signer.alg) };
        self.signer = signer.clone();
        self
    }

    /// With another header, as `change` leaves it.
    #[must_use]
    pub fn header(mut self, change: impl FnOnce(&mut Header)) -> Self {
        change(&mut self.header);
        self
    }

    /// Its text.
    ///
    /// # Panics
    /// If it cannot be signed.
    pub fn text(&self) -> String {
        jsonwebtoken::encode(&self.header, &self.claims, &self.signer.key).expect("a signature")
    }

    /// Its text without a signature, under the algorithm `none`.
    pub fn unsigned(&self) -> String {
        let b64 = |json: Value| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(json.to_string());
        format!("{}.{}.", b64(json!({"alg": "none", "typ": "JWT", "kid": self.signer.kid})), b64(self.claims.clone()))
    }
}

/// Seconds of the Unix epoch.
fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_secs()).unwrap_or(i64::MAX)
}
