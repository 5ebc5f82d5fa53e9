//! A certificate and its key in files that are read again when they change: the next handshake uses a renewed
//! certificate, without a restart.

use crate::identity::file_version::{Change, FileVersion, Stamp, stamp};
use crate::identity::tls::{TlsError, chain, key, provider};
use fedtvd_run::directory::sha256;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use time::OffsetDateTime;
use tokio_rustls::rustls::client::ResolvesClientCert;
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{self, InconsistentKeys, SignatureScheme};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;

/// A certificate and its key.
#[derive(Debug)]
pub(crate) struct CertificateFile {
    certificate: PathBuf,
    key: PathBuf,
    known: Mutex<FileVersion<[Stamp; 2], CertifiedKey>>,
}

impl CertificateFile {
    /// Reads both files.
    pub(crate) fn open(certificate: PathBuf, key: PathBuf) -> Result<Self, TlsError> {
        let stamps = [stamp(&certificate), stamp(&key)];
        let certified = read(&certificate, &key)?;
        Ok(Self { certificate, key, known: Mutex::new(FileVersion::new(stamps, certified)) })
    }

    /// Reads the files again if they changed. If they cannot be used, or do not belong together yet, the previous
    /// certificate stays in use. A problem is returned once, and so is its end.
    pub(crate) fn refresh(&self) -> Option<Change> {
        let stamps = [stamp(&self.certificate), stamp(&self.key)];
        self.known().refresh(stamps, Instant::now(), |_| read(&self.certificate, &self.key))
    }

    /// SHA-256 of the certificate.
    pub(crate) fn fingerprint(&self) -> String {
        self.current().cert.first().map_or_else(String::new, |certificate| sha256(certificate))
    }

    /// When the certificate expires.
    pub(crate) fn expires(&self) -> Option<OffsetDateTime> {
        let certified = self.current();
        let (_, certificate) = X509Certificate::from_der(certified.cert.first()?).ok()?;
        OffsetDateTime::from_unix_timestamp(certificate.validity().not_after.timestamp()).ok()
    }

    fn current(&self) -> Arc<CertifiedKey> {
        self.known().value()
    }

    fn known(&self) -> MutexGuard<'_, FileVersion<[Stamp; 2], CertifiedKey>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(certificate: &std::path::Path, private: &std::path::Path) -> Result<Arc<CertifiedKey>, TlsError> {
    let certified = CertifiedKey::from_der(chain(certificate)?, key(private)?, &provider());
    Ok(Arc::new(certified.map_err(|error| match error {
        rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            let [certificate, key] = [certificate, private].map(|path| path.display().to_string());
            TlsError::OtherKey { certificate, key }
        }
        other => other.into(),
    })?))
}

/// The server's side: the server itself refreshes, and logs what is wrong.
impl ResolvesServerCert for CertificateFile {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current())
    }
}

/// The client's side, with the newest certificate for every connection.
impl ResolvesClientCert for CertificateFile {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        // If the new files cannot be used, the server's answer to the old certificate says why one is needed.
        let _ = self.refresh();
        Some(self.current())
    }

    fn has_certs(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::{Authority, CertificateRequest};

    #[test]
    fn a_renewed_certificate_is_used_once_it_matches_its_key_and_until_then_the_previous_one() {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::init(folder.path(), &[], 10).unwrap();
        let wish = CertificateRequest { name: "rome".to_owned(), id: None, max_size: 10, days: 5 };
        let (client, first) = authority.issue(&wish).unwrap();
        let file = CertificateFile::open(client.join("cert.pem"), client.join("key.pem")).unwrap();
        let old_key = std::fs::read(client.join("key.pem")).unwrap();
        let (_, second) = authority.issue(&wish).unwrap();
        let new_key = std::fs::read(client.join("key.pem")).unwrap();
        std::fs::write(client.join("key.pem"), old_key).unwrap();
        assert!(file.refresh().is_some() && file.refresh().is_none(), "the error is returned once");
        assert_eq!(file.fingerprint(), first.fingerprint);
        std::fs::write(client.join("key.pem"), new_key).unwrap();
        assert_eq!(file.refresh(), Some(Change::Usable));
        assert_eq!(file.fingerprint(), second.fingerprint);
    }
}
