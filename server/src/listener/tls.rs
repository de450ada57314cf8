//! TLS for the listener: a certificate chain and its key, out of PEM files.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// What a listener needs to speak TLS 1.2 and 1.3. Cheap to clone.
#[derive(Clone)]
pub struct Tls(TlsAcceptor);

/// Why there can be no TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{}: cannot be read ({source}); give the path of a readable PEM file", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is not what it should be.
    #[error("{}: holds no {wanted} in PEM ({reason})", file.display())]
    Empty {
        /// The file.
        file: PathBuf,
        /// What should be in it.
        wanted: &'static str,
        /// Why it is not.
        reason: String,
    },
    /// The two do not go together, or cannot be used.
    #[error("{} and {} cannot be used together: {reason}", cert.display(), key.display())]
    Unfit {
        /// The certificate's file.
        cert: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// Why.
        reason: rustls::Error,
    },
}

impl TlsError {
    /// The file that is wrong; the key's if the two do not fit.
    pub(crate) fn file(&self) -> &Path {
        match self {
            Self::Unreadable { file, .. } | Self::Empty { file, .. } => file,
            Self::Unfit { key, .. } => key,
        }
    }

    /// Whether it is the key that is wrong, rather than the certificate.
    pub(crate) fn is_the_keys(&self, key: &Path) -> bool {
        match self {
            Self::Unreadable { file, .. } | Self::Empty { file, .. } => file == key,
            Self::Unfit { .. } => true,
        }
    }
}

impl Tls {
    /// Reads a certificate chain and its private key (PKCS#8, PKCS#1 or SEC1) from PEM files. Clients are offered HTTP/2 and
    /// HTTP/1.1.
    ///
    /// # Errors
    /// [`TlsError`] names the file and what would be right.
    pub fn from_pem_files(cert: &Path, key: &Path) -> Result<Self, TlsError> {
        Self::new(cert, key, None, &[b"h2", b"http/1.1"])
    }

    /// The same for HTTP/2 alone. With `client_ca`, a PEM file of authorities, clients have to show a certificate that comes from
    /// one of them.
    ///
    /// # Errors
    /// [`TlsError`] names the file and what would be right.
    pub(crate) fn for_http2(cert: &Path, key: &Path, client_ca: Option<&Path>) -> Result<Self, TlsError> {
        Self::new(cert, key, client_ca, &[b"h2"])
    }

    fn new(cert: &Path, key: &Path, client_ca: Option<&Path>, protocols: &[&[u8]]) -> Result<Self, TlsError> {
        let (chain, secret) = (read(cert)?, read(key)?);
        let chain: Vec<_> = CertificateDer::pem_slice_iter(&chain).collect::<Result<_, _>>().map_err(|error| {
            TlsError::Empty { file: cert.to_owned(), wanted: "certificate", reason: error.to_string() }
        })?;
        if chain.is_empty() {
            let reason = "there is no CERTIFICATE section".to_owned();
            return Err(TlsError::Empty { file: cert.to_owned(), wanted: "certificate", reason });
        }
        let secret = PrivateKeyDer::from_pem_slice(&secret).map_err(|error| TlsError::Empty {
            file: key.to_owned(),
            wanted: "private key",
            reason: error.to_string(),
        })?;
        let unfit = |reason| TlsError::Unfit { cert: cert.to_owned(), key: key.to_owned(), reason };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(unfit)?;
        let builder = match client_ca {
            Some(file) => builder.with_client_cert_verifier(verifier(file, provider)?),
            None => builder.with_no_client_auth(),
        };
        let mut config = builder.with_single_cert(chain, secret).map_err(unfit)?;
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }

    pub(super) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        self.0.accept(stream).await
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

/// Makes ring the process's cryptography for whatever asks for none by name, HTTPS clients among them. An application that has
/// chosen another one keeps it.
pub fn use_ring() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Whoever checks clients' certificates against the authorities in `file`.
fn verifier(file: &Path, provider: Arc<CryptoProvider>) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let empty = |reason: String| TlsError::Empty { file: file.to_owned(), wanted: "authority's certificate", reason };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&read(file)?) {
        let certificate = certificate.map_err(|error| empty(error.to_string()))?;
        roots.add(certificate).map_err(|error| empty(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(empty("there is no CERTIFICATE section".to_owned()));
    }
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|error| empty(error.to_string()))
}

fn read(file: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(file).map_err(|source| TlsError::Unreadable { file: file.to_owned(), source })
}
