//! A private certificate authority in a folder: the server's certificate and one per client.
//!
//! ```text
//! ca.pem, ca.key               the authority; the key signs new certificates and never leaves this folder
//! server.pem, server.key       the server, with the names under which clients dial it
//! clients.toml                 who may take part
//! clients/NAME/                what a client gets: ca.pem, cert.pem, key.pem
//! ```

use crate::allow::{AllowError, AllowList, Listed};
use fedtvd_core::profile::ClientId;
use fedtvd_run::digest::sha256;
use fedtvd_run::files::{FileError, doing, read_text, sync, write};
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use thiserror::Error;
use time::{Duration, OffsetDateTime};
use tokio_rustls::rustls::pki_types::ServerName;

/// The folder of an authority.
#[derive(Clone, Debug)]
pub struct Certs {
    folder: PathBuf,
}

/// Why certificates cannot be made.
#[derive(Debug, Error)]
pub enum CertsError {
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
    #[error("{0} already holds an authority; its clients would no longer be trusted by a new one")]
    Taken(String),
    /// There is none.
    #[error("{0} holds no authority; make one by \"fedtvd certs init\"")]
    None(String),
    /// The name is in use.
    #[error("{0} has a valid certificate; revoke it first by \"fedtvd certs revoke {0}\"")]
    Named(String),
    /// The number is in use.
    #[error("number {id} is {name}'s; choose another")]
    Numbered {
        /// The number.
        id: ClientId,
        /// Whose it is.
        name: String,
    },
    /// No such client.
    #[error("there is no valid certificate of {0}; \"fedtvd certs list\" shows all")]
    Nobody(String),
    /// A host that nobody can dial.
    #[error(
        "\"{0}\" is no host name and no address; write it without a port, as fed.example.org or 192.0.2.7"
    )]
    Host(String),
    /// A name that is no file name.
    #[error(
        "a client's name has letters, digits, - _ and . only, and begins with none of the last; not \"{0}\""
    )]
    Name(String),
}

/// What a new certificate is to be.
#[derive(Clone, Debug)]
pub struct Wish {
    /// The client's name.
    pub name: String,
    /// Its number; the next free one, or that of a revoked certificate of the same name, unless given.
    pub id: Option<ClientId>,
    /// The most training samples that it may claim.
    pub max_size: u64,
    /// How long it is valid.
    pub days: i64,
}

impl Certs {
    /// The authority in this folder.
    pub fn open(folder: &Path) -> Result<Self, CertsError> {
        let certs = Self { folder: folder.to_owned() };
        if !certs.file("ca.pem").is_file() {
            return Err(CertsError::None(folder.display().to_string()));
        }
        Ok(certs)
    }

    /// A new authority and its server's certificate, for clients that dial these hosts.
    pub fn init(folder: &Path, hosts: &[String], days: i64) -> Result<Self, CertsError> {
        let certs = Self { folder: folder.to_owned() };
        if certs.file("ca.key").exists() {
            return Err(CertsError::Taken(folder.display().to_string()));
        }
        let (key, server_key) = (KeyPair::generate()?, KeyPair::generate()?);
        let root = authority(days)?.self_signed(&key)?;
        let server = server(hosts, days, &server_key, &key)?;
        std::fs::create_dir_all(certs.file("clients")).map_err(doing("making", folder))?;
        write_new(&certs.file("server.key"), &server_key.serialize_pem(), true)?;
        write_new(&certs.file("server.pem"), &server.pem(), false)?;
        if !certs.list_path().exists() {
            AllowList::default().write(&certs.list_path())?;
        }
        write_new(&certs.file("ca.pem"), &root.pem(), false)?;
        // With the authority's key the folder is complete.
        write_new(&certs.file("ca.key"), &key.serialize_pem(), true)?;
        sync(folder)?;
        Ok(certs)
    }

    /// Makes the server's certificate anew, for clients that dial these hosts; what clients have stays good.
    pub fn renew_server(&self, hosts: &[String], days: i64) -> Result<(), CertsError> {
        let server = server(hosts, days, &self.key("server.key")?, &self.key("ca.key")?)?;
        Ok(write(&self.file("server.pem"), server.pem().as_bytes())?)
    }

    /// Issues a certificate; the folder that the client gets.
    pub fn issue(&self, wish: &Wish) -> Result<(PathBuf, Listed), CertsError> {
        let name = &wish.name;
        let fit = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || !name.chars().all(fit) || name.starts_with(['-', '_', '.']) {
            return Err(CertsError::Name(name.clone()));
        }
        let mut list = self.list()?;
        if list.named(name).is_some() {
            return Err(CertsError::Named(name.clone()));
        }
        let own = list.clients.iter().find(|entry| entry.name == *name).map(|entry| entry.id);
        let next = list.clients.iter().map(|entry| entry.id.saturating_add(1)).max().unwrap_or(0);
        let id = wish.id.or(own).unwrap_or(next);
        if let Some(other) = list.clients.iter().find(|entry| entry.id == id && entry.name != *name) {
            return Err(CertsError::Numbered { id, name: other.name.clone() });
        }
        let authority_pem = read_text(&self.file("ca.pem"))?;
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name.push(DnType::CommonName, name.as_str());
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let expires = valid(&mut params, wish.days);
        let certificate = params.signed_by(&key, &Issuer::new(authority(1)?, self.key("ca.key")?))?;
        let folder = self.folder.join("clients").join(name);
        std::fs::create_dir_all(&folder).map_err(doing("making", &folder))?;
        write_new(&folder.join("key.pem"), &key.serialize_pem(), true)?;
        write_new(&folder.join("cert.pem"), &certificate.pem(), false)?;
        write_new(&folder.join("ca.pem"), &authority_pem, false)?;
        let entry = Listed {
            name: name.clone(),
            id,
            fingerprint: sha256(certificate.der()),
            max_size: wish.max_size,
            expires: expires.date().to_string(),
            revoked: false,
        };
        list.clients.push(entry.clone());
        list.write(&self.list_path())?;
        Ok((folder, entry))
    }

    /// Revokes a client's certificate: a running server knows at once.
    pub fn revoke(&self, name: &str) -> Result<Listed, CertsError> {
        let mut list = self.list()?;
        let entry = list.clients.iter_mut().find(|entry| entry.name == name && !entry.revoked);
        let entry = entry.ok_or_else(|| CertsError::Nobody(name.to_owned()))?;
        entry.revoked = true;
        let revoked = entry.clone();
        list.write(&self.list_path())?;
        Ok(revoked)
    }

    /// Who may take part.
    pub fn list(&self) -> Result<AllowList, CertsError> {
        Ok(AllowList::read(&self.list_path())?)
    }

    /// Where that stands.
    pub fn list_path(&self) -> PathBuf {
        self.file("clients.toml")
    }

    fn key(&self, name: &str) -> Result<KeyPair, CertsError> {
        Ok(KeyPair::from_pem(&read_text(&self.file(name))?)?)
    }

    /// One of the folder's files.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

/// What the authority's certificate says. Where it signs others, only its name counts.
fn authority(days: i64) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name.push(DnType::CommonName, "fedtvd federation");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    valid(&mut params, days);
    Ok(params)
}

/// A server's certificate for clients that dial these hosts. It is also the operator's, who may ask for the status.
fn server(
    hosts: &[String],
    days: i64,
    own: &KeyPair,
    authority_key: &KeyPair,
) -> Result<Certificate, CertsError> {
    if let Some(host) = hosts.iter().find(|host| ServerName::try_from(host.as_str()).is_err()) {
        return Err(CertsError::Host(host.clone()));
    }
    let mut names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
    names.extend(hosts.iter().filter(|host| !names.contains(host)).cloned().collect::<Vec<_>>());
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name.push(DnType::CommonName, "fedtvd server");
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    valid(&mut params, days);
    Ok(params.signed_by(own, &Issuer::new(authority(1)?, authority_key))?)
}

/// Valid from yesterday, for clocks that go behind, for so many days; until when. Of less than 0 days it is expired.
fn valid(params: &mut CertificateParams, days: i64) -> OffsetDateTime {
    let now = OffsetDateTime::now_utc();
    params.not_before = now + Duration::days((days - 1).min(-1));
    params.not_after = now + Duration::days(days);
    params.not_after
}

/// Writes a file; a private key is for its owner's eyes only.
fn write_new(path: &Path, text: &str, private: bool) -> Result<(), FileError> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    if private {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    #[cfg(not(unix))]
    let _ = private;
    let written = options.open(path).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    written.map_err(doing("writing", path))
}
