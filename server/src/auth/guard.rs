//! The resource server: from a request's head to its caller.

use std::sync::Arc;
use std::time::SystemTime;

use http::header::{AUTHORIZATION, HeaderMap};
use http::request::Parts;
use jsonwebtoken::DecodingKey;
use tokkuri_core::Text;
use tokkuri_core::access::{Caller, Owner, Scopes};

use crate::auth::challenge::Challenges;
use crate::auth::keys::{self, Keys, NoKey};
use crate::auth::metadata::Metadata;
use crate::auth::token::{Identity, Rules, Signed};
use crate::auth::{OwnerResolver, ScopeHierarchy};
use crate::config::{AuthConfig, TokenKeys};
use crate::mcp::refusal::Answer;
use crate::wall_clock;

/// Judges the credentials of requests.
#[derive(Debug)]
pub(crate) struct Guard {
    rules: Rules,
    keys: Keys,
    hierarchy: Arc<dyn ScopeHierarchy>,
    challenges: Challenges,
    metadata: Metadata,
    /// The server's name: a part of every owner.
    server: Text,
}

/// Put into a request's extensions: who its token says is calling.
#[derive(Clone, Debug)]
pub(crate) struct Authenticated {
    pub(crate) caller: Caller,
    /// When the token is accepted no longer: what was begun with it and is still open then has to end.
    pub(crate) expires: SystemTime,
}

/// What the `Authorization` header holds.
#[derive(Debug, PartialEq, Eq)]
enum Credentials<'a> {
    None,
    Bearer(&'a str),
    Malformed,
}

impl Guard {
    /// The guard of the server `server`, whose path is `endpoint`.
    ///
    /// # Errors
    /// What is wrong with the configuration or its key file.
    pub(crate) fn new(
        auth: &AuthConfig,
        server: &str,
        endpoint: &'static str,
        hierarchy: Arc<dyn ScopeHierarchy>,
    ) -> Result<Self, String> {
        // Issuer and subject are told apart by the first blank.
        if auth.issuer.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err("auth.issuer: an issuer has no blanks in it".to_owned());
        }
        let keys = match &auth.keys {
            TokenKeys::Hs256(secret) => {
                let key = DecodingKey::from_secret(secret.expose().as_bytes());
                Keys::Secret(Box::new(key.map_err(|error| format!("auth.hs256_secret: {error}"))?))
            }
            TokenKeys::Jwks(place) => Keys::Public(keys::from_place(place)?),
        };
        let metadata = Metadata::new(auth, server, endpoint);
        let required = auth.required_scopes.iter().map(Text::from).collect();
        Ok(Self {
            rules: Rules::new(&auth.issuer, &auth.audience),
            keys,
            hierarchy,
            challenges: Challenges::new(metadata.url(), required),
            metadata,
            server: server.into(),
        })
    }

    /// How this endpoint turns requests away.
    pub(crate) const fn challenges(&self) -> &Challenges {
        &self.challenges
    }

    /// What this endpoint says of itself.
    pub(crate) const fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Makes out the caller of a request and puts it into the request's extensions. The token itself goes no further.
    ///
    /// # Errors
    /// The answer, if there is no token that is accepted.
    pub(crate) async fn admit(&self, parts: &mut Parts) -> Result<(), Box<Answer>> {
        let admitted = match credentials(&parts.headers) {
            Credentials::None => Err(self.challenges.no_token()),
            Credentials::Malformed => Err(self.challenges.malformed()),
            Credentials::Bearer(token) => self.judge(token).await.map_err(|no_key| match no_key {
                NoKey::Unavailable => self.challenges.unavailable(),
                NoKey::Invalid(invalid) => {
                    tracing::debug!(why = %invalid, "an access token is not accepted");
                    self.challenges.invalid_token()
                }
            }),
        };
        parts.headers.remove(AUTHORIZATION);
        parts.extensions.insert(admitted.map_err(Box::new)?);
        Ok(())
    }

    async fn judge(&self, token: &str) -> Result<Authenticated, NoKey> {
        let signed = Signed::read(token).map_err(NoKey::Invalid)?;
        let key = self.keys.find(&signed).await?;
        let identity = self.rules.verify(token, signed.alg, &key, wall_clock::now()).map_err(NoKey::Invalid)?;
        Ok(self.caller(identity))
    }

    fn caller(&self, identity: Identity) -> Authenticated {
        let Identity { principal, client, resource, scopes, expires } = identity;
        let owner = Owner { principal, server: self.server.clone(), client, resource };
        Authenticated { caller: Caller { owner, scopes: Scopes::Granted(self.hierarchy.widen(scopes)) }, expires }
    }
}

/// One `Authorization: Bearer TOKEN` is what there should be. Another scheme is not ours to read.
fn credentials(headers: &HeaderMap) -> Credentials<'_> {
    let mut lines = headers.get_all(AUTHORIZATION).iter();
    let Some(line) = lines.next() else { return Credentials::None };
    let Ok(text) = line.to_str() else { return Credentials::Malformed };
    if lines.next().is_some() {
        return Credentials::Malformed;
    }
    let (scheme, rest) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
    if !scheme.eq_ignore_ascii_case("Bearer") {
        return Credentials::None;
    }
    let token = rest.trim();
    // RFC 6750 § 2.1, b64token.
    let fits = |c: u8| c.is_ascii_alphanumeric() || b"-._~+/=".contains(&c);
    match !token.is_empty() && token.bytes().all(fits) {
        true => Credentials::Bearer(token),
        false => Credentials::Malformed,
    }
}

/// Owners by token where a request has been authenticated; where not, on stdio or without `[auth]`, as the application says.
#[derive(Debug)]
pub(crate) struct ByToken(pub(crate) Arc<dyn OwnerResolver>);

impl OwnerResolver for ByToken {
    fn resolve(&self, parts: Option<&Parts>, server: &str) -> Caller {
        match parts.and_then(|parts| parts.extensions.get::<Authenticated>()) {
            Some(authenticated) => authenticated.caller.clone(),
            None => self.0.resolve(parts, server),
        }
    }
}

/// When a request's token expires, if it has one: a stream that it opened ends then.
pub(crate) fn expires(parts: &Parts) -> Option<SystemTime> {
    parts.extensions.get::<Authenticated>().map(|authenticated| authenticated.expires)
}

#[cfg(test)]
mod tests;
