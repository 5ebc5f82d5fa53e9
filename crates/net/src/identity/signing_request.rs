//! A certificate request (PKCS #10): a site makes its own key, and the operator certifies it without seeing it.
//!
//! Only the name and the public key are taken from a request. One that asks for anything else is refused, so that nobody
//! believes to have been granted it.

use crate::identity::certificate_subject::Subject;
use crate::identity::client_name::{NameError, check_name};
use fedtvd_run::directory::files::{doing, make_folder, read_text, write};
use fedtvd_run::directory::{FileError, sha256};
use rcgen::{
    CertificateParams, DnType, KeyPair, PKCS_ECDSA_P256_SHA256, PublicKeyData as _, SubjectPublicKeyInfo,
};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use thiserror::Error;
use tokio_rustls::rustls::pki_types::CertificateSigningRequestDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::oid_registry::OID_X509_COMMON_NAME;
use x509_parser::prelude::FromDer as _;
use x509_parser::x509::X509Name;

/// Why there is no request, or none that can be signed.
#[derive(Debug, Error)]
pub enum RequestError {
    /// A file.
    #[error(transparent)]
    File(#[from] FileError),
    /// The cryptography.
    #[error("making a certificate request: {0}")]
    Rcgen(#[from] rcgen::Error),
    /// A name that cannot be a client's.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A file that is not a request.
    #[error(
        "it is not a certificate request in PEM form ({0}); make one with \"fedtvd join --request NAME\""
    )]
    Unreadable(&'static str),
    /// A request that was not signed with its own key, or was changed.
    #[error(
        "its signature is wrong: it was changed on its way, or made by somebody who does not have the key"
    )]
    Signature,
    /// Another kind of key.
    #[error("its key is not an ECDSA key on the curve P-256, as \"fedtvd join --request\" makes it")]
    Key,
    /// Another subject than a name.
    #[error("its subject must be the client's name (CN) and nothing else")]
    Subject,
    /// A folder of another site.
    #[error(
        "{folder} holds the certificate of {other}, and a site with another name needs its own key: give --identity another \
         folder. If {other} is now called {name}, remove {folder}/cert.pem first"
    )]
    OtherSite {
        /// The folder.
        folder: String,
        /// The name that is asked for.
        name: String,
        /// The name in the certificate.
        other: String,
    },
    /// Extensions or other attributes.
    #[error("it asks for more than a client's name, such as other names or an authority's rights")]
    Attributes,
}

/// A request whose signature and name were checked.
#[derive(Clone, Debug)]
pub struct SigningRequest {
    name: String,
    key: SubjectPublicKeyInfo,
}

/// Maximum size of a request's file in bytes; the rest is not read.
const LARGEST: u64 = 64 << 10;

/// What a site made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requested {
    /// The key, which stays at the site.
    pub key: PathBuf,
    /// The request, for the operator.
    pub request: PathBuf,
    /// SHA-256 of the public key, by which site and operator can compare what was sent and what arrived.
    pub key_hash: String,
    /// Whether the key is new; otherwise it is the one that was there.
    pub new_key: bool,
    /// The name in the request that it replaces, if that is another one.
    pub replaced: Option<String>,
}

/// Writes a request for a certificate of this name, `request.pem`, beside the site's key, `key.pem`. A key that is there
/// stays, so that its certificate can be renewed; it is not used for another site.
pub fn request_certificate(name: &str, folder: &Path) -> Result<Requested, RequestError> {
    check_name(name)?;
    make_folder(folder)?;
    if let Some(subject) = Subject::read(&folder.join("cert.pem")).filter(|subject| subject.name != name) {
        let (folder, name, other) = (folder.display().to_string(), name.to_owned(), subject.name);
        return Err(RequestError::OtherSite { folder, name, other });
    }
    let (path, request) = (folder.join("key.pem"), folder.join("request.pem"));
    let new_key = !path.exists();
    let key = if new_key { KeyPair::generate()? } else { KeyPair::from_pem(&read_text(&path)?)? };
    if key.algorithm() != &PKCS_ECDSA_P256_SHA256 {
        return Err(RequestError::Key);
    }
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    let text = params.serialize_request(&key)?.pem()?;
    if new_key {
        write(&path, key.serialize_pem().as_bytes())?;
    }
    let replaced = SigningRequest::read(&request).ok().map(|replaced| replaced.name);
    let replaced = replaced.filter(|replaced| replaced != name);
    write(&request, text.as_bytes())?;
    let key_hash = sha256(&key.subject_public_key_info());
    Ok(Requested { key: path, request, key_hash, new_key, replaced })
}

impl SigningRequest {
    /// Reads and checks a request.
    pub fn read(path: &Path) -> Result<Self, RequestError> {
        let mut pem = Vec::new();
        let file = File::open(path).and_then(|file| file.take(LARGEST).read_to_end(&mut pem));
        file.map_err(doing("reading", path))?;
        Self::parse(&pem)
    }

    /// Checks a request in PEM form.
    pub fn parse(pem: &[u8]) -> Result<Self, RequestError> {
        let der = CertificateSigningRequestDer::from_pem_slice(pem);
        let der = der.map_err(|_| RequestError::Unreadable("no block CERTIFICATE REQUEST"))?;
        let parsed = X509CertificationRequest::from_der(&der);
        let (rest, parsed) = parsed.map_err(|_| RequestError::Unreadable("it is damaged"))?;
        if !rest.is_empty() {
            return Err(RequestError::Unreadable("bytes follow it"));
        }
        let info = &parsed.certification_request_info;
        let key = SubjectPublicKeyInfo::from_der(info.subject_pki.raw).map_err(|_| RequestError::Key)?;
        // A point that is not compressed: 4, x and y.
        if key.algorithm() != &PKCS_ECDSA_P256_SHA256 || key.der_bytes().len() != 65 {
            return Err(RequestError::Key);
        }
        parsed.verify_signature().map_err(|_| RequestError::Signature)?;
        if info.iter_attributes().next().is_some() {
            return Err(RequestError::Attributes);
        }
        let name = common_name(&info.subject).ok_or(RequestError::Subject)?.to_owned();
        check_name(&name)?;
        Ok(Self { name, key })
    }

    /// The client's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// SHA-256 of its public key.
    pub fn key_hash(&self) -> String {
        sha256(&self.key.subject_public_key_info())
    }

    /// Its public key.
    pub(crate) fn key(&self) -> &SubjectPublicKeyInfo {
        &self.key
    }
}

/// The common name of a subject that consists of it.
fn common_name<'a>(subject: &'a X509Name<'_>) -> Option<&'a str> {
    let mut attributes = subject.iter_attributes();
    let (name, more) = (attributes.next()?, attributes.next());
    let alone = more.is_none() && subject.iter().count() == 1 && *name.attr_type() == OID_X509_COMMON_NAME;
    if alone { name.as_str().ok() } else { None }
}
