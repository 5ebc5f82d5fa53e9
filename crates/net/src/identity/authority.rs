//! A private certificate authority in a folder: the server's certificate and one per client.
//!
//! ```text
//! ca.pem, ca.key               the authority; the key signs new certificates and never leaves this folder
//! server.pem, server.key       the server, with the host names that clients connect to
//! clients.toml                 who may take part
//! clients/NAME/                what a client gets: ca.pem, cert.pem, key.pem
//! ```

use crate::identity::{AllowError, AllowList, Listed};
use fedtvd_core::round::ClientId;
use fedtvd_run::directory::files::{doing, make_folder, read_text, sync, write, write_through};
use fedtvd_run::directory::{FileError, sha256};
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
    /// The name is in use.
    #[error("{0} has a valid certificate; revoke it first with \"fedtvd certs revoke {0}\"")]
    NameInUse(String),
    /// The number is in use.
    #[error("number {id} belongs to {name}; choose another")]
    NumberInUse {
        /// The number.
        id: ClientId,
        /// Whose it is.
        name: String,
    },
    /// No such client.
    #[error("{0} has no valid certificate; \"fedtvd certs list\" shows all")]
    UnknownClient(String),
    /// A host that nobody can connect to.
    #[error(
        "\"{0}\" is not a host name or an address; write it without a port, like fed.example.org or 192.0.2.7"
    )]
    Host(String),
    /// A name that cannot be a file name.
    #[error(
        "\"{0}\" is not a client's name: use letters, digits, - _ and . only, and start with a letter or digit"
    )]
    Name(String),
}

/// What a new certificate should say.
#[derive(Clone, Debug)]
pub struct CertificateRequest {
    /// The client's name.
    pub name: String,
    /// Its number; by default that of an earlier certificate of the same name, or the next free one.
    pub id: Option<ClientId>,
    /// Maximum number of training samples that it may claim.
    pub max_size: u64,
    /// Validity in days.
    pub days: i64,
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
        write_new(&authority.file("server.key"), &server_key.serialize_pem())?;
        write_new(&authority.file("server.pem"), &server.pem())?;
        if !authority.list_path().exists() {
            AllowList::default().write(&authority.list_path())?;
        }
        write_new(&authority.file("ca.pem"), &root.pem())?;
        // Last, because the authority's key marks a complete folder.
        write_new(&authority.file("ca.key"), &key.serialize_pem())?;
        sync(folder)?;
        Ok(authority)
    }

    /// Issues a new server certificate for clients that connect to these hosts; client certificates stay valid.
    pub fn renew_server(&self, hosts: &[String], days: i64) -> Result<(), AuthorityError> {
        let server = server(hosts, days, &self.key("server.key")?, &self.key("ca.key")?)?;
        Ok(write(&self.file("server.pem"), server.pem().as_bytes())?)
    }

    /// Issues a client certificate; returns the folder to give to the client.
    pub fn issue(&self, request: &CertificateRequest) -> Result<(PathBuf, Listed), AuthorityError> {
        let name = &request.name;
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || !name.chars().all(allowed) || name.starts_with(['-', '_', '.']) {
            return Err(AuthorityError::Name(name.clone()));
        }
        let mut list = self.list()?;
        if list.named(name).is_some() {
            return Err(AuthorityError::NameInUse(name.clone()));
        }
        let own = list.clients.iter().find(|entry| entry.name == *name).map(|entry| entry.id);
        let next = list.clients.iter().map(|entry| entry.id.saturating_add(1)).max().unwrap_or(0);
        let id = request.id.or(own).unwrap_or(next);
        if let Some(other) = list.clients.iter().find(|entry| entry.id == id && entry.name != *name) {
            return Err(AuthorityError::NumberInUse { id, name: other.name.clone() });
        }
        let authority_pem = read_text(&self.file("ca.pem"))?;
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name.push(DnType::CommonName, name.as_str());
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let expires = set_validity(&mut params, request.days);
        let certificate = params.signed_by(&key, &Issuer::new(authority_params(1)?, self.key("ca.key")?))?;
        let folder = self.folder.join("clients").join(name);
        make_folder(&folder)?;
        write_new(&folder.join("key.pem"), &key.serialize_pem())?;
        write_new(&folder.join("cert.pem"), &certificate.pem())?;
        write_new(&folder.join("ca.pem"), &authority_pem)?;
        let entry = Listed {
            name: name.clone(),
            id,
            fingerprint: sha256(certificate.der()),
            max_size: request.max_size,
            expires: expires.date().to_string(),
            revoked: false,
        };
        list.clients.push(entry.clone());
        list.write(&self.list_path())?;
        Ok((folder, entry))
    }

    /// Revokes a client's certificate; a running server refuses it from then on.
    pub fn revoke(&self, name: &str) -> Result<Listed, AuthorityError> {
        let mut list = self.list()?;
        let entry = list.clients.iter_mut().find(|entry| entry.name == name && !entry.revoked);
        let entry = entry.ok_or_else(|| AuthorityError::UnknownClient(name.to_owned()))?;
        entry.revoked = true;
        let revoked = entry.clone();
        list.write(&self.list_path())?;
        Ok(revoked)
    }

    /// The list of clients that may take part.
    pub fn list(&self) -> Result<AllowList, AuthorityError> {
        Ok(AllowList::read(&self.list_path())?)
    }

    /// The file that holds that list.
    pub fn list_path(&self) -> PathBuf {
        self.file("clients.toml")
    }

    fn key(&self, name: &str) -> Result<KeyPair, AuthorityError> {
        Ok(KeyPair::from_pem(&read_text(&self.file(name))?)?)
    }

    /// One of the folder's files.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

/// The contents of the authority's certificate. For signing others only its name matters.
fn authority_params(days: i64) -> Result<CertificateParams, rcgen::Error> {
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
fn set_validity(params: &mut CertificateParams, days: i64) -> OffsetDateTime {
    let now = OffsetDateTime::now_utc();
    params.not_before = now + Duration::days((days - 1).min(-1));
    params.not_after = now + Duration::days(days);
    params.not_after
}

/// Writes a file; only its owner may read it.
fn write_new(path: &Path, text: &str) -> Result<(), FileError> {
    write_through(path, text.as_bytes()).map_err(doing("writing", path))
}
