//! The issuer's keys (RFC 7517): which of them may verify which token.
//!
//! A key is for one algorithm, by its own type: an RSA key verifies RS256 and nothing else, and no key of a set is ever taken for a
//! secret. That, and not the token's word, is what rules algorithm confusion out.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use serde_json::Value;

use crate::auth::token::{Invalid, Signed};

/// Most keys of a set that are looked at.
const MAX_KEYS: usize = 100;

/// RFC 7518 § 3.3.
const LEAST_RSA_BITS: usize = 2048;

/// The usable keys of a key set.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeySet(Vec<Key>);

/// One public key.
#[derive(Clone, Debug)]
struct Key {
    kid: Option<String>,
    alg: Algorithm,
    key: DecodingKey,
}

/// A key set cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadSet {
    #[error("it is no JSON Web Key Set: {0}")]
    Unreadable(String),
    #[error("it has no key for RS256, ES256 or EdDSA")]
    Empty,
}

#[derive(Deserialize)]
struct Set {
    keys: Vec<Value>,
}

#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    used_for: Option<String>,
    key_ops: Option<Vec<String>>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl KeySet {
    /// Reads a key set. Keys that are for something else, or of a kind that is not served here, are left out.
    ///
    /// # Errors
    /// [`BadSet`]; a set without a single usable key is one too, so that a broken file never replaces good keys.
    pub(crate) fn read(json: &[u8]) -> Result<Self, BadSet> {
        let set: Set = serde_json::from_slice(json).map_err(|error| BadSet::Unreadable(error.to_string()))?;
        let keys = set.keys.into_iter().take(MAX_KEYS).filter_map(|key| serde_json::from_value(key).ok());
        let keys: Vec<Key> = keys.filter_map(Key::usable).collect();
        if keys.is_empty() { Err(BadSet::Empty) } else { Ok(Self(keys)) }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The key that verifies a token signed like this. One that names no key is verified if there is just one for its algorithm.
    ///
    /// # Errors
    /// [`Invalid::UnknownKey`] if a fresher set might have it, [`Invalid::Algorithm`] if none ever will.
    pub(crate) fn find(&self, signed: &Signed) -> Result<&DecodingKey, Invalid> {
        if !matches!(signed.alg, Algorithm::RS256 | Algorithm::ES256 | Algorithm::EdDSA) {
            return Err(Invalid::Algorithm);
        }
        let mut fitting = self.0.iter().filter(|key| {
            key.alg == signed.alg && signed.kid.as_ref().is_none_or(|wanted| key.kid.as_ref() == Some(wanted))
        });
        match (fitting.next(), fitting.next()) {
            (Some(key), None) => Ok(&key.key),
            (None, _) | (_, Some(_)) => Err(Invalid::UnknownKey),
        }
    }
}

impl Key {
    /// The key for signatures of the one algorithm that its type is for; `None` if it is for anything else.
    fn usable(jwk: Jwk) -> Option<Self> {
        let signs = jwk.used_for.is_none_or(|used| used == "sig")
            && jwk.key_ops.is_none_or(|ops| ops.iter().any(|op| op == "verify"));
        if !signs {
            return None;
        }
        let (alg, name, key) = match (jwk.kty.as_str(), jwk.crv.as_deref()) {
            ("RSA", _) => {
                let (n, e) = (bytes(&jwk.n?)?, bytes(&jwk.e?)?);
                if bits(&n) < LEAST_RSA_BITS {
                    return None;
                }
                (Algorithm::RS256, "RS256", DecodingKey::from_rsa_raw_components(&n, &e))
            }
            ("EC", Some("P-256")) => {
                (Algorithm::ES256, "ES256", DecodingKey::from_ec_components(&jwk.x?, &jwk.y?).ok()?)
            }
            ("OKP", Some("Ed25519")) => (Algorithm::EdDSA, "EdDSA", DecodingKey::from_ed_components(&jwk.x?).ok()?),
            _ => return None,
        };
        jwk.alg.is_none_or(|alg| alg == name).then_some(Self { kid: jwk.kid, alg, key })
    }
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok()
}

fn bits(number: &[u8]) -> usize {
    let significant = number.iter().skip_while(|byte| **byte == 0);
    significant.clone().next().map_or(0, |first| 8 * significant.count() - first.leading_zeros() as usize)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::auth::testing::{Signer, ec, ed, rsa};

    fn signed(alg: Algorithm, kid: Option<&str>) -> Signed {
        Signed { alg, kid: kid.map(str::to_owned) }
    }

    fn set(keys: &[Value]) -> Result<KeySet, BadSet> {
        KeySet::read(json!({ "keys": keys }).to_string().as_bytes())
    }

    fn with(signer: &Signer, member: &str, value: impl Into<Value>) -> Value {
        let mut jwk = signer.jwk();
        jwk[member] = value.into();
        jwk
    }

    #[test]
    fn a_key_is_found_by_name_and_only_for_its_own_algorithm() {
        let keys = set(&[rsa("r").jwk(), ec("e").jwk(), ed("d").jwk()]).unwrap();
        let algs = [(Algorithm::RS256, "r"), (Algorithm::ES256, "e"), (Algorithm::EdDSA, "d")];
        for (alg, own) in algs {
            for (_, kid) in algs {
                assert_eq!(keys.find(&signed(alg, Some(kid))).is_ok(), kid == own, "{alg:?} {kid}");
            }
            assert!(keys.find(&signed(alg, None)).is_ok(), "the only one of {alg:?}");
        }
        for alg in [Algorithm::HS256, Algorithm::HS512, Algorithm::RS512, Algorithm::PS256, Algorithm::ES384] {
            assert_eq!(keys.find(&signed(alg, Some("r"))).unwrap_err(), Invalid::Algorithm);
        }
    }

    #[test]
    fn a_token_that_names_no_key_is_not_tried_on_several() {
        let keys = set(&[ed("a").jwk(), ed("b").jwk()]).unwrap();
        assert_eq!(keys.find(&signed(Algorithm::EdDSA, None)).unwrap_err(), Invalid::UnknownKey);
        assert!(keys.find(&signed(Algorithm::EdDSA, Some("b"))).is_ok());
    }

    #[test]
    fn keys_that_are_for_something_else_are_left_out() {
        let good = ed("good").jwk();
        let others = [
            json!(7),
            json!({"kty": "oct", "k": "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXM", "kid": "x"}),
            json!({"kty": "EC", "crv": "P-384", "x": "AA", "y": "AA", "kid": "x"}),
            with(&ed("x"), "use", "enc"),
            with(&ed("x"), "key_ops", json!(["sign"])),
            with(&ed("x"), "crv", "X25519"),
            with(&ed("x"), "alg", "ES256"),
            with(&rsa("x"), "alg", "RS512"),
            with(&rsa("x"), "n", "AQAB"),
            with(&rsa("x"), "e", Value::Null),
        ];
        for other in others {
            assert_eq!(set(std::slice::from_ref(&other)).unwrap_err(), BadSet::Empty, "{other}");
            let keys = set(&[other.clone(), good.clone()]).unwrap();
            assert_eq!(keys.0.len(), 1, "{other}");
        }
        let stated = with(&with_ops(&ed("x")), "alg", "EdDSA");
        assert_eq!(set(&[stated]).unwrap().0.len(), 1);
    }

    fn with_ops(signer: &Signer) -> Signer {
        signer.clone().stating("key_ops", json!(["verify"])).stating("use", json!("sig"))
    }

    #[test]
    fn what_is_no_key_set_says_so() {
        for text in ["", "{", "[]", "{}", r#"{"keys":{}}"#] {
            assert!(matches!(KeySet::read(text.as_bytes()), Err(BadSet::Unreadable(_))), "{text}");
        }
        assert_eq!(KeySet::read(br#"{"keys":[]}"#).unwrap_err(), BadSet::Empty);
    }
}
