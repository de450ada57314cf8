//! The table of settings: every section, every key, how its value is read and where it goes.
//!
//! File and environment read through this one table, so a setting that is added here can be set in both.

use super::{
    Jwks, Limit, LogFormat, StoreUrl, TaskMode,
    file::{Draft, ToolDraft, UpstreamDraft},
    raw::{Expected, Raw, is_url, node_name},
};

/// One key of a section (or of an entry of `[[tool]]`, `[[upstream]]`), filled into a `T`.
#[derive(Debug)]
pub(super) struct Setting<T> {
    /// The key, without its section.
    pub(super) key: &'static str,
    /// Whether the value must never be shown.
    pub(super) secret: bool,
    /// Reads the value into its place, or says what would be right.
    pub(super) read: fn(&mut T, &Raw<'_>) -> Result<(), Expected>,
}

/// A section and its keys.
#[derive(Debug)]
pub(super) struct Section {
    /// The section's name, without brackets.
    pub(super) name: &'static str,
    /// Its keys, in the order of the documentation.
    pub(super) settings: &'static [Setting<Draft>],
}

const fn open<T>(key: &'static str, read: fn(&mut T, &Raw<'_>) -> Result<(), Expected>) -> Setting<T> {
    Setting { key, secret: false, read }
}

const fn secret<T>(key: &'static str, read: fn(&mut T, &Raw<'_>) -> Result<(), Expected>) -> Setting<T> {
    Setting { key, secret: true, read }
}

const MS: &str = "milliseconds";
const BYTES: &str = "bytes";
/// An hour, in ms: the longest wait that a setting may ask for.
const HOUR_MS: u64 = 3_600_000;
/// Ten years, in ms: the longest life of a task.
const TEN_YEARS_MS: u64 = 315_360_000_000;
/// Bodies and results are held in memory, so their limit has a limit: 1 GiB.
const GIB: u64 = 1 << 30;

/// Every section that stands once.
pub(super) const SECTIONS: &[Section] = &[
    Section {
        name: "server",
        settings: &[
            open("http", |d, v| v.address().map(|x| d.config.server.http = x)),
            open("node", |d, v| node_name(&v.any_text("a name")?).map(|x| d.config.server.node = Some(x))),
            open("name", |d, v| v.text("a name").map(|x| d.config.server.name = x)),
            open("instructions", |d, v| v.any_text("a text").map(|x| d.config.server.instructions = Some(x))),
            open("allowed_hosts", |d, v| {
                let hosts = "a list of host names with or without port, such as [\"mcp.example.com\"]";
                v.list(hosts, is_host).map(|x| d.config.server.allowed_hosts = x)
            }),
            open("allowed_origins", |d, v| {
                let origins = "a list of origins, such as [\"https://app.example.com\"]";
                v.list(origins, is_origin).map(|x| d.config.server.allowed_origins = x)
            }),
            open("max_body_bytes", |d, v| v.size(1024..=GIB, BYTES).map(|x| d.config.server.max_body_bytes = x)),
            open("max_buffered_bytes", |d, v| {
                v.size(1024..=1024 * GIB, BYTES).map(|x| d.config.server.max_buffered_bytes = x)
            }),
            // Whoever reads a body after us gives up at 127.
            open("max_depth", |d, v| v.size(8..=120, "levels").map(|x| d.config.server.max_depth = x)),
            open("max_connections", |d, v| {
                v.size(1..=1_000_000, "connections").map(|x| d.config.server.max_connections = x)
            }),
            open("max_header_bytes", |d, v| {
                v.size(8192..=1 << 20, BYTES).map(|x| d.config.server.max_header_bytes = x)
            }),
            open("max_headers", |d, v| v.size(16..=10_000, "headers").map(|x| d.config.server.max_headers = x)),
            open("max_concurrent_requests", |d, v| {
                v.size(1..=10_000, "requests").map(|x| d.config.server.max_concurrent_requests = x)
            }),
            open("header_timeout_ms", |d, v| v.integer(1..=HOUR_MS, MS).map(|x| d.config.server.header_timeout_ms = x)),
            open("idle_timeout_ms", |d, v| v.integer(1..=HOUR_MS, MS).map(|x| d.config.server.idle_timeout_ms = x)),
            open("write_timeout_ms", |d, v| v.integer(1..=HOUR_MS, MS).map(|x| d.config.server.write_timeout_ms = x)),
            open("request_timeout_ms", |d, v| {
                v.integer(1..=HOUR_MS, MS).map(|x| d.config.server.request_timeout_ms = x)
            }),
            open("shutdown_ms", |d, v| v.integer(0..=HOUR_MS, MS).map(|x| d.config.server.shutdown_ms = x)),
            secret("state_secret", |d, v| v.secret(16).map(|x| d.config.server.state_secret = Some(x))),
            open("state_ttl_ms", |d, v| v.integer(1..=24 * HOUR_MS, MS).map(|x| d.config.server.state_ttl_ms = x)),
            open("max_streams_per_principal", |d, v| {
                v.size(0..=1_000_000, "streams").map(|x| d.config.server.max_streams_per_principal = x)
            }),
            open("max_sessions_per_principal", |d, v| {
                v.size(0..=1_000_000, "sessions").map(|x| d.config.server.max_sessions_per_principal = x)
            }),
            open("stream_keep_alive_ms", |d, v| {
                v.integer(10..=HOUR_MS, MS).map(|x| d.config.server.stream_keep_alive_ms = x)
            }),
        ],
    },
    Section {
        name: "tls",
        settings: &[
            open("cert", |d, v| v.path("a PEM file").map(|x| d.tls.cert = Some(x))),
            open("key", |d, v| v.path("a PEM file").map(|x| d.tls.key = Some(x))),
        ],
    },
    Section {
        name: "grpc",
        settings: &[
            open("listen", |d, v| v.listener().map(|x| d.config.grpc.listen = x)),
            open("advertise", |d, v| {
                let expected = "HOST:PORT at which other nodes reach this one";
                let text = v.text(expected)?;
                match is_host(&text) && text.rsplit_once(':').is_some_and(|(_, p)| port(p)) {
                    true => d.config.grpc.advertise = Some(text),
                    false => return Err(expected.to_owned()),
                }
                Ok(())
            }),
            secret("token", |d, v| v.secret(1).map(|x| d.config.grpc.token = Some(x))),
            open("cert", |d, v| v.path("a PEM file").map(|x| d.grpc_tls.cert = Some(x))),
            open("key", |d, v| v.path("a PEM file").map(|x| d.grpc_tls.key = Some(x))),
            open("client_ca", |d, v| v.path("a PEM file").map(|x| d.config.grpc.client_ca = Some(x))),
        ],
    },
    Section {
        name: "admin",
        settings: &[
            open("listen", |d, v| v.listener().map(|x| d.config.admin.listen = x)),
            secret("token", |d, v| v.secret(1).map(|x| d.config.admin.token = Some(x))),
        ],
    },
    Section {
        name: "tasks",
        settings: &[
            open("enabled", |d, v| v.boolean().map(|x| d.config.tasks.enabled = x)),
            // The URL may hold a password, so a wrong one is not shown either.
            secret("store", |d, v| {
                let text = v.any_text("memory, sqlite:PATH or postgres://USER@HOST/DATABASE")?;
                let store = text.parse::<StoreUrl>().map_err(|error| {
                    let message = error.to_string();
                    message.strip_prefix("give ").unwrap_or(&message).to_owned()
                })?;
                d.config.tasks.store = store;
                Ok(())
            }),
            open("ttl_ms", |d, v| v.integer(1..=TEN_YEARS_MS, MS).map(|x| d.config.tasks.ttl_ms = x)),
            open("keep_ms", |d, v| v.integer(0..=TEN_YEARS_MS, MS).map(|x| d.config.tasks.keep_ms = x)),
            open("poll_interval_ms", |d, v| v.integer(10..=HOUR_MS, MS).map(|x| d.config.tasks.poll_interval_ms = x)),
            open("max_per_principal", |d, v| {
                d.config.tasks.max_per_principal = match v.as_str() {
                    Some("unlimited") => Limit::Unlimited,
                    _ => Limit::AtMost(
                        v.integer(1..=1_000_000_000, "tasks")
                            .map_err(|expected| format!("{expected}, or \"unlimited\""))?,
                    ),
                };
                Ok(())
            }),
            open("max_runs", |d, v| v.size(1..=1_000_000, "runs").map(|x| d.config.tasks.max_runs = x)),
            open("max_blocking_threads", |d, v| {
                v.size(1..=400, "threads").map(|x| d.config.tasks.max_blocking_threads = x)
            }),
            open("max_argument_bytes", |d, v| v.size(1..=GIB, BYTES).map(|x| d.config.tasks.max_argument_bytes = x)),
            open("max_result_bytes", |d, v| v.size(1..=GIB, BYTES).map(|x| d.config.tasks.max_result_bytes = x)),
            open("max_questions", |d, v| v.size(1..=100_000, "questions").map(|x| d.config.tasks.max_questions = x)),
            open("lease_ms", |d, v| v.integer(100..=HOUR_MS, MS).map(|x| d.config.tasks.lease_ms = x)),
        ],
    },
    Section {
        name: "auth",
        settings: &[
            open("issuer", |d, v| v.text("the iss of accepted tokens").map(|x| d.auth.issuer = Some(x))),
            open("audience", |d, v| {
                let expected = "the aud of accepted tokens, one or a list of them";
                v.one_or_list(expected, filled).map(|x| d.auth.audience = x)
            }),
            open("jwks", |d, v| {
                let expected = "\"file:PATH\" or \"https://…\"";
                let text = v.text(expected)?;
                d.auth.jwks = Some(match text.strip_prefix("file:") {
                    Some(path) if filled(path) => Jwks::File(path.strip_prefix("//").unwrap_or(path).into()),
                    None if text.starts_with("https://") && is_url(&text) => Jwks::Https(text),
                    _ => return Err(expected.to_owned()),
                });
                Ok(())
            }),
            secret("hs256_secret", |d, v| v.secret(32).map(|x| d.auth.hs256_secret = Some(x))),
            open("required_scopes", |d, v| scopes(v).map(|x| d.auth.required_scopes = x)),
        ],
    },
    Section {
        name: "telemetry",
        settings: &[
            open("log", |d, v| {
                let expected = "a level (\"error\", \"warn\", \"info\", \"debug\", \"trace\", \"off\") or directives such as \"info,tokkuri_server=debug\"";
                let text = v.text(expected)?;
                match text.parse::<tracing_subscriber::filter::Targets>().is_ok() && !loose_word(&text) {
                    true => d.config.telemetry.log = text,
                    false => return Err(expected.to_owned()),
                }
                Ok(())
            }),
            open("format", |d, v| {
                let words = [("pretty", LogFormat::Pretty), ("json", LogFormat::Json)];
                v.word(&words).map(|x| d.config.telemetry.format = x)
            }),
            open("otlp_endpoint", |d, v| v.url().map(|x| d.config.telemetry.otlp_endpoint = Some(x))),
            open("service_name", |d, v| v.text("a name").map(|x| d.config.telemetry.service_name = x)),
        ],
    },
];

/// The keys of `[[tool]]`.
pub(super) const TOOL: &[Setting<ToolDraft>] = &[
    open("name", |t, v| tool_name(v).map(|x| t.name = Some(x))),
    open("description", |t, v| v.any_text("a text").map(|x| t.tool.description = Some(x))),
    open("task", |t, v| v.word(TASK_MODES).map(|x| t.tool.task = x)),
    open("scopes", |t, v| scopes(v).map(|x| t.tool.scopes = x)),
    open("command", |t, v| command(v).map(|x| t.tool.command = x)),
    open("input_schema", |t, v| {
        let expected = "a table that is a JSON schema with type = \"object\"";
        let schema = v.object(expected)?;
        match schema.get("type").and_then(|kind| kind.as_str()) {
            Some("object") => t.tool.input_schema = schema,
            _ => return Err(expected.to_owned()),
        }
        Ok(())
    }),
    open("timeout_ms", |t, v| v.integer(1..=TEN_YEARS_MS, MS).map(|x| t.tool.timeout_ms = Some(x))),
    open("on_cancel_ms", |t, v| v.integer(0..=HOUR_MS, MS).map(|x| t.tool.on_cancel_ms = x)),
    open("ttl_ms", |t, v| v.integer(1..=TEN_YEARS_MS, MS).map(|x| t.tool.ttl_ms = Some(x))),
    open("poll_interval_ms", |t, v| v.integer(10..=HOUR_MS, MS).map(|x| t.tool.poll_interval_ms = Some(x))),
];

/// The keys of `[[upstream]]`.
pub(super) const UPSTREAM: &[Setting<UpstreamDraft>] = &[
    open("name", |u, v| v.text("a name").map(|x| u.name = Some(x))),
    open("url", |u, v| v.url().map(|x| u.url = Some(x))),
    open("command", |u, v| command(v).map(|x| u.command = Some(x))),
    open("prefix", |u, v| v.any_text("a text").map(|x| u.prefix = x)),
    open("task", |u, v| v.word(TASK_MODES).map(|x| u.task = Some(x))),
    open("scopes", |u, v| scopes(v).map(|x| u.scopes = x)),
    open("token_env", |u, v| v.text("the name of an environment variable").map(|x| u.token_env = Some(x))),
];

const TASK_MODES: &[(&str, TaskMode)] =
    &[("none", TaskMode::None), ("optional", TaskMode::Optional), ("required", TaskMode::Required)];

/// MCP 2026-07-28, tools: names are 1 to 128 of these characters.
fn tool_name(value: &Raw<'_>) -> Result<String, Expected> {
    let expected = "1 to 128 letters, digits, dots, hyphens or underscores";
    let text = value.text(expected)?;
    let good = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    match text.len() <= 128 && text.chars().all(good) {
        true => Ok(text),
        false => Err(expected.to_owned()),
    }
}

fn command(value: &Raw<'_>) -> Result<Vec<String>, Expected> {
    let expected = "a list of the program and its arguments, such as [\"make\", \"docs\"]";
    let words = value.list(expected, |_| true)?;
    match words.first().is_some_and(|program| filled(program)) {
        true => Ok(words),
        false => Err(expected.to_owned()),
    }
}

/// RFC 6749 §3.3: printable ASCII without blank, quote and backslash.
fn scopes(value: &Raw<'_>) -> Result<Vec<String>, Expected> {
    let good = |scope: &str| filled(scope) && scope.chars().all(|c| c.is_ascii_graphic() && c != '"' && c != '\\');
    value.list("a list of scopes, such as [\"files:read\"]", good)
}

fn filled(text: &str) -> bool {
    !text.trim().is_empty()
}

fn is_host(text: &str) -> bool {
    text.parse::<http::uri::Authority>()
        .is_ok_and(|authority| !authority.as_str().contains('@') && !authority.host().is_empty())
}

fn is_origin(text: &str) -> bool {
    is_url(text) && text.split_once("://").is_some_and(|(_, host)| is_host(host))
}

fn port(text: &str) -> bool {
    text.parse::<u16>().is_ok()
}

/// A directive without level that looks like a mistyped level: `tracing` would take `inof` for the name of a crate
/// and be silent about everything else.
fn loose_word(directives: &str) -> bool {
    const LEVELS: [&str; 6] = ["error", "warn", "info", "debug", "trace", "off"];
    directives.split(',').any(|directive| {
        let directive = directive.trim();
        !directive.contains(['=', ':', '_']) && !LEVELS.contains(&directive.to_ascii_lowercase().as_str())
    })
}
