//! A certificate and its key in files that are read again when they change: the next handshake uses a renewed
//! certificate, without a restart.

use crate::identity::allow_list::{Stamp, stamp};
use crate::identity::tls::{TlsError, chain, key, provider};
use fedtvd_run::directory::sha256;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use time::OffsetDateTime;
use tokio_rustls::rustls::SignatureScheme;
use tokio_rustls::rustls::client::ResolvesClientCert;
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;

/// A certificate and its key.
#[derive(Debug)]
pub(crate) struct CertificateFile {
    certificate: PathBuf,
    key: PathBuf,
    known: Mutex<Known>,
}

/// What was read last.
#[derive(Debug)]
struct Known {
    stamps: [Option<Stamp>; 2],
    certified: Arc<CertifiedKey>,
}

impl CertificateFile {
    /// Reads both files.
    pub(crate) fn open(certificate: PathBuf, key: PathBuf) -> Result<Self, TlsError> {
        let stamps = [stamp(&certificate), stamp(&key)];
        let certified = read(&certificate, &key)?;
        Ok(Self { certificate, key, known: Mutex::new(Known { stamps, certified }) })
    }

    /// Reads the files again if they changed. If they cannot be used, or do not belong together yet, the previous
    /// certificate stays in use and the error is returned once.
    pub(crate) fn refresh(&self) -> Option<TlsError> {
        let stamps = [stamp(&self.certificate), stamp(&self.key)];
        let mut known = self.known();
        if known.stamps == stamps {
            return None;
        }
        known.stamps = stamps;
        match read(&self.certificate, &self.key) {
            Ok(certified) => {
                known.certified = certified;
                None
            }
            Err(error) => Some(error),
        }
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
        Arc::clone(&self.known().certified)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(certificate: &std::path::Path, private: &std::path::Path) -> Result<Arc<CertifiedKey>, TlsError> {
    let certified = CertifiedKey::from_der(chain(certificate)?, key(private)?, &provider())?;
    Ok(Arc::new(certified))
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
        assert!(file.refresh().is_none());
        assert_eq!(file.fingerprint(), second.fingerprint);
    }
}
