//! `tokkuri serve`: from a configuration to a server that listens, and back down again.

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rmcp::ServerHandler;
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::admin;
use crate::app::{BuildError, Settings, Tokkuri};
use crate::cli::{Exit, ServeArgs, Stop, ToolSet};
use crate::cluster;
use crate::config::{self, AdminConfig, Config, GrpcConfig, KeyPair, Limit, Listener, LogFormat, StoreUrl};
use crate::engine::TaskSettings;
use crate::listener::{ConnectionLimits, Tls};
use crate::store::postgres::PostgresOptions;
use crate::store::{MemoryStore, PostgresStore, SqliteStore, Store};

pub(crate) async fn run(config: Config, args: &ServeArgs) -> anyhow::Result<Exit> {
    let tools = match args.tool_set(&config) {
        ToolSet::Demo => crate::demo::tools(&args.root).map_err(|error| Stop::new(Exit::Usage, error.to_string()))?,
        ToolSet::None => Vec::new(),
    };
    serve(Tokkuri::new().tools(tools), &config, args).await
}

/// Serves `app` as a configuration says, until SIGTERM or SIGINT; prints the line `listening http=…` on standard output once
/// it does. What `tokkuri serve` does with its own tools, a binary with tools of its own does with this.
///
/// With `--stdio`, standard output is the client's: the line goes to standard error, and HTTP is served only if `--http` says so.
///
/// # Errors
/// One line that says what is wrong with the configuration or why it cannot be served.
pub async fn serve<H: ServerHandler>(app: Tokkuri<H>, config: &Config, args: &ServeArgs) -> anyhow::Result<Exit> {
    start_log(config)?;
    let missing = config::unavailable(config);
    if let Some(first) = missing.first() {
        return Err(Stop::new(Exit::Usage, first).into());
    }
    let app = match &config.tls {
        Some(files) => app.tls(tls(files)?),
        None => app,
    };
    let store = open_store(&config.tasks.store).await?;
    let secret = store.state_secret().map(Vec::from);
    let mut server = configured(app, config, secret).store(store).build().map_err(|error| match error {
        BuildError::Random(_) => Stop::new(Exit::Failed, error.to_string()),
        BuildError::Tool(_)
        | BuildError::NoSchema(_)
        | BuildError::Headers { .. }
        | BuildError::Secret(_)
        | BuildError::Allowed(_)
        | BuildError::Auth(_) => Stop::new(Exit::Usage, error.to_string()),
    })?;
    let listener = match !args.stdio || args.http.is_some() {
        true => Some(bind("server.http", config.server.http).await?),
        false => None,
    };
    let mut grpc = "off".to_owned();
    let mut advertised = None;
    if let Some(listener) = bind_grpc(config, args.stdio).await? {
        grpc = listener.local_addr()?.to_string();
        advertised = cluster::advertised(listener.local_addr()?, &config.grpc);
        server = server.grpc(listener, &config.grpc).map_err(|error| Stop::new(Exit::Usage, error.to_string()))?;
    }
    let mut admin_at = "off".to_owned();
    // With --stdio as with HTTP: a client that starts servers of its own wants no port taken that it did not ask for.
    if (!args.stdio || args.admin.is_some())
        && let Some(listener) = bind_admin(config).await?
    {
        admin_at = listener.local_addr()?.to_string();
        server = server.admin(listener, config.admin.token.as_ref())?;
    }
    let stop = stop_signal()?;
    let node = config.server.node.clone().unwrap_or_else(node_name);
    server.engine().identify(&node, advertised.map(Into::into));
    let http = match &listener {
        Some(listener) => listener.local_addr()?.to_string(),
        None => "off".to_owned(),
    };
    let ready = format!("listening http={http} grpc={grpc} admin={admin_at} node={node}");
    match listener {
        listener if args.stdio => {
            eprintln!("{ready}");
            server.serve_stdio(listener, stop).await?;
        }
        Some(listener) => {
            announce(&ready)?;
            server.serve(listener, stop).await?;
        }
        None => unreachable!("without stdio there is a listener"),
    }
    Ok(Exit::Ok)
}

/// Lays a configuration over an app. `kept` is the secret that the store keeps, for when the configuration has none.
fn configured<H: ServerHandler>(app: Tokkuri<H>, config: &Config, kept: Option<Vec<u8>>) -> Tokkuri<H> {
    let (server, tasks) = (&config.server, &config.tasks);
    let app = app.name(&server.name).settings(Settings {
        tasks: TaskSettings {
            enabled: tasks.enabled,
            ttl_ms: tasks.ttl_ms,
            keep_ms: tasks.keep_ms,
            poll_interval_ms: tasks.poll_interval_ms,
            max_per_principal: match tasks.max_per_principal {
                Limit::AtMost(limit) => Some(u32::try_from(limit).unwrap_or(u32::MAX)),
                Limit::Unlimited => None,
            },
            max_runs: tasks.max_runs,
            max_blocking_threads: tasks.max_blocking_threads,
            max_argument_bytes: tasks.max_argument_bytes,
            max_result_bytes: tasks.max_result_bytes,
            max_questions: u32::try_from(tasks.max_questions).unwrap_or(u32::MAX),
            lease_ms: tasks.lease_ms,
        },
        allowed_hosts: server.allowed_hosts.clone(),
        allowed_origins: server.allowed_origins.clone(),
        max_body_bytes: server.max_body_bytes,
        max_buffered_bytes: server.max_buffered_bytes,
        max_depth: server.max_depth,
        request_timeout: Duration::from_millis(server.request_timeout_ms),
        connections: ConnectionLimits {
            max_connections: server.max_connections,
            max_header_bytes: server.max_header_bytes,
            max_headers: server.max_headers,
            max_concurrent_requests: u32::try_from(server.max_concurrent_requests).unwrap_or(u32::MAX),
            header_timeout: Duration::from_millis(server.header_timeout_ms),
            idle_timeout: Duration::from_millis(server.idle_timeout_ms),
            write_timeout: Duration::from_millis(server.write_timeout_ms),
        },
        shutdown: Duration::from_millis(server.shutdown_ms),
        // A secret of any length becomes a key of the length that the signature wants.
        state_secret: match &server.state_secret {
            Some(secret) => Some(Sha256::digest(secret.expose()).to_vec()),
            None => kept,
        },
        state_ttl_ms: server.state_ttl_ms,
        max_streams_per_principal: server.max_streams_per_principal,
        max_sessions_per_principal: server.max_sessions_per_principal,
        stream_keep_alive: Duration::from_millis(server.stream_keep_alive_ms),
    });
    let app = match &config.auth {
        Some(auth) => app.auth(auth.clone()),
        None => app,
    };
    match &server.instructions {
        Some(instructions) => app.instructions(instructions),
        None => app,
    }
}

/// Opens the store, or says what is wrong with it.
async fn open_store(url: &StoreUrl) -> Result<Arc<dyn Store>, Stop> {
    let wrong = |error: &dyn std::fmt::Display| Stop::new(Exit::Usage, format!("tasks.store: {error}"));
    Ok(match url {
        StoreUrl::Memory => Arc::new(MemoryStore::new()),
        StoreUrl::Sqlite(path) => Arc::new(SqliteStore::open(path).map_err(|error| wrong(&error))?),
        StoreUrl::Postgres(url) => {
            let options = PostgresOptions::from_url(url).map_err(|error| wrong(&error))?;
            Arc::new(PostgresStore::open(options).await.map_err(|error| wrong(&error))?)
        }
    })
}

/// Reads certificate and key, or says which file is wrong.
fn tls(files: &KeyPair) -> Result<Tls, Stop> {
    Tls::from_pem_files(&files.cert, &files.key).map_err(|error| {
        let setting = if error.is_the_keys(&files.key) { "tls.key" } else { "tls.cert" };
        Stop::new(Exit::Usage, format!("{setting}: {error}"))
    })
}

/// Listens, or says whose setting to change.
async fn bind(setting: &str, address: SocketAddr) -> Result<TcpListener, Stop> {
    TcpListener::bind(address).await.map_err(|error| cannot_listen(setting, address, &error))
}

fn cannot_listen(setting: &str, address: SocketAddr, error: &std::io::Error) -> Stop {
    let hint = match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            "; something listens there already: stop it, or choose another port (0 lets the system choose)"
        }
        std::io::ErrorKind::PermissionDenied => "; ports below 1024 need more rights",
        _ => "",
    };
    Stop::new(Exit::Usage, format!("{setting}: cannot listen on {address}: {error}{hint}"))
}

/// The listener for operators, unless it is off.
async fn bind_admin(config: &Config) -> Result<Option<TcpListener>, Stop> {
    let admin = &config.admin;
    let Some(address) = admin.listen.address(AdminConfig::DEFAULT_LISTEN) else { return Ok(None) };
    admin::may_listen(address, admin.token.as_ref())
        .map_err(|exposed| Stop::new(Exit::Usage, format!("admin.listen: {exposed}")))?;
    bind_unless_taken("admin", admin.listen, address).await
}

/// Listens for other nodes and operators. Beside --stdio only if somebody says so: whoever starts servers for themselves wants no
/// ports taken.
async fn bind_grpc(config: &Config, stdio: bool) -> Result<Option<TcpListener>, Stop> {
    if stdio && config.grpc.listen == Listener::Unset {
        return Ok(None);
    }
    let Some(address) = config.grpc.listen.address(GrpcConfig::DEFAULT_LISTEN) else { return Ok(None) };
    cluster::may_listen(address, &config.grpc)
        .map_err(|exposed| Stop::new(Exit::Usage, format!("grpc.listen: {exposed}")))?;
    bind_unless_taken("grpc", config.grpc.listen, address).await
}

/// Listens. Where nobody asked for the address, another server on this machine has it, most likely, which is no reason not to
/// serve.
async fn bind_unless_taken(name: &str, asked: Listener, address: SocketAddr) -> Result<Option<TcpListener>, Stop> {
    match (asked, TcpListener::bind(address).await) {
        (Listener::Unset, Err(error)) if error.kind() == std::io::ErrorKind::AddrInUse => {
            tracing::warn!("{name}.listen: {address} is taken, so nothing is served there; choose with --{name}");
            Ok(None)
        }
        (_, bound) => bound.map(Some).map_err(|error| cannot_listen(&format!("{name}.listen"), address, &error)),
    }
}

/// The one line for whoever started us.
fn announce(ready: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{ready}")?;
    out.flush()
}

/// Over once the process is asked to stop.
pub(crate) fn stop_signal() -> std::io::Result<impl Future<Output = ()> + Send> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Host name and random characters.
fn node_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim();
    let random = getrandom::u32().unwrap_or_else(|_| std::process::id());
    format!("{}-{random:08x}", if host.is_empty() { "node" } else { host })
}

/// Logs go to standard error: standard output is for what scripts read.
fn start_log(config: &Config) -> Result<(), Stop> {
    use tracing_subscriber::EnvFilter;
    use tracing_subscriber::fmt;
    let telemetry = &config.telemetry;
    // A plain level is ours. What rmcp says of clients that went away in the middle is no fault, whatever it calls it; and of
    // connections to the database that end, the store tells once, not each.
    let directives = match telemetry.log.contains(['=', ',']) {
        true => telemetry.log.clone(),
        false => format!("{},rmcp=warn,rmcp::service=off,deadpool.postgres=off", telemetry.log),
    };
    let filter = EnvFilter::try_new(directives)
        .map_err(|error| Stop::new(Exit::Usage, format!("telemetry.log: {:?} is no filter: {error}", telemetry.log)))?;
    let log = fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let started = match telemetry.format {
        LogFormat::Json => log.json().try_init(),
        LogFormat::Pretty => {
            let terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
            log.with_ansi(terminal).with_target(false).try_init()
        }
    };
    // A program around this one may have a log of its own.
    drop(started);
    Ok(())
}
