//! What is wrong, and the line that says so.

use super::*;

#[test]
fn what_is_wrong_in_a_file_is_one_line_that_says_where_and_what_would_be_right() {
    for (text, line) in [
        (
            "[tasks]\nttl_ms = '1h'",
            "t.toml:2: tasks.ttl_ms is \"1h\"; give a whole number of milliseconds from 1 to 315360000000",
        ),
        ("[tasks]\n\nttl_ms = -1", "t.toml:3: tasks.ttl_ms is -1; give a whole number"),
        ("[tasks]\nttl_ms = 1.5", "t.toml:2: tasks.ttl_ms is 1.5; give a whole number"),
        ("[tasks]\nttl_ms = [\n1]", "t.toml:2: tasks.ttl_ms is a list; give"),
        ("[tasks]\nlease_ms = 1", "t.toml:2: tasks.lease_ms is 1; give a whole number of milliseconds from 100 to"),
        (
            "[tasks]\nmax_per_principal = 'many'",
            "t.toml:2: tasks.max_per_principal is \"many\"; give a whole number of tasks from 1 to 1000000000, or \"unlimited\"",
        ),
        ("[tasks]\nmax_per_principal = 0", "t.toml:2: tasks.max_per_principal is 0; give"),
        ("[tasks]\nenabled = 'yes'", "t.toml:2: tasks.enabled is \"yes\"; give true or false"),
        (
            "[tasks]\nstore = 'tasks.db'",
            "t.toml:2: tasks.store is not a good value (not shown); give memory, sqlite:PATH or postgres://USER@HOST/DATABASE (did you mean sqlite:tasks.db?)",
        ),
        ("[tasks]\nstore = 5", "t.toml:2: tasks.store is not a good value (not shown); give memory, sqlite:PATH"),
        ("[server]\nhttp = '8080'", "t.toml:2: server.http is \"8080\"; give IP:PORT, such as \"127.0.0.1:8080\""),
        ("[server]\nhttp = 8080", "t.toml:2: server.http is 8080; give IP:PORT"),
        ("[server]\nhttp = 'example.com:80'", "t.toml:2: server.http is \"example.com:80\"; give IP:PORT"),
        ("[server]\nnode = 'a b'", "t.toml:2: server.node is \"a b\"; give 1 to 64 letters"),
        (
            "[server]\nstate_secret = 'hush'",
            "t.toml:2: server.state_secret is not a good value (not shown); give a text of at least 16 bytes",
        ),
        (
            "[server]\nallowed_origins = ['*']",
            "t.toml:2: server.allowed_origins is a list; give a list of origins, such as",
        ),
        (
            "[server]\nallowed_origins = ['https://a/b']",
            "t.toml:2: server.allowed_origins is a list; give a list of origins, such as",
        ),
        (
            "[server]\nallowed_hosts = ['http://a']",
            "t.toml:2: server.allowed_hosts is a list; give a list of host names",
        ),
        (
            "[grpc]\nlisten = 'on'",
            "t.toml:2: grpc.listen is \"on\"; give IP:PORT, such as \"127.0.0.1:8080\", or \"off\"",
        ),
        ("[grpc]\nadvertise = 'host'", "t.toml:2: grpc.advertise is \"host\"; give HOST:PORT"),
        ("[telemetry]\nformat = 'xml'", "t.toml:2: telemetry.format is \"xml\"; give \"pretty\" or \"json\""),
        ("[telemetry]\nlog = 'inof'", "t.toml:2: telemetry.log is \"inof\"; give a level"),
        ("[telemetry]\nlog = 'a=loud'", "t.toml:2: telemetry.log is \"a=loud\"; give a level"),
        (
            "[telemetry]\notlp_endpoint = 'localhost:4317'",
            "t.toml:2: telemetry.otlp_endpoint is \"localhost:4317\"; give an http:// or https:// URL",
        ),
        ("[task]\n", "t.toml:1: there is no section [task]; did you mean tasks?"),
        ("[storage]\n", "t.toml:1: there is no section [storage]; there are: server, tls,"),
        ("http = '127.0.0.1:1'", "t.toml:1: there is no setting http; it belongs into [server]"),
        ("color = 1", "t.toml:1: there is no setting color; every setting stands in a section"),
        ("[server]\nstore = 'memory'", "t.toml:2: there is no setting server.store; it belongs into [tasks]"),
        (
            "[server]\nallowed_host = []",
            "t.toml:2: there is no setting server.allowed_host; did you mean allowed_hosts?",
        ),
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
        (
            "[auth]\nhs256_secret = 'short'",
            "t.toml:2: auth.hs256_secret is not a good value (not shown); give a text of at least 32 bytes",
        ),
        (
            "[auth]\nissuer = 'i'\naudience = 'a'\njwks = 'file:k'\nhs256_secret = '0123456789abcdef0123456789abcdef'",
            "t.toml:5: auth.jwks and auth.hs256_secret exclude each other",
        ),
        ("[[tool]]\ncommand = ['x']", "t.toml:1: [[tool]] needs name"),
        ("[[tool]]\nname = 'x'", "t.toml:1: tool \"x\" needs command"),
        ("[[tool]]\nname = 'x'\ncommand = 'make'", "t.toml:3: tool.command is \"make\"; give a list of the program"),
        ("[[tool]]\nname = 'x'\ncommand = []", "t.toml:3: tool.command is a list; give a list of the program"),
        ("[[tool]]\nname = 'a b'", "t.toml:2: tool.name is \"a b\"; give 1 to 128 letters"),
        ("[[tool]]\ntask = 'maybe'", "t.toml:2: tool.task is \"maybe\"; give \"none\" or \"optional\" or \"required\""),
        (
            "[[tool]]\ninput_schema = { type = 'string' }",
            "t.toml:2: tool.input_schema is a table; give a table that is a JSON schema",
        ),
        ("[[tool]]\ntimeout = 5", "t.toml:2: there is no setting tool.timeout; did you mean timeout_ms?"),
        (
            "[[tool]]\nname='x'\ncommand=['x']\n[[tool]]\nname='x'\ncommand=['x']",
            "t.toml:4: there is a second tool named \"x\"",
        ),
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
        (vec![("TOKKURI_AUTH_ISSUER", "i")], "environment variable TOKKURI_AUTH_ISSUER: [auth] needs audience"),
        (vec![("TOKKURI_TLS_KEY", "k")], "environment variable TOKKURI_TLS_KEY: tls.key needs tls.cert beside it"),
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
