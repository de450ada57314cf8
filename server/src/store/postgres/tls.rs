//! TLS towards the database: rustls with ring, and how much of the server's certificate is believed.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::OpenError;

/// What is looked at of the server's certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verify {
    /// Nothing: encrypted, against those who listen in alone. A password by SCRAM is bound to the certificate all the same.
    Nothing,
    /// Who issued it.
    Authority(Roots),
    /// Who issued it, and for which host.
    Name(Roots),
}

/// Whose certificates are trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Roots {
    /// Those whom the machine trusts.
    Machine,
    /// Those in a PEM file.
    File(PathBuf),
}

pub(super) fn connector(verify: &Verify) -> Result<MakeRustlsConnect, OpenError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let failed = |why: &dyn std::fmt::Display| OpenError::Tls { why: why.to_string() };
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(&error))?;
    let builder = match verify {
        Verify::Nothing => {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyHost { authority: None, provider }))
        }
        Verify::Authority(roots) => {
            let authority = WebPkiServerVerifier::builder_with_provider(Arc::new(store(roots)?), Arc::clone(&provider))
                .build()
                .map_err(|error| failed(&error))?;
            let verifier = AnyHost { authority: Some(authority), provider };
            builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
        }
        Verify::Name(roots) => builder.with_root_certificates(store(roots)?),
    };
    Ok(MakeRustlsConnect::new(builder.with_no_client_auth()))
}

fn store(roots: &Roots) -> Result<RootCertStore, OpenError> {
    let mut store = RootCertStore::empty();
    match roots {
        Roots::Machine => {
            let found = rustls_native_certs::load_native_certs();
            store.add_parsable_certificates(found.certs);
            if store.is_empty() {
                let why = "this machine has no certificate authorities; name a file of yours with sslrootcert";
                return Err(OpenError::Tls { why: why.into() });
            }
        }
        Roots::File(file) => {
            let wrong = |why: &dyn std::fmt::Display| OpenError::Tls {
                why: format!("sslrootcert {}: {why}; give a PEM file with certificates", file.display()),
            };
            let text = std::fs::read(file).map_err(|error| wrong(&error))?;
            for certificate in CertificateDer::pem_slice_iter(&text) {
                store.add(certificate.map_err(|error| wrong(&error))?).map_err(|error| wrong(&error))?;
            }
            if store.is_empty() {
                return Err(wrong(&"no certificate in it"));
            }
        }
    }
    Ok(store)
}

/// Believes more than a certificate says: who issued it is looked at or not, for which host never. `sslmode=require` and
/// `sslmode=verify-ca` ask for that. What the handshake itself signs is always checked.
#[derive(Debug)]
struct AnyHost {
    /// Checks who issued it; without, any certificate is believed.
    authority: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AnyHost {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(authority) = &self.authority else { return Ok(ServerCertVerified::assertion()) };
        // The name is looked at last: whoever fails for it alone has a certificate that is good.
        match authority.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
