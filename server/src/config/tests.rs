//! Whole configurations in, values or lines out.

mod wrong;

use super::*;

fn none() -> Vec<(String, String)> {
    Vec::new()
}

fn from_environment(variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let owned = variables.iter().map(|(k, v)| ((*k).into(), (*v).into()));
    Config::load(None, owned)
}

/// Every key of the contract, each off its default.
const EVERYTHING: &str = r#"
[server]
http = "0.0.0.0:9000"
node = "n1"
name = "files"
instructions = "Ask for export_files."
allowed_hosts = ["mcp.example.com", "localhost:9000"]
allowed_origins = ["https://app.example.com"]
max_body_bytes = 1_048_576
max_buffered_bytes = 2_097_152
max_depth = 8
max_connections = 5
max_header_bytes = 8192
max_headers = 16
max_concurrent_requests = 6
header_timeout_ms = 7
idle_timeout_ms = 8
write_timeout_ms = 9
request_timeout_ms = 1000
shutdown_ms = 0
state_secret = "0123456789abcdef"
state_ttl_ms = 60000
max_streams_per_principal = 5
max_sessions_per_principal = 6
stream_keep_alive_ms = 100
[tls]
cert = "c.pem"
key = "k.pem"
[grpc]
listen = "127.0.0.1:9001"
advertise = "n1.example.com:9001"
token = "t"
cert = "gc.pem"
key = "gk.pem"
client_ca = "ca.pem"
[admin]
listen = "off"
token = "a"
[tasks]
enabled = false
store = "postgres://u@h/d"
ttl_ms = 0x1000
keep_ms = 0
poll_interval_ms = 50
max_per_principal = "unlimited"
max_runs = 2
max_blocking_threads = 3
max_argument_bytes = 9
max_result_bytes = 3
max_questions = 4
lease_ms = 1000
[auth]
issuer = "https://id.example.com"
audience = ["https://mcp.example.com/mcp", "other"]
jwks = "https://id.example.com/jwks"
required_scopes = ["mcp"]
[telemetry]
log = "warn,tokkuri_server=debug"
format = "json"
otlp_endpoint = "http://127.0.0.1:4317"
service_name = "files"
[[tool]]
name = "docs"
description = "Builds the documentation."
task = "required"
scopes = ["docs:write"]
command = ["make", "docs"]
input_schema = { type = "object", properties = { n = { type = "integer", minimum = 1 } } }
timeout_ms = 5000
on_cancel_ms = 100
ttl_ms = 6000
poll_interval_ms = 70
[[upstream]]
name = "a"
url = "http://127.0.0.1:1/mcp"
prefix = "a_"
task = "none"
scopes = ["a"]
token_env = "A_TOKEN"
[[upstream]]
name = "b"
command = ["b", "--stdio"]
"#;

#[test]
fn every_setting_of_the_contract_reaches_its_field() {
    let config = Config::from_toml(EVERYTHING, "all.toml").unwrap();
    let server = &config.server;
    assert_eq!(server.http, "0.0.0.0:9000".parse().unwrap());
    assert_eq!(server.node.as_deref(), Some("n1"));
    assert_eq!(server.name, "files");
    assert_eq!(server.instructions.as_deref(), Some("Ask for export_files."));
    assert_eq!(server.allowed_hosts, ["mcp.example.com", "localhost:9000"]);
    assert_eq!(server.allowed_origins, ["https://app.example.com"]);
    assert_eq!((server.max_body_bytes, server.max_depth, server.request_timeout_ms), (1 << 20, 8, 1000));
    assert_eq!((server.max_connections, server.max_header_bytes, server.max_headers), (5, 8192, 16));
    assert_eq!((server.max_concurrent_requests, server.header_timeout_ms, server.idle_timeout_ms), (6, 7, 8));
    assert_eq!((server.write_timeout_ms, server.max_buffered_bytes), (9, 2 << 20));
    assert_eq!((server.shutdown_ms, server.state_ttl_ms), (0, 60_000));
    assert_eq!((server.max_streams_per_principal, server.max_sessions_per_principal), (5, 6));
    assert_eq!(server.stream_keep_alive_ms, 100);
    assert_eq!(server.state_secret, Some(Secret::new("0123456789abcdef")));
    let pair = |cert: &str, key: &str| Some(KeyPair { cert: cert.into(), key: key.into() });
    assert_eq!(config.tls, pair("c.pem", "k.pem"));
    assert_eq!(
        config.grpc,
        GrpcConfig {
            listen: Listener::At("127.0.0.1:9001".parse().unwrap()),
            advertise: Some("n1.example.com:9001".into()),
            token: Some(Secret::new("t")),
            tls: pair("gc.pem", "gk.pem"),
            client_ca: Some("ca.pem".into()),
        }
    );
    assert_eq!(config.admin.listen, Listener::Off);
    assert_eq!(config.admin.token, Some(Secret::new("a")));
    assert_eq!(
        config.tasks,
        TasksConfig {
            enabled: false,
            store: StoreUrl::Postgres("postgres://u@h/d".into()),
            ttl_ms: 4096,
            keep_ms: 0,
            poll_interval_ms: 50,
            max_per_principal: Limit::Unlimited,
            max_runs: 2,
            max_blocking_threads: 3,
            max_argument_bytes: 9,
            max_result_bytes: 3,
            max_questions: 4,
            lease_ms: 1000,
        }
    );
    assert_eq!(
        config.auth,
        Some(AuthConfig {
            issuer: "https://id.example.com".into(),
            audience: vec!["https://mcp.example.com/mcp".into(), "other".into()],
            keys: TokenKeys::Jwks(Jwks::Https("https://id.example.com/jwks".into())),
            required_scopes: vec!["mcp".into()],
        })
    );
    assert_eq!(
        config.telemetry,
        TelemetryConfig {
            log: "warn,tokkuri_server=debug".into(),
            format: LogFormat::Json,
            otlp_endpoint: Some("http://127.0.0.1:4317".into()),
            service_name: "files".into(),
        }
    );
    let schema = serde_json::json!({
        "type": "object", "properties": { "n": { "type": "integer", "minimum": 1 } }
    });
    assert_eq!(
        config.tools,
        [ToolConfig {
            name: "docs".into(),
            description: Some("Builds the documentation.".into()),
            task: TaskMode::Required,
            scopes: vec!["docs:write".into()],
            command: vec!["make".into(), "docs".into()],
            input_schema: schema.as_object().unwrap().clone(),
            timeout_ms: Some(5000),
            on_cancel_ms: 100,
            ttl_ms: Some(6000),
            poll_interval_ms: Some(70),
        }]
    );
    assert_eq!(config.upstreams[0].reach, Reach::Url("http://127.0.0.1:1/mcp".into()));
    assert_eq!(config.upstreams[0].task, TaskMode::None);
    assert_eq!(config.upstreams[0].token_env.as_deref(), Some("A_TOKEN"));
    assert_eq!(config.upstreams[1].reach, Reach::Command(vec!["b".into(), "--stdio".into()]));
    assert_eq!(config.upstreams[1].task, TaskMode::Optional);
}

#[test]
fn an_empty_file_is_the_default_configuration() {
    assert_eq!(Config::from_toml("", "t").unwrap(), Config::default());
    assert_eq!(Config::load(None, none()).unwrap(), Config::default());
}

#[test]
fn the_environment_goes_before_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.toml");
    std::fs::write(&path, "[tasks]\nttl_ms = 1\nkeep_ms = 2\n").unwrap();
    let variables = [("TOKKURI_TASKS_TTL_MS".to_owned(), "3".to_owned())];
    let config = Config::load(Some(&path), variables).unwrap();
    assert_eq!((config.tasks.ttl_ms, config.tasks.keep_ms), (3, 2));
}

#[test]
fn every_kind_of_value_can_come_from_the_environment() {
    let config = from_environment(&[
        ("TOKKURI_SERVER_HTTP", "localhost:0"),
        ("TOKKURI_SERVER_ALLOWED_HOSTS", "a.example, b.example:80"),
        ("TOKKURI_TASKS_ENABLED", "false"),
        ("TOKKURI_TASKS_MAX_PER_PRINCIPAL", "7"),
        ("TOKKURI_TASKS_STORE", "memory"),
        ("TOKKURI_TELEMETRY_FORMAT", "json"),
        ("TOKKURI_AUTH_ISSUER", "i"),
        ("TOKKURI_AUTH_AUDIENCE", "one,two"),
        ("TOKKURI_AUTH_HS256_SECRET", "0123456789abcdef0123456789abcdef"),
        ("TOKKURI_SERVER_INSTRUCTIONS", ""),
        ("TOKKURI_TEST_CLOCK_OFFSET_MS", "1"),
        ("TOKKURI_GRPC_SERVICE_HOST", "10.0.0.1"),
        ("TOKKURI_GRPC_PORT", "tcp://10.0.0.1:8090"),
        ("TOKKURI_PORT", "tcp://10.0.0.1:80"),
    ])
    .unwrap();
    assert_eq!(config.server.http, "127.0.0.1:0".parse().unwrap());
    assert_eq!(config.server.allowed_hosts, ["a.example", "b.example:80"]);
    assert!(!config.tasks.enabled);
    assert_eq!(config.tasks.max_per_principal, Limit::AtMost(7));
    assert_eq!(config.tasks.store, StoreUrl::Memory);
    assert_eq!(config.telemetry.format, LogFormat::Json);
    assert_eq!(config.auth.unwrap().audience, ["one", "two"]);
    assert_eq!(config.server.instructions, None);
}

#[test]
fn no_secret_is_printed() {
    let text = EVERYTHING
        .replace("jwks = \"https://id.example.com/jwks\"", "hs256_secret = \"VERY-SECRET-VERY-SECRET-VERY-SECRET\"")
        .replace("token = \"t\"", "token = \"VERY-SECRET\"")
        .replace("postgres://u@h", "postgres://u:VERY-SECRET@h");
    let config = Config::from_toml(&text, "t").unwrap();
    assert!(!format!("{config:?}").contains("VERY-SECRET"));
}
