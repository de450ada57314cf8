//! Signers for tests: fixed keys, so that a test run is the same every time. They guard nothing.

use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};

/// The secret of [`hs`].
pub(crate) const SECRET: &str = "a secret of tests that guards nothing";

/// A key pair with a name.
#[derive(Clone)]
pub(crate) struct Signer {
    pub(crate) kid: String,
    pub(crate) alg: Algorithm,
    key: EncodingKey,
    stated: Vec<(&'static str, Value)>,
}

/// RS256. The key is the one in `testing/rsa.b64`, whatever its name.
pub(crate) fn rsa(kid: &str) -> Signer {
    use base64::Engine as _;
    let text: String = include_str!("testing/rsa.b64").split_whitespace().collect();
    let der = base64::engine::general_purpose::STANDARD.decode(text).unwrap();
    Signer::new(kid, Algorithm::RS256, EncodingKey::from_rsa_der(&der))
}

/// ES256, with a key that follows from the name.
pub(crate) fn ec(kid: &str) -> Signer {
    const PREFIX: &[u8] = b"\x30\x41\x02\x01\x00\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07\x04\x27\x30\x25\x02\x01\x01\x04\x20";
    Signer::new(kid, Algorithm::ES256, EncodingKey::from_ec_der(&[PREFIX, &seed(kid)].concat()))
}

/// EdDSA, with a key that follows from the name.
pub(crate) fn ed(kid: &str) -> Signer {
    const PREFIX: &[u8] = b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20";
    Signer::new(kid, Algorithm::EdDSA, EncodingKey::from_ed_der(&[PREFIX, &seed(kid)].concat()))
}

/// HS256 with [`SECRET`].
pub(crate) fn hs() -> Signer {
    Signer::new("hs", Algorithm::HS256, EncodingKey::from_secret(SECRET.as_bytes()).unwrap())
}

fn seed(kid: &str) -> [u8; 32] {
    use sha2::Digest as _;
    sha2::Sha256::digest(kid.as_bytes()).into()
}

impl Signer {
    fn new(kid: &str, alg: Algorithm, key: EncodingKey) -> Self {
        Self { kid: kid.to_owned(), alg, key, stated: Vec::new() }
    }

    /// Its JWK says this too.
    pub(crate) fn stating(mut self, member: &'static str, value: Value) -> Self {
        self.stated.push((member, value));
        self
    }

    /// The public key.
    pub(crate) fn jwk(&self) -> Value {
        let jwk = jsonwebtoken::jwk::Jwk::from_encoding_key(&self.key, self.alg).unwrap();
        let mut jwk = serde_json::to_value(jwk).unwrap();
        jwk["kid"] = json!(self.kid);
        for (member, value) in &self.stated {
            jwk[member] = value.clone();
        }
        jwk
    }

    /// Signs these claims.
    pub(crate) fn sign(&self, claims: &Value) -> String {
        let mut header = Header::new(self.alg);
        header.kid = Some(self.kid.clone());
        self.sign_with(&header, claims)
    }

    pub(crate) fn sign_with(&self, header: &Header, claims: &Value) -> String {
        encode(header, claims, &self.key).unwrap()
    }
}
