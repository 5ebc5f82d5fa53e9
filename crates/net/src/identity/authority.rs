//! A private certificate authority in a folder: the server's certificate and one per client.
//!
//! ```text
//! ca.pem, ca.key               the authority; the key signs new certificates and never leaves this folder
//! server.pem, server.key       the server, with the host names that clients connect to
//! clients.toml                 who may take part
//! signed/NAME/                 what a client gets whose request was signed: ca.pem, cert.pem
//! clients/NAME/                what a client gets whose key was made here: ca.pem, cert.pem, key.pem
//! ```

use crate::identity::list_lock::ListLock;
use crate::identity::same_owner::replace;
use crate::identity::{AllowError, AllowList, NameError};
use fedtvd_core::round::ClientId;
use fedtvd_run::directory::FileError;
use fedtvd_run::directory::files::{make_folder, read_text, sync, write};
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use std::path::{Path, PathBuf};
use thiserror::Error;
use time::{Duration, OffsetDateTime};
use tokio_rustls::rustls::pki_types::ServerName;

/// A certificate authority and the folder that it lives in.
#[derive(Clone, Debug)]
pub struct Authority {
    folder: PathBuf,
}

/// Why a certificate cannot be issued or revoked.
#[derive(Debug, Error)]
pub enum AuthorityError {
    /// A file.
    #[error(transparent)]
    File(#[from] FileError),
    /// The list of clients.
    #[error(transparent)]
    Allow(#[from] AllowError),
    /// The cryptography.
    #[error("making a certificate: {0}")]
    Rcgen(#[from] rcgen::Error),
    /// There is an authority already.
    #[error("{0} already holds an authority; a new one would not trust its clients")]
    Exists(String),
    /// There is no authority.
    #[error("{0} holds no authority; create one with \"fedtvd certs init\"")]
    Missing(String),
    /// A name that cannot be a client's.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The system's random numbers.
    #[error("the system has no random numbers for a serial number")]
    Random,
    /// The client has another number.
    #[error("{name} has a valid certificate as number {id}; revoke it before you give it another number")]
    OtherNumber {
        /// The client.
        name: String,
        /// Its number.
        id: ClientId,
    },
    /// The number is in use.
    #[error("number {id} belongs to {name}; choose another")]
    NumberInUse {
        /// The number.
        id: ClientId,
        /// Whose it is.
        name: String,
    },
    /// The key of another client.
    #[error(
        "the public key of the request for {name} is that of {other}: whoever has it could be both. Let the site make its own with \
         \"fedtvd join --request {name}\" in a new folder; if {other} is now called {name}, revoke {other} first"
    )]
    KeyInUse {
        /// The client of the request.
        name: String,
        /// The client that has the key.
        other: String,
    },
    /// No such client.
    #[error("{0} has no certificate that could be revoked; \"fedtvd certs list\" shows all")]
    UnknownClient(String),
    /// No such serial number.
    #[error(
        "no certificate that could be revoked has the serial number {0}; \"fedtvd certs list\" shows all"
    )]
    UnknownSerial(String),
    /// A host that nobody can connect to.
    #[error(
        "\"{0}\" is not a host name or an address; write it without a port, like fed.example.org or 192.0.2.7"
    )]
    Host(String),
}

impl Authority {
    /// The authority in this folder.
    pub fn open(folder: &Path) -> Result<Self, AuthorityError> {
        let authority = Self { folder: folder.to_owned() };
        if !authority.file("ca.pem").is_file() {
            return Err(AuthorityError::Missing(folder.display().to_string()));
        }
        Ok(authority)
    }

    /// Creates an authority and a server certificate for clients that connect to these hosts.
    pub fn init(folder: &Path, hosts: &[String], days: i64) -> Result<Self, AuthorityError> {
        let authority = Self { folder: folder.to_owned() };
        if authority.file("ca.key").exists() {
            return Err(AuthorityError::Exists(folder.display().to_string()));
        }
        let (key, server_key) = (KeyPair::generate()?, KeyPair::generate()?);
        let root = authority_params(days)?.self_signed(&key)?;
        let server = server(hosts, days, &server_key, &key)?;
        make_folder(folder)?;
        make_folder(&authority.file("clients"))?;
        write(&authority.file("server.key"), server_key.serialize_pem().as_bytes())?;
        write(&authority.file("server.pem"), server.pem().as_bytes())?;
        if !authority.list_path().exists() {
            AllowList::default().write(&authority.list_path())?;
        }
        write(&authority.file("ca.pem"), root.pem().as_bytes())?;
        // Last, because the authority's key marks a complete folder.
        write(&authority.file("ca.key"), key.serialize_pem().as_bytes())?;
        sync(folder)?;
        Ok(authority)
    }

    /// Issues a new server certificate for clients that connect to these hosts; client certificates stay valid.
    pub fn renew_server(&self, hosts: &[String], days: i64) -> Result<(), AuthorityError> {
        let _lock = ListLock::acquire(&self.folder)?;
        let server = server(hosts, days, &self.key("server.key")?, &self.key("ca.key")?)?;
        Ok(replace(&self.file("server.pem"), server.pem().as_bytes())?)
    }

    /// The list of clients that may take part.
    pub fn list(&self) -> Result<AllowList, AuthorityError> {
        Ok(AllowList::read(&self.list_path())?)
    }

    /// The file that holds that list.
    pub fn list_path(&self) -> PathBuf {
        self.file("clients.toml")
    }

    pub(crate) fn key(&self, name: &str) -> Result<KeyPair, AuthorityError> {
        Ok(KeyPair::from_pem(&read_text(&self.file(name))?)?)
    }

    /// The folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// One of the folder's files.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

/// The contents of the authority's certificate. For signing others only its name matters.
pub(crate) fn authority_params(days: i64) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name.push(DnType::CommonName, "fedtvd federation");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    set_validity(&mut params, days);
    Ok(params)
}

/// A server's certificate for clients that connect to these hosts. The operator uses it too, to ask for the status.
fn server(
    hosts: &[String],
    days: i64,
    own: &KeyPair,
    authority_key: &KeyPair,
) -> Result<Certificate, AuthorityError> {
    if let Some(host) = hosts.iter().find(|host| ServerName::try_from(host.as_str()).is_err()) {
        return Err(AuthorityError::Host(host.clone()));
    }
    let mut names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
    names.extend(hosts.iter().filter(|host| !names.contains(host)).cloned().collect::<Vec<_>>());
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name.push(DnType::CommonName, "fedtvd server");
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    set_validity(&mut params, days);
    Ok(params.signed_by(own, &Issuer::new(authority_params(1)?, authority_key))?)
}

/// Makes a certificate valid from yesterday, for clocks that are slow, until `days` from now; returns the last moment. A
/// negative number makes an expired one.
pub(crate) fn set_validity(params: &mut CertificateParams, days: i64) -> OffsetDateTime {
    let now = OffsetDateTime::now_utc();
    params.not_before = now + Duration::days((days - 1).min(-1));
    params.not_after = now + Duration::days(days);
    params.not_after
}
