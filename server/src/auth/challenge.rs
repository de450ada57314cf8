//! How a request without the right credentials is turned away: the status, an empty body, and `WWW-Authenticate` (RFC 6750 § 3, RFC 9728
//! § 5.1, MCP 2026-07-28 Authorization).

use std::collections::BTreeSet;

use http::StatusCode;
use http::header::{HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use tokkuri_core::Text;

use crate::mcp::refusal::Answer;

/// The challenges of one endpoint.
#[derive(Clone, Debug, Default)]
pub(crate) struct Challenges {
    /// Where the resource's metadata is.
    metadata: Option<String>,
    /// What every token needs.
    required: Vec<Text>,
}

impl Challenges {
    /// Challenges that point to `metadata` and ask for tokens with the scopes `required`.
    pub(crate) const fn new(metadata: Option<String>, required: Vec<Text>) -> Self {
        Self { metadata, required }
    }

    /// What every token needs.
    pub(crate) fn required(&self) -> &[Text] {
        &self.required
    }

    /// 401: there is no token.
    pub(crate) fn no_token(&self) -> Answer {
        self.unauthorized(None)
    }

    /// 401: the token is not one that is accepted.
    pub(crate) fn invalid_token(&self) -> Answer {
        self.unauthorized(Some("invalid_token"))
    }

    /// 400: the request's credentials are no such thing.
    pub(crate) fn malformed(&self) -> Answer {
        let mut challenge = Challenge::new();
        challenge.say("error", "invalid_request");
        challenge.say_if("resource_metadata", self.metadata.as_deref());
        challenge.answer(StatusCode::BAD_REQUEST)
    }

    /// 403: the token lacks scopes. All that the operation needs are named at once, those that are granted included: `needed` and what
    /// every token needs.
    pub(crate) fn lacks_scope(&self, needed: &[Text]) -> Answer {
        let mut challenge = Challenge::new();
        challenge.say("error", "insufficient_scope");
        challenge.say("scope", &joined(self.required.iter().chain(needed)));
        challenge.say_if("resource_metadata", self.metadata.as_deref());
        challenge.answer(StatusCode::FORBIDDEN)
    }

    /// 503: no key of the issuer's could be read, so no token can be judged.
    pub(crate) fn unavailable(&self) -> Answer {
        let mut answer = Answer::default();
        *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("10"));
        answer
    }

    fn unauthorized(&self, error: Option<&str>) -> Answer {
        let mut challenge = Challenge::new();
        challenge.say_if("error", error);
        challenge.say_if("resource_metadata", self.metadata.as_deref());
        if !self.required.is_empty() {
            challenge.say("scope", &joined(&self.required));
        }
        challenge.answer(StatusCode::UNAUTHORIZED)
    }
}

/// Each scope once, in the order in which they were first named.
fn joined<'a>(scopes: impl IntoIterator<Item = &'a Text>) -> String {
    let mut seen = BTreeSet::new();
    let scopes: Vec<&str> = scopes.into_iter().map(Text::as_str).filter(|scope| seen.insert(*scope)).collect();
    scopes.join(" ")
}

/// One `Bearer` challenge.
struct Challenge(String);

impl Challenge {
    fn new() -> Self {
        Self("Bearer".to_owned())
    }

    fn say_if(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.say(name, value);
        }
    }

    fn say(&mut self, name: &str, value: &str) {
        self.0.push_str(if self.0 == "Bearer" { " " } else { ", " });
        self.0.push_str(name);
        self.0.push_str("=\"");
        // What cannot stand between quotes has no place in a scope or a URL either.
        self.0.extend(value.chars().filter(|c| (' '..='~').contains(c) && *c != '"' && *c != '\\'));
        self.0.push('"');
    }

    fn answer(self, status: StatusCode) -> Answer {
        let mut answer = Answer::default();
        *answer.status_mut() = status;
        let value = HeaderValue::try_from(self.0).expect("printable ASCII is a header value");
        answer.headers_mut().insert(WWW_AUTHENTICATE, value);
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::refusal::tests::text;

    fn scopes(list: &[&str]) -> Vec<Text> {
        list.iter().copied().map(Text::from).collect()
    }

    #[test]
    fn every_refusal_has_its_status_its_header_and_no_body() {
        const AT: &str = "https://h/.well-known/oauth-protected-resource/mcp";
        let bare = Challenges::default();
        let full = Challenges::new(Some(AT.into()), scopes(&["mcp", "base"]));
        let needed = scopes(&["files:write", "mcp"]);
        let table = [
            (full.no_token(), 401, format!(r#"Bearer resource_metadata="{AT}", scope="mcp base""#)),
            (
                full.invalid_token(),
                401,
                format!(r#"Bearer error="invalid_token", resource_metadata="{AT}", scope="mcp base""#),
            ),
            (full.malformed(), 400, format!(r#"Bearer error="invalid_request", resource_metadata="{AT}""#)),
            (
                full.lacks_scope(&needed),
                403,
                format!(r#"Bearer error="insufficient_scope", scope="mcp base files:write", resource_metadata="{AT}""#),
            ),
            (bare.no_token(), 401, "Bearer".to_owned()),
            (bare.invalid_token(), 401, r#"Bearer error="invalid_token""#.to_owned()),
            (bare.lacks_scope(&scopes(&["a\"b"])), 403, r#"Bearer error="insufficient_scope", scope="ab""#.to_owned()),
        ];
        for (answer, status, header) in table {
            assert_eq!(answer.status(), status, "{header}");
            assert_eq!(answer.headers()[WWW_AUTHENTICATE], header);
            assert_eq!(text(answer), "");
        }
        let down = full.unavailable();
        assert_eq!((down.status().as_u16(), down.headers().contains_key(RETRY_AFTER)), (503, true));
    }
}
