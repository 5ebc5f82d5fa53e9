//! Whose certificate a file holds: its name and its public key.

use crate::identity::tls;
use fedtvd_run::directory::sha256;
use std::path::Path;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;

/// The subject of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    /// The client's name.
    pub(crate) name: String,
    /// SHA-256 of its public key.
    pub(crate) key_hash: String,
}

impl Subject {
    /// The subject of the first certificate in a file; `None` if it cannot be read.
    pub(crate) fn read(path: &Path) -> Option<Self> {
        let chain = tls::chain(path).ok()?;
        let (_, certificate) = X509Certificate::from_der(chain.first()?).ok()?;
        let name = certificate.subject().iter_common_name().next()?.as_str().ok()?.to_owned();
        Some(Self { name, key_hash: sha256(certificate.public_key().raw) })
    }
}
