//! HTTPS: `tokkuri serve` with `[tls]`, `tokkuri call https://…`, and what is said of files that are none.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

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

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn serve(directory: &Path) -> Serving {
    let arguments = ["serve", "--config", "t.toml", "--http", "127.0.0.1:0", "--admin", "off", "--store", "memory"];
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
        let arguments = ["serve", "--config", "t.toml", "--http", "127.0.0.1:0", "--admin", "off", "--store", "memory"];
        let output = tokkuri(directory.path(), &arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{cert} {key}: {said}");
        assert!(said.contains(setting) && said.contains(says), "{cert} {key}: {said}");
    }
}
