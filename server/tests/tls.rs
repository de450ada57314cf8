//! HTTPS: `tokkuri serve` with `[tls]`, `tokkuri call https://…`, and what is said of files that are none.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use tempfile::TempDir;

/// A directory with a certificate for 127.0.0.1, its key, and a configuration that names them.
fn directory() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned(), "localhost".to_owned()]).unwrap();
    fs::write(directory.path().join("cert.pem"), made.cert.pem()).unwrap();
    fs::write(directory.path().join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    fs::write(directory.path().join("t.toml"), "[tls]\ncert = \"cert.pem\"\nkey = \"key.pem\"\n").unwrap();
    directory
}

fn tokkuri(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tokkuri"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("TOKKURI_") {
            command.env_remove(name);
        }
    }
    command.args(arguments).current_dir(directory).stdin(Stdio::null());
    command
}

struct Serving {
    child: Child,
    url: String,
}

impl Serving {
    fn address(&self) -> &str {
        self.url.trim_start_matches("https://").trim_end_matches("/mcp")
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn serve(directory: &Path) -> Serving {
    let arguments = [
        "serve",
        "--config",
        "t.toml",
        "--http",
        "127.0.0.1:0",
        "--grpc",
        "off",
        "--admin",
        "off",
        "--store",
        "memory",
    ];
    let mut child = tokkuri(directory, &arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.split(' ').find_map(|field| field.strip_prefix("http=")).unwrap().to_owned();
    Serving { child, url: format!("https://{address}/mcp") }
}

fn call(serving: &Serving, directory: &Path, roots: Option<PathBuf>) -> Output {
    fs::write(directory.join("file"), "x").unwrap();
    let mut command = tokkuri(directory, &["call", "hash_files", "--url", &serving.url, "--json", "{}"]);
    if let Some(roots) = roots {
        command.env("SSL_CERT_FILE", roots);
    }
    command.output().unwrap()
}

#[test]
fn a_tool_can_be_called_over_https_by_who_trusts_the_certificate_and_by_nobody_else() {
    let directory = directory();
    let serving = serve(directory.path());
    let trusting = call(&serving, directory.path(), Some(directory.path().join("cert.pem")));
    assert!(trusting.status.success(), "{trusting:?}");
    let other = self::directory();
    let distrusting = call(&serving, directory.path(), Some(other.path().join("cert.pem")));
    assert!(!distrusting.status.success());
    let said = String::from_utf8_lossy(&distrusting.stderr);
    assert!(said.contains("certificate"), "{said}");
}

/// Connects to `serving`, offering these protocols, and says which one was chosen.
async fn connect(
    serving: &Serving,
    directory: &Path,
    offers: &[&[u8]],
) -> tokio_rustls::client::TlsStream<tokio::net::TcpStream> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(directory.join("cert.pem")).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = offers.iter().map(|offer| offer.to_vec()).collect();
    let stream = tokio::net::TcpStream::connect(serving.address()).await.unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
}

#[tokio::test]
async fn who_offers_http_2_in_the_handshake_gets_it_and_tasks_over_it() {
    let directory = directory();
    let serving = serve(directory.path());
    let chosen = async |offers: &[&[u8]]| {
        connect(&serving, directory.path(), offers).await.get_ref().1.alpn_protocol().map(<[u8]>::to_vec)
    };
    assert_eq!(chosen(&[]).await, None);
    assert_eq!(chosen(&[b"http/1.1"]).await.as_deref(), Some(&b"http/1.1"[..]));
    assert_eq!(chosen(&[b"http/1.1", b"h2"]).await.as_deref(), Some(&b"h2"[..]));

    let stream = connect(&serving, directory.path(), &[b"h2"]).await;
    let (sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    let connection = tokio::spawn(connection);
    let ask = async |method: &str, name: &str, params: &str| {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params},"_meta":{{
                "io.modelcontextprotocol/protocolVersion":"2026-07-28",
                "io.modelcontextprotocol/clientCapabilities":{{"elicitation":{{"form":{{}}}},"extensions":{{"io.modelcontextprotocol/tasks":{{}}}}}}}}}}}}"#
        );
        let request = http::Request::post(&serving.url)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", method)
            .header("mcp-name", name)
            .body(Full::new(Bytes::from(body)));
        let mut sender = sender.clone();
        sender.ready().await.unwrap();
        let response = sender.send_request(request.unwrap()).await.unwrap();
        assert_eq!(response.version(), http::Version::HTTP_2);
        let body = response.into_body().collect().await.unwrap().to_bytes();
        serde_json::from_slice::<serde_json::Value>(&body).unwrap()
    };
    let created = ask("tools/call", "ask_name", r#""name":"ask_name","arguments":{}"#).await;
    let id = created["result"]["taskId"].as_str().unwrap_or_else(|| panic!("no task: {created}"));
    let read = ask("tasks/get", id, &format!(r#""taskId":"{id}""#)).await;
    assert_eq!(read["result"]["taskId"], id, "{read}");
    connection.abort();
}

#[test]
fn plain_http_gets_no_answer_from_a_tls_listener() {
    use std::io::{Read, Write};
    let directory = directory();
    let serving = serve(directory.path());
    let address = serving.url.trim_start_matches("https://").trim_end_matches("/mcp");
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.write_all(b"POST /mcp HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP/"), "{answer:?}");
}

#[test]
fn a_file_that_is_none_is_named_with_its_setting_and_the_exit_code_is_2() {
    let (directory, other) = (self::directory(), self::directory());
    let key = fs::read_to_string(other.path().join("key.pem")).unwrap();
    fs::write(directory.path().join("other.pem"), key).unwrap();
    fs::write(directory.path().join("empty.pem"), "nothing\n").unwrap();
    for (cert, key, setting, says) in [
        ("missing.pem", "key.pem", "tls.cert", "cannot be read"),
        ("cert.pem", "missing.pem", "tls.key", "cannot be read"),
        ("empty.pem", "key.pem", "tls.cert", "certificate"),
        ("cert.pem", "empty.pem", "tls.key", "private key"),
        ("cert.pem", "cert.pem", "tls.key", "private key"),
        ("cert.pem", "other.pem", "tls.key", "cannot be used together"),
    ] {
        let text = format!("[tls]\ncert = \"{cert}\"\nkey = \"{key}\"\n");
        fs::write(directory.path().join("t.toml"), text).unwrap();
        let arguments = [
            "serve",
            "--config",
            "t.toml",
            "--http",
            "127.0.0.1:0",
            "--grpc",
            "off",
            "--admin",
            "off",
            "--store",
            "memory",
        ];
        let output = tokkuri(directory.path(), &arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{cert} {key}: {said}");
        assert!(said.contains(setting) && said.contains(says), "{cert} {key}: {said}");
    }
}
