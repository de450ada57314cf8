//! What a URL says: where the database is, how it is reached, and what the store itself is told.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

use super::OpenError;
use super::tls::{Roots, Verify};

/// How many connections a store opens at most, if nothing else is said; one more listens.
const CONNECTIONS: usize = 16;

/// How a Postgres database becomes a store.
///
/// Made from a URL, `postgres://USER:PASSWORD@HOST:PORT/DATABASE?…`, with the parameters that libpq knows and these:
///
/// | parameter | meaning |
/// |---|---|
/// | `sslmode` | `disable`; `prefer` (the default) and `require`: encrypted (if it can be, always), the certificate is not looked at; `verify-ca`: the certificate is; `verify-full`: the host's name in it, too |
/// | `sslrootcert` | a PEM file with the authorities to trust; `system`, and without it: those of the machine |
/// | `options` | settings for each connection: `-c search_path=tenant` gives the store a schema of its own |
/// | `connections` | how many connections are opened at most (16; one more listens) |
/// | `notify` | `off`: neither sends nor hears notifications |
#[derive(Clone)]
pub struct PostgresOptions {
    pub(super) config: Config,
    pub(super) verify: Verify,
    pub(super) connections: usize,
    pub(super) notify: bool,
}

impl PostgresOptions {
    /// Reads a URL. Nothing is connected yet.
    ///
    /// # Errors
    /// [`OpenError::Url`] says what is wrong with it, without its password.
    pub fn from_url(url: &str) -> Result<Self, OpenError> {
        let wrong = |why: String| OpenError::Url { why };
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let (mut mode, mut roots, mut connections, mut notify) = (None, None, CONNECTIONS, true);
        let mut rest = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            match name {
                "sslmode" => mode = Some(value),
                "sslrootcert" if value == "system" => roots = Some(Roots::Machine),
                "sslrootcert" => {
                    let path = decoded(value).ok_or_else(|| wrong("sslrootcert is not percent-encoded".into()))?;
                    roots = Some(Roots::File(PathBuf::from(path)));
                }
                "connections" => {
                    connections = value
                        .parse()
                        .ok()
                        .filter(|n| (1..=1_000).contains(n))
                        .ok_or_else(|| wrong(format!("connections={value}: a number from 1 to 1000")))?;
                }
                "notify" => {
                    notify = match value {
                        "on" => true,
                        "off" => false,
                        _ => return Err(wrong(format!("notify={value}: on or off"))),
                    }
                }
                _ => rest.push(pair),
            }
        }
        let (ssl_mode, verify) = match (mode.unwrap_or("prefer"), roots) {
            ("disable", _) => (SslMode::Disable, Verify::Nothing),
            ("allow" | "prefer", _) => (SslMode::Prefer, Verify::Nothing),
            // As libpq has it: whoever names an authority wants it asked.
            ("require", None) => (SslMode::Require, Verify::Nothing),
            ("require", Some(roots)) => (SslMode::Require, Verify::Authority(roots)),
            ("verify-ca", roots) => (SslMode::Require, Verify::Authority(roots.unwrap_or(Roots::Machine))),
            ("verify-full", roots) => (SslMode::Require, Verify::Name(roots.unwrap_or(Roots::Machine))),
            (mode, _) => {
                return Err(wrong(format!(
                    "sslmode={mode}: one of disable, prefer, require, verify-ca and verify-full"
                )));
            }
        };
        let url = if rest.is_empty() { base.to_owned() } else { format!("{base}?{}", rest.join("&")) };
        let mut config: Config = url.parse().map_err(|error| wrong(super::error::words(&error)))?;
        if config.get_hosts().is_empty() {
            return Err(wrong("the host is missing".into()));
        }
        config.ssl_mode(ssl_mode);
        if config.get_application_name().is_none() {
            config.application_name("tokkuri");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(super::pool::CONNECT_WITHIN);
        }
        // Of several hosts the one that can be written is meant.
        if config.get_hosts().len() > 1 {
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        // A machine that vanished is noticed while nothing is asked of it, too.
        config
            .keepalives_idle(Duration::from_secs(10))
            .keepalives_interval(Duration::from_secs(5))
            .keepalives_retries(3);
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(Duration::from_secs(20));
        }
        Ok(Self { config, verify, connections, notify })
    }

    /// Whether changes are told to the other nodes by `NOTIFY`, and theirs are heard. They are hints: without them everything
    /// is as it was, only later.
    #[must_use]
    pub const fn notify(mut self, notify: bool) -> Self {
        self.notify = notify;
        self
    }

    /// How many connections are opened at most; one more listens.
    #[must_use]
    pub const fn connections(mut self, connections: usize) -> Self {
        self.connections = if connections == 0 { 1 } else { connections };
        self
    }

    /// The database, in words for a log: never with its password.
    pub(super) fn place(&self) -> String {
        let (hosts, ports) = (self.config.get_hosts(), self.config.get_ports());
        let hosts = hosts.iter().enumerate().map(|(n, host)| {
            let port = ports.get(n).or(ports.first()).unwrap_or(&5432);
            match host {
                Host::Tcp(name) => format!("{name}:{port}"),
                #[cfg(unix)]
                Host::Unix(path) => format!("{}:{port}", path.display()),
            }
        });
        format!("the Postgres server at {}", hosts.collect::<Vec<_>>().join(", "))
    }

    pub(super) fn user(&self) -> String {
        self.config.get_user().unwrap_or("of this process").to_owned()
    }

    pub(super) fn database(&self) -> String {
        self.config.get_dbname().or(self.config.get_user()).unwrap_or_default().to_owned()
    }
}

impl fmt::Debug for PostgresOptions {
    /// Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresOptions")
            .field("place", &self.place())
            .field("verify", &self.verify)
            .field("connections", &self.connections)
            .field("notify", &self.notify)
            .finish_non_exhaustive()
    }
}

/// The text that was percent-encoded.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        bytes.push(match (first, after) {
            (b'%', [high, low, after @ ..]) => {
                rest = after;
                let digit = |byte: u8| char::from(byte).to_digit(16);
                u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()?
            }
            (b'%', _) => return None,
            (byte, _) => *byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(url: &str) -> PostgresOptions {
        PostgresOptions::from_url(url).unwrap()
    }

    #[test]
    fn a_password_is_never_shown() {
        let options = options("postgres://me:s3cret@db:6432/tokkuri?sslmode=require&options=-csearch_path%3Da");
        assert!(!format!("{options:?}{}", options.place()).contains("s3cret"));
        assert_eq!(options.place(), "the Postgres server at db:6432");
        assert_eq!((options.user().as_str(), options.database().as_str()), ("me", "tokkuri"));
        for url in
            ["postgres://me:s3cret@db:x/d", "postgres://me:s3cret@db/d?port=s", "postgres://me:s3cret@db/d?sslmode=on"]
        {
            let why = PostgresOptions::from_url(url).unwrap_err().to_string();
            assert!(!why.contains("s3cret"), "{why}");
        }
    }

    #[test]
    fn each_sslmode_is_what_libpq_means_by_it() {
        let file = || Roots::File("/etc/ca file.pem".into());
        for (query, mode, verify) in [
            ("", SslMode::Prefer, Verify::Nothing),
            ("sslmode=disable", SslMode::Disable, Verify::Nothing),
            ("sslmode=prefer", SslMode::Prefer, Verify::Nothing),
            ("sslmode=require", SslMode::Require, Verify::Nothing),
            ("sslmode=require&sslrootcert=%2Fetc/ca%20file.pem", SslMode::Require, Verify::Authority(file())),
            ("sslmode=verify-ca", SslMode::Require, Verify::Authority(Roots::Machine)),
            ("sslrootcert=system&sslmode=verify-full", SslMode::Require, Verify::Name(Roots::Machine)),
            ("sslmode=verify-full&sslrootcert=/etc/ca%20file.pem", SslMode::Require, Verify::Name(file())),
        ] {
            let options = options(&format!("postgresql://u@h/d?{query}"));
            assert_eq!((options.config.get_ssl_mode(), &options.verify), (mode, &verify), "{query}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (url, needle) in [
            ("postgres://u@h/d?sslmode=maybe", "one of disable, prefer"),
            ("postgres://u@h/d?connections=none", "a number from 1"),
            ("postgres://u@h/d?connections=0", "a number from 1"),
            ("postgres://u@h/d?notify=no", "on or off"),
            ("postgres://u@h/d?wrong=1", "wrong"),
            ("postgres:///d", "host is missing"),
        ] {
            let why = PostgresOptions::from_url(url).unwrap_err().to_string();
            assert!(why.contains(needle), "{url}: {why}");
        }
    }

    #[test]
    fn the_stores_own_parameters_are_read() {
        let options = options("postgres://u@h/d?notify=off&connections=3&application_name=me");
        assert_eq!((options.notify, options.connections), (false, 3));
        assert_eq!(options.config.get_application_name(), Some("me"));
        assert!(options.notify(true).notify);
    }
}
