//! Who may reach the endpoint from where: `Host` against DNS rebinding, `Origin` against foreign pages, CORS for those that are let
//! in (MCP 2026-07-28, Streamable HTTP § Security).
//!
//! A page whose `Origin` is the very host that it talks to is our own, provided that this host is one of ours *by name*: after a DNS
//! rebinding, a foreign page's origin equals its host too.

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN, VARY,
};
use http::request::Parts;
use http::{Method, StatusCode};

use crate::mcp::refusal::{Answer, INVALID_REQUEST, Refusal};

/// An entry of `allowed_hosts` or `allowed_origins` that names nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{setting}: {entry:?} {reason}")]
pub(crate) struct BadEntry {
    setting: &'static str,
    entry: String,
    reason: &'static str,
}

/// The hosts and origins that are let in.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    any_host: bool,
    hosts: Vec<Authority>,
    origins: Vec<Listed>,
}

/// The CORS headers that an answer to this request needs: none unless its origin is a listed one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cors(Option<HeaderValue>);

/// An authority as it is configured; without a port, any port will do.
#[derive(Clone, Debug)]
struct Authority {
    host: String,
    port: Option<u16>,
}

/// An origin as it is configured.
#[derive(Clone, Debug)]
struct Listed {
    scheme: String,
    host: String,
    port: Port,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Port {
    Any,
    Only(Option<u16>),
}

impl Gate {
    /// A gate for these hosts (`name`, `name:port`, or `*` for any) and origins (`scheme://host`, with `:port` or `:*`).
    ///
    /// # Errors
    /// Names the first entry that is neither.
    pub(crate) fn new(hosts: &[String], origins: &[String]) -> Result<Self, BadEntry> {
        let bad = |setting, entry: &str, reason| BadEntry { setting, entry: entry.to_owned(), reason };
        let mut gate = Self { any_host: false, hosts: Vec::new(), origins: Vec::new() };
        for entry in hosts {
            match entry.as_str() {
                "*" => gate.any_host = true,
                name => {
                    let (host, port) = configured_authority(name)
                        .ok_or_else(|| bad("allowed_hosts", name, "is not a host or host:port"))?;
                    gate.hosts.push(Authority { host: host.to_owned(), port });
                }
            }
        }
        for entry in origins {
            let wrong = || bad("allowed_origins", entry, "is not scheme://host, scheme://host:port or scheme://host:*");
            let (text, any_port) = match entry.strip_suffix(":*") {
                Some(text) => (text, true),
                None => (entry.as_str(), false),
            };
            let origin = Origin::parse(text).ok_or_else(wrong)?;
            let port = if any_port { Port::Any } else { Port::Only(origin.port) };
            gate.origins.push(Listed { scheme: origin.scheme.to_owned(), host: origin.host.to_owned(), port });
        }
        Ok(gate)
    }

    /// Lets a request in by its `Host` (or HTTP/2 authority) and its `Origin`.
    ///
    /// # Errors
    /// 400 for a missing or unreadable host, 403 for a foreign one and for a foreign origin.
    pub(crate) fn admit(&self, parts: &Parts) -> Result<Cors, Refusal> {
        let named = self.host(parts)?;
        let mut lines = parts.headers.get_all(ORIGIN).iter();
        let Some(line) = lines.next() else { return Ok(Cors::default()) };
        let foreign = || Refusal::new(StatusCode::FORBIDDEN, INVALID_REQUEST, "this Origin is not allowed");
        if lines.next().is_some() {
            return Err(foreign());
        }
        let origin = line.to_str().ok().and_then(|text| Origin::parse(text.trim())).ok_or_else(foreign)?;
        if self.origins.iter().any(|listed| listed.is(&origin)) {
            return Ok(Cors(Some(line.clone())));
        }
        match named {
            Some(host) if origin.is_at(host) => Ok(Cors::default()),
            Some(_) | None => Err(foreign()),
        }
    }

    /// The request's host and port, if it is one of ours by name; `None` if only the wildcard lets it in.
    fn host<'a>(&self, parts: &'a Parts) -> Result<Option<(&'a str, Option<u16>)>, Refusal> {
        let unreadable = || Refusal::bad_request(INVALID_REQUEST, "Host is missing or unreadable");
        let mut lines = parts.headers.get_all(HOST).iter();
        let header = match lines.next() {
            Some(line) => {
                let text = line.to_str().map_err(|_| unreadable())?;
                Some(authority(text.trim()).ok_or_else(unreadable)?)
            }
            None => None,
        };
        if lines.next().is_some() {
            return Err(unreadable());
        }
        let target = match parts.uri.authority() {
            Some(target) => Some(authority(target.as_str()).ok_or_else(unreadable)?),
            None => None,
        };
        let mut named = None;
        for host in [target, header].into_iter().flatten() {
            named = self.hosts.iter().any(|allowed| allowed.is(host)).then_some(host);
            if named.is_none() && !self.any_host {
                return Err(Refusal::new(StatusCode::FORBIDDEN, INVALID_REQUEST, "this Host is not allowed"));
            }
        }
        if target.is_none() && header.is_none() {
            return Err(unreadable());
        }
        Ok(named)
    }
}

impl Cors {
    /// The answer to a preflight from a listed origin; `None` if this is not one.
    pub(crate) fn preflight(&self, parts: &Parts) -> Option<Answer> {
        if parts.method != Method::OPTIONS || !parts.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD) {
            return None;
        }
        self.0.as_ref()?;
        let mut answer = Answer::default();
        *answer.status_mut() = StatusCode::NO_CONTENT;
        let headers = answer.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("POST, GET, DELETE"));
        headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("7200"));
        headers.append(VARY, HeaderValue::from_name(ACCESS_CONTROL_REQUEST_HEADERS));
        // A list of our own could not name every Mcp-Param-*; the origin is trusted, so it gets what it asks for.
        if let Some(asked) = parts.headers.get(ACCESS_CONTROL_REQUEST_HEADERS) {
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, asked.clone());
        }
        Some(answer)
    }

    /// Adds what the browser needs to let its page read an answer; refusals need it as well.
    pub(crate) fn apply(&self, headers: &mut HeaderMap) {
        const EXPOSED: &str = "www-authenticate, mcp-session-id, mcp-protocol-version";
        let Some(origin) = &self.0 else { return };
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
        headers.append(VARY, HeaderValue::from_name(HeaderName::from_static("origin")));
    }
}

impl Authority {
    fn is(&self, (host, port): (&str, Option<u16>)) -> bool {
        self.host.eq_ignore_ascii_case(host) && (self.port.is_none() || self.port == port)
    }
}

impl Listed {
    fn is(&self, origin: &Origin<'_>) -> bool {
        self.scheme.eq_ignore_ascii_case(origin.scheme)
            && self.host.eq_ignore_ascii_case(origin.host)
            && (self.port == Port::Any || self.port == Port::Only(origin.port))
    }
}

/// A parsed `Origin` (RFC 6454); the port is the scheme's own where none is given.
struct Origin<'a> {
    scheme: &'a str,
    host: &'a str,
    port: Option<u16>,
}

impl<'a> Origin<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        if scheme.is_empty() || !scheme.bytes().all(|c| c.is_ascii_alphanumeric() || b"+-.".contains(&c)) {
            return None;
        }
        let (host, port) = authority(rest)?;
        Some(Self { scheme, host, port: port.or_else(|| default_port(scheme)) })
    }

    /// Whether a page of this origin would have sent this `Host`. Which scheme we are reached by is not known: a proxy may end TLS.
    fn is_at(&self, (host, port): (&str, Option<u16>)) -> bool {
        let Some(default) = default_port(self.scheme) else { return false };
        self.host.eq_ignore_ascii_case(host) && self.port == Some(port.unwrap_or(default))
    }
}

fn default_port(scheme: &str) -> Option<u16> {
    match scheme {
        _ if scheme.eq_ignore_ascii_case("http") => Some(80),
        _ if scheme.eq_ignore_ascii_case("https") => Some(443),
        _ => None,
    }
}

/// `host[:port]`; a host in brackets comes without them.
fn authority(text: &str) -> Option<(&str, Option<u16>)> {
    let (host, rest) = match text.strip_prefix('[') {
        Some(inner) => {
            let (host, rest) = inner.split_once(']')?;
            host.parse::<std::net::Ipv6Addr>().ok()?;
            (host, rest)
        }
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    let in_host = |c: u8| c.is_ascii_alphanumeric() || b"-._~:".contains(&c);
    if host.is_empty() || !host.bytes().all(in_host) {
        return None;
    }
    let port = match rest.strip_prefix(':') {
        None if rest.is_empty() => None,
        Some("") => None,
        Some(digits) if digits.bytes().all(|c| c.is_ascii_digit()) => Some(digits.parse().ok()?),
        None | Some(_) => return None,
    };
    Some((host, port))
}

/// As [`authority`], but an IPv6 address may stand alone, without brackets.
fn configured_authority(text: &str) -> Option<(&str, Option<u16>)> {
    match text.parse::<std::net::Ipv6Addr>() {
        Ok(_) => Some((text, None)),
        Err(_) => authority(text),
    }
}

#[cfg(test)]
mod tests {
    use http::Request;
    use proptest::prelude::*;

    use super::*;

    fn gate(hosts: &[&str], origins: &[&str]) -> Gate {
        let owned = |list: &[&str]| list.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        Gate::new(&owned(hosts), &owned(origins)).unwrap()
    }

    fn parts(pairs: &[(&str, &str)]) -> Parts {
        let mut request = Request::post("/mcp");
        for (name, value) in pairs {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn status(gate: &Gate, host: &str, origin: Option<&str>) -> u16 {
        let pairs = [("host", Some(host)), ("origin", origin)];
        let pairs: Vec<_> = pairs.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        gate.admit(&parts(&pairs)).map_or_else(|refusal| refusal.status.as_u16(), |_| 200)
    }

    #[test]
    fn only_our_own_hosts_are_let_in() {
        let loopback = gate(&["localhost", "127.0.0.1", "::1"], &[]);
        let pinned = gate(&["mcp.example.com", "other.example.com:8443"], &[]);
        let table = [
            (&loopback, "localhost", 200),
            (&loopback, "LOCALHOST:1", 200),
            (&loopback, "127.0.0.1:65535", 200),
            (&loopback, "[::1]:8080", 200),
            (&loopback, "evil.example.com", 403),
            (&loopback, "localhost.evil.com", 403),
            (&loopback, "127.0.0.2", 403),
            (&loopback, "", 400),
            (&loopback, "localhost:x", 400),
            (&loopback, "localhost:65536", 400),
            (&loopback, "me@localhost", 400),
            (&loopback, "localhost/x", 400),
            (&loopback, "[::1", 400),
            (&pinned, "mcp.example.com:7", 200),
            (&pinned, "other.example.com:8443", 200),
            (&pinned, "other.example.com", 403),
            (&pinned, "localhost", 403),
            (&gate(&["*"], &[]), "anything.example", 200),
        ];
        for (gate, host, want) in table {
            assert_eq!(status(gate, host, None), want, "{host}");
        }
        assert_eq!(loopback.admit(&parts(&[])).unwrap_err().status, 400);
        assert_eq!(loopback.admit(&parts(&[("host", "localhost"), ("host", "localhost")])).unwrap_err().status, 400);
    }

    #[test]
    fn a_request_target_counts_as_the_host_does() {
        let gate = gate(&["localhost"], &[]);
        let target = |uri: &str, host: Option<&str>| {
            let mut request = Request::post(uri);
            if let Some(host) = host {
                request = request.header("host", host);
            }
            let parts = request.body(()).unwrap().into_parts().0;
            gate.admit(&parts).map_or_else(|refusal| refusal.status.as_u16(), |_| 200)
        };
        assert_eq!(target("http://localhost:1/mcp", None), 200);
        assert_eq!(target("http://evil.example/mcp", None), 403);
        assert_eq!(target("http://evil.example/mcp", Some("localhost")), 403);
        assert_eq!(target("http://localhost/mcp", Some("evil.example")), 403);
    }

    #[test]
    fn only_our_own_and_listed_origins_are_let_in() {
        let gate = gate(
            &["localhost", "mcp.example.com"],
            &["https://app.example.com", "http://dev.example.com:*", "app://x"],
        );
        let table = [
            ("localhost:8080", "http://localhost:8080", 200),
            ("localhost:8080", "https://LOCALHOST:8080", 200),
            ("localhost:8080", "http://localhost:3000", 403),
            ("localhost:8080", "http://localhost", 403),
            ("mcp.example.com", "https://mcp.example.com", 200),
            ("mcp.example.com", "https://mcp.example.com:443", 200),
            ("mcp.example.com:443", "https://mcp.example.com", 200),
            ("mcp.example.com:443", "http://mcp.example.com", 403),
            ("mcp.example.com", "ftp://mcp.example.com", 403),
            ("localhost", "https://app.example.com", 200),
            ("localhost", "https://app.example.com:443", 200),
            ("localhost", "https://app.example.com:444", 403),
            ("localhost", "http://app.example.com", 403),
            ("localhost", "http://dev.example.com:3000", 200),
            ("localhost", "app://x", 200),
            ("localhost", "app://y", 403),
            ("localhost", "null", 403),
            ("localhost", "", 403),
            ("localhost", "http://evil.example.com", 403),
            ("localhost", "http://localhost/", 403),
            ("localhost", "http://localhost@evil.example.com", 403),
            ("localhost", "localhost", 403),
        ];
        for (host, origin, want) in table {
            assert_eq!(status(&gate, host, Some(origin)), want, "{host} {origin}");
        }
        let twice = parts(&[("host", "localhost"), ("origin", "http://localhost"), ("origin", "http://localhost")]);
        assert_eq!(gate.admit(&twice).unwrap_err().status, 403);
    }

    #[test]
    fn a_rebound_page_is_not_our_own_when_any_host_is_allowed() {
        let gate = gate(&["*", "mcp.example.com"], &[]);
        assert_eq!(status(&gate, "evil.example.com", Some("http://evil.example.com")), 403);
        assert_eq!(status(&gate, "mcp.example.com", Some("http://mcp.example.com")), 200);
    }

    #[test]
    fn a_bad_entry_is_named() {
        for entry in ["", "http://x", "a b", "x:y", "[::1"] {
            assert_eq!(Gate::new(&[entry.to_owned()], &[]).unwrap_err().entry, entry);
        }
        for entry in ["", "*", "null", "app.example.com", "https://x/", "https://:443"] {
            let said = Gate::new(&[], &[entry.to_owned()]).unwrap_err().to_string();
            assert!(said.starts_with("allowed_origins: ") && said.contains(entry), "{said}");
        }
    }

    #[test]
    fn listed_origins_get_cors_answers_and_nobody_else_does() {
        let gate = gate(&["localhost"], &["https://app.example.com"]);
        let ask = |origin: &str, method: Method| {
            let pairs = [
                ("host", "localhost"),
                ("origin", origin),
                ("access-control-request-method", "POST"),
                ("access-control-request-headers", "mcp-param-x, content-type"),
            ];
            let mut parts = parts(&pairs);
            parts.method = method;
            let cors = gate.admit(&parts).unwrap();
            let preflight = cors.preflight(&parts);
            (cors, preflight)
        };
        let (cors, preflight) = ask("https://app.example.com", Method::OPTIONS);
        let mut preflight = preflight.unwrap();
        cors.apply(preflight.headers_mut());
        assert_eq!(preflight.status(), 204);
        assert_eq!(preflight.headers()[ACCESS_CONTROL_ALLOW_ORIGIN], "https://app.example.com");
        assert_eq!(preflight.headers()[ACCESS_CONTROL_ALLOW_HEADERS], "mcp-param-x, content-type");
        assert!(ask("https://app.example.com", Method::POST).1.is_none());

        let (own, preflight) = ask("http://localhost", Method::OPTIONS);
        assert!(preflight.is_none());
        let mut headers = HeaderMap::new();
        own.apply(&mut headers);
        assert!(headers.is_empty());
    }

    proptest! {
        #[test]
        fn no_header_makes_it_panic(host in proptest::collection::vec(any::<u8>(), 0..40), origin in "\\PC{0,40}") {
            let mut parts = parts(&[]);
            if let Ok(value) = HeaderValue::from_bytes(&host) { parts.headers.insert(HOST, value); }
            if let Ok(value) = HeaderValue::from_str(&origin) { parts.headers.insert(ORIGIN, value); }
            let _ = gate(&["localhost"], &["http://a:*"]).admit(&parts);
            let _ = Gate::new(std::slice::from_ref(&origin), std::slice::from_ref(&origin));
        }

        #[test]
        fn an_unlisted_origin_is_never_let_in(host in "[a-z.]{1,12}", port in 1u16.., scheme in "https?") {
            prop_assume!(host != "localhost");
            let origin = format!("{scheme}://{host}:{port}");
            prop_assert_eq!(status(&gate(&["localhost"], &[]), "localhost:1", Some(&origin)), 403);
        }
    }
}
