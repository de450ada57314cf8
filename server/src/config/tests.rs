//! Whole configurations in, values or lines out.

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
request_timeout_ms = 1000
shutdown_ms = 0
state_secret = "0123456789abcdef"
state_ttl_ms = 60000
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
    assert_eq!((server.max_body_bytes, server.request_timeout_ms), (1 << 20, 1000));
    assert_eq!((server.shutdown_ms, server.state_ttl_ms), (0, 60_000));
    assert_eq!(server.state_secret, Some(Secret::new("0123456789abcdef")));
    let pair = |cert: &str, key: &str| {
        Some(KeyPair {
            cert: cert.into(),
            key: key.into(),
        })
    };
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
            task: TaskUse::Required,
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
    assert_eq!(config.upstreams[0].task, TaskUse::None);
    assert_eq!(config.upstreams[0].token_env.as_deref(), Some("A_TOKEN"));
    assert_eq!(
        config.upstreams[1].reach,
        Reach::Command(vec!["b".into(), "--stdio".into()])
    );
    assert_eq!(config.upstreams[1].task, TaskUse::Optional);
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
fn what_is_wrong_in_a_file_is_one_line_that_says_where_and_what_would_be_right() {
    for (text, line) in [
        ("[tasks]\nttl_ms = '1h'", "t.toml:2: tasks.ttl_ms is \"1h\"; give a whole number of milliseconds from 1 to 315360000000"),
        ("[tasks]\n\nttl_ms = -1", "t.toml:3: tasks.ttl_ms is -1; give a whole number"),
        ("[tasks]\nttl_ms = 1.5", "t.toml:2: tasks.ttl_ms is 1.5; give a whole number"),
        ("[tasks]\nttl_ms = [\n1]", "t.toml:2: tasks.ttl_ms is a list; give"),
        ("[tasks]\nlease_ms = 1", "t.toml:2: tasks.lease_ms is 1; give a whole number of milliseconds from 100 to"),
        ("[tasks]\nmax_per_principal = 'many'", "t.toml:2: tasks.max_per_principal is \"many\"; give a whole number of tasks from 1 to 1000000000, or \"unlimited\""),
        ("[tasks]\nmax_per_principal = 0", "t.toml:2: tasks.max_per_principal is 0; give"),
        ("[tasks]\nenabled = 'yes'", "t.toml:2: tasks.enabled is \"yes\"; give true or false"),
        ("[tasks]\nstore = 'tasks.db'", "t.toml:2: tasks.store is not a good value (not shown); give memory, sqlite:PATH or postgres://USER@HOST/DATABASE (did you mean sqlite:tasks.db?)"),
        ("[tasks]\nstore = 5", "t.toml:2: tasks.store is not a good value (not shown); give memory, sqlite:PATH"),
        ("[server]\nhttp = '8080'", "t.toml:2: server.http is \"8080\"; give IP:PORT, such as \"127.0.0.1:8080\""),
        ("[server]\nhttp = 8080", "t.toml:2: server.http is 8080; give IP:PORT"),
        ("[server]\nhttp = 'example.com:80'", "t.toml:2: server.http is \"example.com:80\"; give IP:PORT"),
        ("[server]\nnode = 'a b'", "t.toml:2: server.node is \"a b\"; give 1 to 64 letters"),
        ("[server]\nstate_secret = 'hush'", "t.toml:2: server.state_secret is not a good value (not shown); give a text of at least 16 bytes"),
        ("[server]\nallowed_origins = ['*']", "t.toml:2: server.allowed_origins is a list; give a list of origins, such as"),
        ("[server]\nallowed_origins = ['https://a/b']", "t.toml:2: server.allowed_origins is a list; give a list of origins, such as"),
        ("[server]\nallowed_hosts = ['http://a']", "t.toml:2: server.allowed_hosts is a list; give a list of host names"),
        ("[grpc]\nlisten = 'on'", "t.toml:2: grpc.listen is \"on\"; give IP:PORT, such as \"127.0.0.1:8080\", or \"off\""),
        ("[grpc]\nadvertise = 'host'", "t.toml:2: grpc.advertise is \"host\"; give HOST:PORT"),
        ("[telemetry]\nformat = 'xml'", "t.toml:2: telemetry.format is \"xml\"; give \"pretty\" or \"json\""),
        ("[telemetry]\nlog = 'inof'", "t.toml:2: telemetry.log is \"inof\"; give a level"),
        ("[telemetry]\nlog = 'a=loud'", "t.toml:2: telemetry.log is \"a=loud\"; give a level"),
        ("[telemetry]\notlp_endpoint = 'localhost:4317'", "t.toml:2: telemetry.otlp_endpoint is \"localhost:4317\"; give an http:// or https:// URL"),
        ("[task]\n", "t.toml:1: there is no section [task]; did you mean tasks?"),
        ("[storage]\n", "t.toml:1: there is no section [storage]; there are: server, tls,"),
        ("http = '127.0.0.1:1'", "t.toml:1: there is no setting http; it belongs into [server]"),
        ("color = 1", "t.toml:1: there is no setting color; every setting stands in a section"),
        ("[server]\nstore = 'memory'", "t.toml:2: there is no setting server.store; it belongs into [tasks]"),
        ("[server]\nallowed_host = []", "t.toml:2: there is no setting server.allowed_host; did you mean allowed_hosts?"),
        ("[tls]\ncolor = 1", "t.toml:2: there is no setting tls.color; [tls] has: cert, key"),
        ("server = 1", "t.toml:1: server is 1; give a section: [server] once"),
        ("[[server]]\nhttp='127.0.0.1:1'", "server is a list; give a section: [server] once"),
        ("[tool]\nname = 'x'", "t.toml:1: tool is a table; give entries: [[tool]] with two brackets"),
        ("[tasks]\nttl_ms = 1\nttl_ms = 2", "t.toml:3: not valid TOML: duplicate key"),
        ("[tasks\n", "t.toml:1: not valid TOML: "),
        ("[tls]\n", "t.toml:1: [tls] needs cert and key"),
        ("[tls]\ncert = 'c'", "t.toml:2: tls.cert needs tls.key beside it"),
        ("[grpc]\nkey = 'k'", "t.toml:2: grpc.key needs grpc.cert beside it"),
        ("[grpc]\nclient_ca = 'k'", "t.toml:2: grpc.client_ca needs grpc.cert and grpc.key"),
        ("[auth]\n", "t.toml:1: [auth] needs issuer"),
        ("[auth]\nissuer = 'i'", "t.toml:1: [auth] needs audience"),
        ("[auth]\nissuer = 'i'\naudience = []", "t.toml:3: auth.audience is a list; give the aud"),
        ("[auth]\nissuer = 'i'\naudience = 'a'", "t.toml:1: [auth] needs jwks or hs256_secret"),
        ("[auth]\njwks = 'http://h/k'", "t.toml:2: auth.jwks is \"http://h/k\"; give \"file:PATH\" or \"https://…\""),
        ("[auth]\nhs256_secret = 'short'", "t.toml:2: auth.hs256_secret is not a good value (not shown); give a text of at least 32 bytes"),
        ("[auth]\nissuer = 'i'\naudience = 'a'\njwks = 'file:k'\nhs256_secret = '0123456789abcdef0123456789abcdef'", "t.toml:5: auth.jwks and auth.hs256_secret exclude each other"),
        ("[[tool]]\ncommand = ['x']", "t.toml:1: [[tool]] needs name"),
        ("[[tool]]\nname = 'x'", "t.toml:1: tool \"x\" needs command"),
        ("[[tool]]\nname = 'x'\ncommand = 'make'", "t.toml:3: tool.command is \"make\"; give a list of the program"),
        ("[[tool]]\nname = 'x'\ncommand = []", "t.toml:3: tool.command is a list; give a list of the program"),
        ("[[tool]]\nname = 'a b'", "t.toml:2: tool.name is \"a b\"; give 1 to 128 letters"),
        ("[[tool]]\ntask = 'maybe'", "t.toml:2: tool.task is \"maybe\"; give \"none\" or \"optional\" or \"required\""),
        ("[[tool]]\ninput_schema = { type = 'string' }", "t.toml:2: tool.input_schema is a table; give a table that is a JSON schema"),
        ("[[tool]]\ntimeout = 5", "t.toml:2: there is no setting tool.timeout; did you mean timeout_ms?"),
        ("[[tool]]\nname='x'\ncommand=['x']\n[[tool]]\nname='x'\ncommand=['x']", "t.toml:4: there is a second tool named \"x\""),
        ("[[upstream]]\nurl = 'http://h'", "t.toml:1: [[upstream]] needs name"),
        ("[[upstream]]\nname = 'u'", "t.toml:1: upstream \"u\" needs url or command"),
        ("[[upstream]]\nname = 'u'\nurl = 'http://h'\ncommand = ['c']", "t.toml:1: upstream \"u\" has url and command"),
    ] {
        let error = Config::from_toml(text, "t.toml").expect_err(text).to_string();
        assert!(error.contains(line), "{text}\n  said: {error}\n  want: {line}");
        assert!(!error.contains('\n'), "more than one line: {error}");
    }
}

#[test]
fn what_is_wrong_in_the_environment_names_the_variable() {
    for (variables, line) in [
        (
            vec![("TOKKURI_TASKS_TTL_MS", "soon")],
            "environment variable TOKKURI_TASKS_TTL_MS: tasks.ttl_ms is \"soon\"; give a whole number",
        ),
        (
            vec![("TOKKURI_TASKS_TTL", "5")],
            "environment variable TOKKURI_TASKS_TTL: there is no setting tasks.ttl; did you mean TOKKURI_TASKS_TTL_MS?",
        ),
        (
            vec![("TOKKURI_AUTH_ISSUER", "i")],
            "environment variable TOKKURI_AUTH_ISSUER: [auth] needs audience",
        ),
        (
            vec![("TOKKURI_TLS_KEY", "k")],
            "environment variable TOKKURI_TLS_KEY: tls.key needs tls.cert beside it",
        ),
    ] {
        let error = from_environment(&variables).unwrap_err().to_string();
        assert!(error.contains(line), "said: {error}\nwant: {line}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let error = Config::load(Some(Path::new("no/such/file.toml")), none()).unwrap_err();
    let line = error.to_string();
    assert!(line.starts_with("no/such/file.toml: cannot be read ("), "{line}");
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
