//! `requestState` of multi round-trip requests (MCP 2026-07-28, patterns § MRTR): the answers of earlier rounds, which the client carries
//! for us and could have changed.
//!
//! It is sealed with a MAC and bound to who called, what was called and with which arguments, and it expires. It is not encrypted: all
//! that it holds, the client said itself. It is not for one use only either: until a task is made of it, a retry may be repeated.

mod digest;

use std::collections::BTreeMap;
use std::time::Duration;

use rmcp::model::{RequestStateCodec, RequestStateError, SealOptions};
use sha2::{Digest as _, Sha256};
use tokkuri_core::wire::Json;

/// Seals and opens request states.
#[derive(Clone, Debug)]
pub(crate) struct RequestState {
    codec: RequestStateCodec,
    ttl: Duration,
}

/// What a state is good for: one caller's one call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Binding<'a> {
    /// The caller, as text that tells owners apart.
    pub(crate) owner: &'a str,
    /// The method, such as `tools/call`.
    pub(crate) method: &'a str,
    /// The tool or prompt.
    pub(crate) name: &'a str,
    /// The arguments as JSON text; none are as good as `{}`. White space, the order of members and escapes do not matter.
    pub(crate) arguments: Option<&'a str>,
}

/// A state that is not ours, not this caller's, not this call's, or too old. The client is not told which (-32602 on 200).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("requestState is not valid for this request, or it has expired: start over without it")]
pub(crate) struct Invalid;

/// A secret too short to sign with.
#[derive(Debug, thiserror::Error)]
#[error("state_secret must have at least {} bytes", RequestStateCodec::MIN_KEY_LENGTH)]
pub(crate) struct ShortSecret(#[from] RequestStateError);

impl RequestState {
    /// Seals with this secret, which all nodes share, for this long.
    ///
    /// # Errors
    /// If the secret has less than 32 bytes.
    pub(crate) fn new(secret: &[u8], state_ttl_ms: u64) -> Result<Self, ShortSecret> {
        Ok(Self { codec: RequestStateCodec::try_new(secret)?, ttl: Duration::from_millis(state_ttl_ms) })
    }

    /// The answers so far, by key, sealed for this call.
    ///
    /// # Errors
    /// None that answers could cause: they are JSON.
    pub(crate) fn seal(
        &self,
        binding: Binding<'_>,
        answers: &BTreeMap<String, Json>,
    ) -> Result<String, serde_json::Error> {
        let bound = binding.bytes();
        let options = SealOptions::new().associated_data(&bound).ttl(self.ttl);
        Ok(self.codec.seal_with(&serde_json::to_vec(answers)?, &options))
    }

    /// The answers that were sealed for this call.
    ///
    /// # Errors
    /// [`Invalid`] for everything else.
    pub(crate) fn open(&self, binding: Binding<'_>, sealed: &str) -> Result<BTreeMap<String, Json>, Invalid> {
        let opened = self.codec.open_with(sealed, &binding.bytes()).map_err(|fault| {
            tracing::debug!(%fault, "a requestState was refused");
            Invalid
        })?;
        serde_json::from_slice(&opened).map_err(|_| Invalid)
    }
}

impl Binding<'_> {
    /// One text for each binding, and no two bindings with the same: every part is preceded by its length.
    fn bytes(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(b"tokkuri/request-state/1");
        for part in [self.owner, self.method, self.name] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        hash.update(digest::of(self.arguments.unwrap_or("{}")));
        hash.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use proptest::prelude::*;

    use super::*;

    const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";
    const CALL: Binding<'_> = Binding {
        owner: "iss|sub|client|resource",
        method: "tools/call",
        name: "drop",
        arguments: Some(r#"{"a":1,"b":"x"}"#),
    };

    fn state() -> RequestState {
        RequestState::new(SECRET, 60_000).unwrap()
    }

    fn answers() -> BTreeMap<String, Json> {
        BTreeMap::from([("user".into(), Json::parse(r#"{"action":"accept","content":{"n":1e300}}"#).unwrap())])
    }

    #[test]
    fn what_was_sealed_comes_back_byte_for_byte() {
        let sealed = state().seal(CALL, &answers()).unwrap();
        assert_eq!(state().open(CALL, &sealed).unwrap(), answers());
        let retried = Binding { arguments: Some(" { \"b\" : \"\\u0078\", \"a\" : 1 } "), ..CALL };
        assert_eq!(state().open(retried, &sealed).unwrap(), answers());
    }

    #[test]
    fn no_arguments_are_as_good_as_empty_ones() {
        let none = Binding { arguments: None, ..CALL };
        let sealed = state().seal(none, &answers()).unwrap();
        state().open(Binding { arguments: Some("{ }"), ..CALL }, &sealed).unwrap();
    }

    #[test]
    fn another_caller_or_another_call_cannot_use_it() {
        let sealed = state().seal(CALL, &answers()).unwrap();
        let table = [
            Binding { owner: "iss|sub|client2|resource", ..CALL },
            Binding { owner: "", ..CALL },
            Binding { method: "prompts/get", ..CALL },
            Binding { name: "dropx", ..CALL },
            Binding { method: "tools/calld", name: "rop", ..CALL },
            Binding { arguments: Some(r#"{"a":2,"b":"x"}"#), ..CALL },
            Binding { arguments: Some(r#"{"a":"1","b":"x"}"#), ..CALL },
            Binding { arguments: Some(r#"{"a":1}"#), ..CALL },
            Binding { arguments: None, ..CALL },
        ];
        for other in table {
            assert_eq!(state().open(other, &sealed), Err(Invalid), "{other:?}");
        }
        let foreign = RequestState::new(b"another secret, of as many bytes", 60_000).unwrap();
        assert_eq!(foreign.open(CALL, &sealed), Err(Invalid));
    }

    #[test]
    fn every_changed_byte_is_noticed() {
        let sealed = state().seal(CALL, &answers()).unwrap();
        for at in 0..sealed.len() {
            let mut changed = sealed.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(state().open(CALL, &changed), Err(Invalid), "{at}");
            assert_eq!(state().open(CALL, &sealed[..at]), Err(Invalid), "{at}");
        }
    }

    #[test]
    fn an_expired_one_is_refused() {
        // The expiry stands in the open, before the answers: it has to be what was asked for, and it has to count.
        let expiry = |state: &RequestState| {
            let sealed = state.seal(CALL, &answers()).unwrap();
            let body = URL_SAFE_NO_PAD.decode(sealed.split('.').nth(1).unwrap()).unwrap();
            i64::from_be_bytes(body[..8].try_into().unwrap())
        };
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
        let left = i128::from(expiry(&state())) - i128::try_from(now).unwrap();
        assert!((60_000..90_000).contains(&left), "{left}");

        let short = RequestState::new(SECRET, 0).unwrap();
        let sealed = short.seal(CALL, &answers()).unwrap();
        let deadline = std::time::Instant::now() + Duration::from_secs(5);
        while short.open(CALL, &sealed).is_ok() {
            assert!(std::time::Instant::now() < deadline, "it never expires");
            std::hint::spin_loop();
        }
        assert_eq!(short.open(CALL, &sealed), Err(Invalid));
    }

    #[test]
    fn a_short_secret_is_refused_with_a_reason() {
        let said = RequestState::new(b"short", 1).unwrap_err().to_string();
        assert_eq!(said, "state_secret must have at least 32 bytes");
    }

    proptest! {
        #[test]
        fn no_text_is_taken_for_a_state(text in any::<String>()) {
            prop_assert_eq!(state().open(CALL, &text), Err(Invalid));
        }
    }
}
