//! The token that `/metrics` may ask for.

use http::HeaderMap;
use http::header::AUTHORIZATION;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::config::Secret;

/// A token, as far as it takes to know it again.
#[derive(Clone)]
pub(crate) struct Token([u8; 32]);

impl Token {
    pub(crate) fn new(token: &Secret) -> Self {
        Self(digest(token.expose().as_bytes()))
    }

    /// Whether the request shows it, as `Authorization: Bearer …`. How long that takes to say tells nothing about the token, not even
    /// how long it is.
    pub(crate) fn is_in(&self, headers: &HeaderMap) -> bool {
        let mut lines = headers.get_all(AUTHORIZATION).iter();
        let (Some(line), None) = (lines.next(), lines.next()) else { return false };
        let Some((scheme, shown)) = line.as_bytes().split_at_checked(7) else { return false };
        scheme.eq_ignore_ascii_case(b"bearer ") && bool::from(digest(shown.trim_ascii()).ct_eq(&self.0))
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

fn digest(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn only_the_token_itself_opens() {
        let token = Token::new(&Secret::new("s3cret"));
        let shown = |lines: &[&str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(AUTHORIZATION, HeaderValue::from_str(line).unwrap());
            }
            token.is_in(&headers)
        };
        for good in ["Bearer s3cret", "bearer s3cret", "BEARER  s3cret "] {
            assert!(shown(&[good]), "{good}");
        }
        for bad in
            ["", "Bearer", "Bearer ", "Bearer s3cre", "Bearer s3cretx", "Bearer S3CRET", "Basic s3cret", "s3cret"]
        {
            assert!(!shown(&[bad]), "{bad}");
        }
        assert!(!shown(&[]) && !shown(&["Bearer s3cret", "Bearer s3cret"]));
    }

    #[test]
    fn it_is_not_shown() {
        assert!(!format!("{:?}", Token::new(&Secret::new("s3cret"))).contains("s3cret"));
    }
}
