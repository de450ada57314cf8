//! An issuer's key set on the web: HTTPS on loopback, with a certificate of an authority of its own, and every bad habit that a
//! test asks for.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use super::token::Signer;
use super::{DEADLINE, LOOK_AGAIN};

/// The server. Dropping it ends it.
#[derive(Debug)]
pub struct KeyServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    dir: TempDir,
    serving: JoinHandle<()>,
}

/// How it answers.
#[derive(Clone, Debug)]
enum Habit {
    /// With these bytes.
    Says(String),
    /// It takes the request and keeps silent.
    Hangs,
    /// It sends the client somewhere else.
    SendsTo(String),
    /// With this status and nothing else.
    Fails(u16),
}

#[derive(Debug)]
struct Shared {
    habit: Mutex<Habit>,
    /// The heads of the requests that came.
    heads: Mutex<Vec<String>>,
}

impl KeyServer {
    /// Starts one that serves these keys.
    ///
    /// # Panics
    /// If there is no port, or no certificate, to be had.
    pub async fn start(signers: &[Signer]) -> Self {
        tokkuri_server::listener::use_ring();
        let dir = tempfile::tempdir().expect("a temporary directory");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (root, tls) = certified();
        std::fs::write(dir.path().join("root.pem"), root).expect("write the root certificate");
        let habit = Mutex::new(Habit::Says(key_set(signers)));
        let shared = Arc::new(Shared { habit, heads: Mutex::default() });
        let serving = tokio::spawn(serve(listener, TlsAcceptor::from(Arc::new(tls)), Arc::clone(&shared)));
        Self { address, shared, dir, serving }
    }

    /// Where the key set is.
    pub fn url(&self) -> String {
        format!("https://localhost:{}/keys", self.address.port())
    }

    /// The certificate of its authority, for whoever is to trust it.
    pub fn root(&self) -> PathBuf {
        self.dir.path().join("root.pem")
    }

    /// Serves these keys from now on.
    pub fn publish(&self, signers: &[Signer]) {
        self.take_to(Habit::Says(key_set(signers)));
    }

    /// Serves these bytes from now on.
    pub fn say(&self, text: impl Into<String>) {
        self.take_to(Habit::Says(text.into()));
    }

    /// Answers nothing from now on.
    pub fn hang(&self) {
        self.take_to(Habit::Hangs);
    }

    /// Redirects to `place` from now on.
    pub fn redirect(&self, place: &str) {
        self.take_to(Habit::SendsTo(place.to_owned()));
    }

    /// Answers this status from now on.
    pub fn fail(&self, status: u16) {
        self.take_to(Habit::Fails(status));
    }

    /// The heads of the requests that came until now.
    pub fn heads(&self) -> Vec<String> {
        self.shared.heads.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How often it was asked.
    pub fn asked(&self) -> usize {
        self.heads().len()
    }

    /// Waits until it was asked so often.
    ///
    /// # Panics
    /// If the deadline passes.
    pub async fn wait_asked(&self, times: usize) {
        let start = Instant::now();
        while self.asked() < times {
            assert!(start.elapsed() < DEADLINE, "asked {} times, not {times}", self.asked());
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    fn take_to(&self, habit: Habit) {
        *self.shared.habit.lock().unwrap_or_else(PoisonError::into_inner) = habit;
    }
}

impl Drop for KeyServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn key_set(signers: &[Signer]) -> String {
    let keys: Vec<Value> = signers.iter().map(Signer::jwk).collect();
    json!({ "keys": keys }).to_string()
}

/// The certificate of an authority, and TLS with one for `localhost` that it has signed.
fn certified() -> (String, ServerConfig) {
    let mut params = CertificateParams::new(Vec::new()).expect("an authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let root = params.self_signed(&key).expect("the authority's certificate").pem();
    let authority = Issuer::new(params, key);
    let own = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(["localhost".to_owned()]).expect("a name");
    let certificate = params.signed_by(&own, &authority).expect("a certificate");
    let private = rustls::pki_types::PrivateKeyDer::Pkcs8(own.serialize_der().into());
    let config = ServerConfig::builder().with_no_client_auth();
    (root, config.with_single_cert(vec![certificate.der().clone()], private).expect("the key is the certificate's"))
}

async fn serve(listener: TcpListener, tls: TlsAcceptor, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (tls, shared) = (tls.clone(), Arc::clone(&shared));
        tokio::spawn(async move {
            // Whoever does not trust the certificate goes in the middle of the handshake.
            let Ok(mut stream) = tls.accept(stream).await else { return };
            let mut head = Vec::new();
            while !head.windows(4).any(|it| it == b"\r\n\r\n") {
                match stream.read_buf(&mut head).await {
                    Ok(0) | Err(_) => return,
                    Ok(_) => {}
                }
            }
            let habit = shared.habit.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let head = String::from_utf8_lossy(&head).into_owned();
            shared.heads.lock().unwrap_or_else(PoisonError::into_inner).push(head);
            let answer = match habit {
                Habit::Says(body) => format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
                    body.len()
                ),
                Habit::Hangs => return std::future::pending().await,
                Habit::SendsTo(place) => {
                    format!("HTTP/1.1 302 Found\r\nlocation: {place}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
                }
                Habit::Fails(status) => {
                    format!("HTTP/1.1 {status} No\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
                }
            };
            // A client that goes has what it wanted, or does not want it.
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.shutdown().await;
        });
    }
}
