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
        Verify::Nothing => builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyCertificate(provider))),
        Verify::Authority(roots) => {
            let inner = WebPkiServerVerifier::builder_with_provider(Arc::new(store(roots)?), provider)
                .build()
                .map_err(|error| failed(&error))?;
            builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyName(inner)))
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

/// Believes any certificate, as `sslmode=require` asks for.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Believes a certificate of a trusted authority for any host, as `sslmode=verify-ca` asks for.
#[derive(Debug)]
struct AnyName(Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        // The name is looked at last: whoever fails for it alone has a certificate that is good.
        match self.0.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
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
        self.0.verify_tls12_signature(message, cert, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, cert, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
