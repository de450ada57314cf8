//! One access token: what it has to be, and who it says is calling.
//!
//! A JWT (RFC 7519, RFC 9068) is accepted if our issuer signed it with a key that is its own for that algorithm, for one of our
//! resources, for now. Which key, [`super::jwks`] says; the token only names it.

use std::collections::BTreeSet;
use std::fmt;
use std::time::{Duration, SystemTime};

use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use serde::Deserialize;
use tokkuri_core::Text;

/// How far the issuer's clock may be off, in seconds, at either end of a token's life.
pub(crate) const LEEWAY_S: f64 = 30.0;

/// Longest token that is looked at, in bytes.
pub(crate) const MAX_BYTES: usize = 16 << 10;

/// Longest subject or client, in bytes: they are stored with every task.
const MAX_NAME_BYTES: usize = 1 << 10;

/// Whose tokens are accepted, and for what.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    issuer: String,
    resources: Vec<Text>,
}

/// How a token is signed, by its own account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Signed {
    pub(crate) alg: Algorithm,
    pub(crate) kid: Option<String>,
}

/// What a token that was accepted says.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Issuer and subject, with a blank between them.
    pub(crate) principal: Text,
    /// The OAuth client; empty if the token names none.
    pub(crate) client: Text,
    /// The resource of ours that it is for.
    pub(crate) resource: Text,
    pub(crate) scopes: BTreeSet<Text>,
    /// When it is accepted no longer.
    pub(crate) expires: SystemTime,
}

/// Why a token is not accepted. The client learns only that it is not; this goes to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Invalid {
    #[error("it is no JWT")]
    Malformed,
    #[error("it is a token of another kind (typ)")]
    Kind,
    #[error("its algorithm is not one that these keys are for")]
    Algorithm,
    #[error("none of the issuer's keys is the one that it names")]
    UnknownKey,
    #[error("its signature is not that of the issuer's key")]
    Signature,
    #[error("it is of another issuer")]
    Issuer,
    #[error("it is for another audience")]
    Audience,
    #[error("it has expired")]
    Expired,
    #[error("it is not valid yet")]
    NotYet,
    #[error("its subject or client is missing, too long or not printable")]
    Name,
}

/// The claims that mean something here (RFC 9068 § 2.2; `azp` and `scp` are what some issuers say instead).
#[derive(Deserialize)]
struct Claims {
    iss: String,
    sub: String,
    aud: OneOrMany,
    exp: f64,
    nbf: Option<f64>,
    client_id: Option<String>,
    azp: Option<String>,
    scope: Option<OneOrMany>,
    scp: Option<OneOrMany>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl Signed {
    /// Reads a token's header. Nothing of it is believed: it selects among keys and algorithms that are ours, and where it points to
    /// keys of its own (`jwk`, `jku`, `x5u`) nobody looks.
    pub(crate) fn read(token: &str) -> Result<Self, Invalid> {
        if token.len() > MAX_BYTES {
            return Err(Invalid::Malformed);
        }
        let header = decode_header(token).map_err(|_| Invalid::Malformed)?;
        // RFC 8725 § 3.11: no ID token, logout token or proof of possession passes for an access token, as far as they say so.
        let typ = header.typ.as_deref().unwrap_or("JWT");
        let typ = typ.strip_prefix("application/").unwrap_or(typ);
        if !typ.eq_ignore_ascii_case("JWT") && !typ.eq_ignore_ascii_case("at+jwt") {
            return Err(Invalid::Kind);
        }
        Ok(Self { alg: header.alg, kid: header.kid })
    }
}

impl Rules {
    /// Tokens of `issuer` for any of `resources`.
    pub(crate) fn new(issuer: &str, resources: &[String]) -> Self {
        Self { issuer: issuer.to_owned(), resources: resources.iter().map(Text::from).collect() }
    }

    /// Accepts a token at the time `now`, or says what is wrong with it. `alg` is the only algorithm that `key` is for.
    pub(crate) fn verify(
        &self,
        token: &str,
        alg: Algorithm,
        key: &DecodingKey,
        now: SystemTime,
    ) -> Result<Identity, Invalid> {
        use jsonwebtoken::errors::ErrorKind;
        // The library checks the signature; the claims are checked below, all in one place and by a clock that tests can set.
        let mut signature = Validation::new(alg);
        signature.validate_exp = false;
        signature.validate_aud = false;
        signature.required_spec_claims.clear();
        let claims = decode::<Claims>(token, key, &signature).map_err(|error| match error.kind() {
            ErrorKind::InvalidSignature => Invalid::Signature,
            ErrorKind::InvalidAlgorithm | ErrorKind::InvalidKeyFormat => Invalid::Algorithm,
            _ => Invalid::Malformed,
        })?;
        self.judge(claims.claims, now)
    }

    fn judge(&self, claims: Claims, now: SystemTime) -> Result<Identity, Invalid> {
        if claims.iss != self.issuer {
            return Err(Invalid::Issuer);
        }
        // A token for several of ours is one for the first of them in our order, whatever its own: a refreshed one then has the
        // same owner.
        let resource = self.resources.iter().find(|resource| claims.aud.has(resource)).ok_or(Invalid::Audience)?;
        let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        if now >= claims.exp + LEEWAY_S {
            return Err(Invalid::Expired);
        }
        if claims.nbf.is_some_and(|nbf| now + LEEWAY_S < nbf) {
            return Err(Invalid::NotYet);
        }
        let client = claims.client_id.or(claims.azp).unwrap_or_default();
        if claims.sub.is_empty() || !is_name(&claims.sub) || !is_name(&client) {
            return Err(Invalid::Name);
        }
        let stated = [&claims.scope, &claims.scp];
        Ok(Identity {
            principal: Text::from(format!("{} {}", claims.iss, claims.sub)),
            client: client.into(),
            resource: resource.clone(),
            scopes: stated.into_iter().flatten().flat_map(OneOrMany::scopes).collect(),
            expires: instant(claims.exp + LEEWAY_S),
        })
    }
}

impl OneOrMany {
    fn items(&self) -> &[String] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Many(many) => many,
        }
    }

    fn has(&self, wanted: &str) -> bool {
        self.items().iter().any(|item| item == wanted)
    }

    /// Scopes by blanks, as a list, or both. What is no scope (RFC 6749 § 3.3) grants nothing.
    fn scopes(&self) -> impl Iterator<Item = Text> + '_ {
        let is_scope = |scope: &&str| scope.bytes().all(|c| c.is_ascii_graphic() && c != b'"' && c != b'\\');
        self.items().iter().flat_map(|item| item.split_ascii_whitespace()).filter(is_scope).map(Text::from)
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("principal", &self.principal)
            .field("client", &self.client)
            .finish_non_exhaustive()
    }
}

fn is_name(text: &str) -> bool {
    text.len() <= MAX_NAME_BYTES && !text.chars().any(char::is_control)
}

/// A time in seconds of the Unix epoch; one that no clock reaches is a century off.
fn instant(seconds: f64) -> SystemTime {
    const CENTURY_S: f64 = 100.0 * 365.25 * 86_400.0;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    SystemTime::UNIX_EPOCH + Duration::from_secs_f64(seconds.clamp(0.0, now + CENTURY_S))
}

#[cfg(test)]
mod tests;
