//! Who may call.

use std::net::SocketAddr;

use http::header::AUTHORIZATION;
use tonic::Status;
use tonic::service::Interceptor;

use crate::admin::token::Token;
use crate::cluster::status::{Reason, refuse};
use crate::config::Secret;

/// What a caller has to show. A certificate is asked for by the listener's handshake: whoever gets here has one.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    token: Option<Token>,
    certificate: bool,
}

/// A listener that strangers reach and that asks them for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "without a token or client certificates only a loopback address will do: whoever reaches {0} could cancel every task; set grpc.token, or grpc.cert, grpc.key and grpc.client_ca, or listen on 127.0.0.1"
)]
pub struct Exposed(
    /// Where it was to listen.
    pub SocketAddr,
);

impl Access {
    /// Who may call at `address`.
    ///
    /// # Errors
    /// [`Exposed`]: other machines reach it, and nothing is asked for.
    pub(crate) fn at(address: SocketAddr, token: Option<&Secret>, certificate: bool) -> Result<Self, Exposed> {
        match token.is_some() || certificate || address.ip().to_canonical().is_loopback() {
            true => Ok(Self { token: token.map(Token::new), certificate }),
            false => Err(Exposed(address)),
        }
    }

    /// Whether payloads may leave: what asks nobody who they are shows nobody what tasks carry.
    pub(crate) fn payloads(&self) -> Result<(), Status> {
        match self.token.is_some() || self.certificate {
            true => Ok(()),
            false => Err(refuse(
                Reason::PayloadsNotAllowed,
                "payloads leave only to callers that show who they are: set grpc.token, or grpc.client_ca with grpc.cert and grpc.key, on the server; or ask without include_payloads",
            )),
        }
    }
}

impl Interceptor for Access {
    fn call(&mut self, request: tonic::Request<()>) -> Result<tonic::Request<()>, Status> {
        let Some(token) = &self.token else { return Ok(request) };
        let headers = request.metadata().as_ref();
        if token.is_in(headers) {
            return Ok(request);
        }
        Err(match headers.contains_key(AUTHORIZATION) {
            false => refuse(Reason::TokenMissing, "send the token of [grpc] as metadata: authorization: Bearer …"),
            true => refuse(Reason::TokenWrong, "the token is not the one of [grpc] token on this server"),
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_in_result, reason = "a test may panic")]
mod tests {
    use tonic::Code;

    use super::*;

    fn at(address: &str, token: Option<&str>, certificate: bool) -> Result<Access, Exposed> {
        Access::at(address.parse().expect("an address"), token.map(Secret::new).as_ref(), certificate)
    }

    fn shown(access: &Access, lines: &[&str]) -> Result<(), Code> {
        let mut request = tonic::Request::new(());
        for line in lines {
            request.metadata_mut().append("authorization", line.parse().expect("a header"));
        }
        access.clone().call(request).map(|_| ()).map_err(|status| status.code())
    }

    #[test]
    fn what_asks_for_nothing_listens_on_loopback_alone() {
        for address in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            assert!(at(address, None, false).is_ok(), "{address}");
        }
        for address in ["0.0.0.0:1", "[::]:1", "192.0.2.1:1", "[::ffff:192.0.2.1]:1"] {
            let exposed = at(address, None, false).unwrap_err().to_string();
            assert!(exposed.contains(address) && exposed.contains("grpc.token"), "{exposed}");
            assert!(at(address, Some("t"), false).is_ok());
            assert!(at(address, None, true).is_ok());
        }
    }

    #[test]
    fn only_the_token_itself_opens() {
        let access = at("127.0.0.1:1", Some("s3cret"), false).unwrap();
        for good in ["Bearer s3cret", "bearer s3cret", "BEARER  s3cret "] {
            assert_eq!(shown(&access, &[good]), Ok(()), "{good}");
        }
        for bad in ["Bearer", "Bearer ", "Bearer s3cre", "Bearer s3cretx", "Basic s3cret", "s3cret"] {
            assert_eq!(shown(&access, &[bad]), Err(Code::Unauthenticated), "{bad}");
        }
        assert_eq!(shown(&access, &[]), Err(Code::Unauthenticated));
        assert_eq!(shown(&access, &["Bearer s3cret", "Bearer s3cret"]), Err(Code::Unauthenticated));
        assert!(!format!("{access:?}").contains("s3cret"));
    }

    #[test]
    fn payloads_leave_only_where_callers_show_who_they_are() {
        assert_eq!(at("127.0.0.1:1", None, false).unwrap().payloads().unwrap_err().code(), Code::PermissionDenied);
        assert!(at("127.0.0.1:1", Some("t"), false).unwrap().payloads().is_ok());
        assert!(at("127.0.0.1:1", None, true).unwrap().payloads().is_ok());
    }
}
