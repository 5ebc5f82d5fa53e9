//! Mutual TLS 1.3 with rustls and ring: both sides present a certificate of the federation's own authority.

use crate::identity::certificate_file::CertificateFile;
use fedtvd_run::directory::files::doing;
use fedtvd_run::directory::{FileError, sha256};
use std::path::Path;
use std::sync::Arc;
use thiserror::Error;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use tokio_rustls::rustls::{
    self, AlertDescription, CertificateError, ClientConfig, RootCertStore, ServerConfig, version::TLS13,
};

/// Why TLS cannot be set up.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file without a certificate or key in it.
    #[error("{path}: {why}")]
    Pem {
        /// Which.
        path: String,
        /// What is wrong.
        why: pem::Error,
    },
    /// A certificate that does not match its key.
    #[error("{certificate} and {key} do not belong together: the certificate was made for another key")]
    OtherKey {
        /// The certificate's file.
        certificate: String,
        /// The key's file.
        key: String,
    },
    /// An invalid certificate or authority.
    #[error("the certificates cannot be used: {0}")]
    Rustls(#[from] rustls::Error),
    /// The authority's certificate.
    #[error("the authority's certificate cannot be used: {0}")]
    Verifier(#[from] VerifierBuilderError),
}

/// The server's side: it presents `server.pem` and requires a certificate that `ca.pem` signed.
pub fn server(folder: &Path) -> Result<ServerConfig, TlsError> {
    server_with(folder, Arc::new(server_certificate(folder)?))
}

/// The server's certificate.
pub(crate) fn server_certificate(folder: &Path) -> Result<CertificateFile, TlsError> {
    CertificateFile::open(folder.join("server.pem"), folder.join("server.key"))
}

/// The server's side with a certificate that may be renewed.
pub(crate) fn server_with(folder: &Path, own: Arc<CertificateFile>) -> Result<ServerConfig, TlsError> {
    let roots = Arc::new(roots(&folder.join("ca.pem"))?);
    let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider()).build()?;
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(verifier)
        .with_cert_resolver(own);
    config.alpn_protocols = vec![b"h2".to_vec()];
    // Without session tickets every connection presents its certificate.
    config.send_tls13_tickets = 0;
    Ok(config)
}

/// A client's side: it presents `cert.pem` and trusts what `ca.pem` signed.
pub(crate) fn client(folder: &Path) -> Result<ClientConfig, TlsError> {
    client_config(folder, "cert.pem", "key.pem")
}

/// The operator's side: it presents the server's own certificate.
pub(crate) fn operator(folder: &Path) -> Result<ClientConfig, TlsError> {
    client_config(folder, "server.pem", "server.key")
}

fn client_config(folder: &Path, certificate: &str, private: &str) -> Result<ClientConfig, TlsError> {
    let roots = Arc::new(roots(&folder.join("ca.pem"))?);
    let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider()).build()?;
    let own = CertificateFile::open(folder.join(certificate), folder.join(private))?;
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .with_webpki_verifier(verifier)
        .with_client_cert_resolver(Arc::new(own));
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}

pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    Ok(std::fs::read(path).map_err(doing("reading", path))?)
}

/// The certificates of a file.
pub fn chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let bytes = read(path)?;
    let wrong = |why| TlsError::Pem { path: path.display().to_string(), why };
    let chain: Vec<_> = CertificateDer::pem_slice_iter(&bytes).collect::<Result<_, _>>().map_err(wrong)?;
    if chain.is_empty() { Err(wrong(pem::Error::NoItemsFound)) } else { Ok(chain) }
}

/// The private key in a file.
pub(crate) fn key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let wrong = |why| TlsError::Pem { path: path.display().to_string(), why };
    PrivateKeyDer::from_pem_slice(&read(path)?).map_err(wrong)
}

/// SHA-256 of an authority's certificates, whatever the form of the file.
pub fn authority_hash(path: &Path) -> Result<String, TlsError> {
    let mut certificates: Vec<_> = chain(path)?.iter().map(|certificate| sha256(certificate)).collect();
    certificates.sort();
    certificates.dedup();
    Ok(match certificates.as_slice() {
        [one] => one.clone(),
        several => sha256(several.concat().as_bytes()),
    })
}

fn roots(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in chain(path)? {
        roots.add(certificate)?;
    }
    Ok(roots)
}

/// Code and sentence for a client's handshake that failed at the server.
pub(crate) fn refused(error: &rustls::Error) -> (&'static str, String) {
    use rustls::Error;
    let (code, why) = match error {
        Error::NoCertificatesPresented => ("tls-no-certificate", "it presents no certificate".to_owned()),
        Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature) => (
            "tls-wrong-authority",
            "its certificate was not signed by this federation's authority".to_owned(),
        ),
        Error::InvalidCertificate(
            expired @ (CertificateError::Expired | CertificateError::ExpiredContext { .. }),
        ) => ("tls-expired", format!("its certificate has expired: {expired}")),
        Error::InvalidCertificate(
            early @ (CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. }),
        ) => ("tls-not-yet-valid", format!("its certificate is not valid yet: {early}")),
        Error::InvalidCertificate(other) => {
            ("tls-bad-certificate", format!("its certificate is invalid: {other}"))
        }
        Error::PeerIncompatible(why) => {
            ("tls-incompatible", format!("it does not speak this server's TLS: {why:?}"))
        }
        Error::AlertReceived(alert) => ("tls-declined", format!("it does not trust this server: {alert:?}")),
        Error::InvalidMessage(_) => ("tls-plaintext", "it does not speak TLS".to_owned()),
        other => ("tls-failed", other.to_string()),
    };
    (code, why)
}

/// Code and sentence for a handshake that failed at the client.
pub(crate) fn declined(error: &rustls::Error) -> (&'static str, String) {
    use rustls::Error;
    match error {
        Error::AlertReceived(AlertDescription::CertificateRequired) => (
            "tls-no-certificate",
            "the server requires a certificate, and this client presents none".to_owned(),
        ),
        Error::AlertReceived(AlertDescription::UnknownCA | AlertDescription::DecryptError) => (
            "tls-wrong-authority",
            "the server does not know the authority that signed this client's certificate".to_owned(),
        ),
        Error::AlertReceived(AlertDescription::CertificateExpired) => (
            "tls-expired",
            "this client's certificate has expired; ask the operator for a new one".to_owned(),
        ),
        Error::AlertReceived(AlertDescription::BadCertificate | AlertDescription::CertificateUnknown) => {
            ("tls-bad-certificate", "the server does not accept this client's certificate".to_owned())
        }
        Error::AlertReceived(alert) => {
            ("tls-refused", format!("the server refuses the connection: {alert:?}"))
        }
        Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature) => (
            "tls-server-authority",
            "the server's certificate was not signed by the authority that this client trusts".to_owned(),
        ),
        Error::InvalidCertificate(why) => {
            ("tls-server-certificate", format!("the server's certificate is invalid: {why}"))
        }
        Error::InvalidMessage(_) => ("tls-plaintext", "the server does not speak TLS".to_owned()),
        other => ("tls-failed", other.to_string()),
    }
}
