//! Clients' certificates: issued or signed, renewed and revoked, each change of their list under one lock.

use crate::identity::authority::{authority_params, set_validity};
use crate::identity::certificate_subject::Subject;
use crate::identity::client_name::check_name;
use crate::identity::list_lock::ListLock;
use crate::identity::{AllowList, Authority, AuthorityError, Listed, SigningRequest, tls};
use crate::utc;
use data_encoding::HEXLOWER;
use fedtvd_core::round::ClientId;
use fedtvd_run::directory::files::{make_folder, read_text, write};
use fedtvd_run::directory::sha256;
use rcgen::{
    CertificateParams, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair, PublicKeyData, SerialNumber,
};
use std::path::PathBuf;

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
    /// Issues a client certificate with a new key; returns the folder to give to the client. Earlier certificates of the
    /// client stay valid until they expire or are revoked.
    pub fn issue(&self, request: &CertificateRequest) -> Result<(PathBuf, Listed), AuthorityError> {
        check_name(&request.name)?;
        let _lock = ListLock::acquire(self.folder())?;
        let key = KeyPair::generate()?;
        self.certify(request, &key, Some(&key.serialize_pem()))
    }

    /// Signs a client's request, for a key that this authority never sees; returns the folder to give to the client.
    pub fn sign(
        &self,
        signing: &SigningRequest,
        id: Option<ClientId>,
        max_size: u64,
        days: i64,
    ) -> Result<(PathBuf, Listed), AuthorityError> {
        let _lock = ListLock::acquire(self.folder())?;
        self.check_key(signing)?;
        let request = CertificateRequest { name: signing.name().to_owned(), id, max_size, days };
        self.certify(&request, signing.key(), None)
    }

    /// Refuses a request with the public key of another client's valid certificate: whoever has the key could be both.
    pub fn check_key(&self, signing: &SigningRequest) -> Result<(), AuthorityError> {
        let list = self.list()?;
        let others = list.clients.iter().filter(|entry| entry.name != signing.name() && entry.valid());
        for other in others {
            let same_key = ["signed", "clients"].iter().any(|folder| {
                let path = self.file(folder).join(&other.name).join("cert.pem");
                Subject::read(&path).is_some_and(|subject| subject.key_hash == signing.key_hash())
            });
            if same_key {
                let (name, other) = (signing.name().to_owned(), other.name.clone());
                return Err(AuthorityError::KeyInUse { name, other });
            }
        }
        Ok(())
    }

    /// Writes a certificate, and the private key if it was made here, and adds the certificate to the list. The caller
    /// holds the lock.
    fn certify(
        &self,
        request: &CertificateRequest,
        key: &impl PublicKeyData,
        private: Option<&str>,
    ) -> Result<(PathBuf, Listed), AuthorityError> {
        let mut list = self.list()?;
        let id = number(&list, &request.name, request.id)?;
        let mut serial = [0; 16];
        tls::provider().secure_random.fill(&mut serial).map_err(|_| AuthorityError::Random)?;
        // A positive number of 16 bytes.
        serial[0] = serial[0] & 0x3f | 0x40;
        let mut params = CertificateParams::new(Vec::new())?;
        params.serial_number = Some(SerialNumber::from_slice(&serial));
        params.distinguished_name.push(DnType::CommonName, request.name.as_str());
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let expires = set_validity(&mut params, request.days);
        let certificate = params.signed_by(key, &Issuer::new(authority_params(1)?, self.key("ca.key")?))?;
        let folder = self.file(if private.is_some() { "clients" } else { "signed" }).join(&request.name);
        make_folder(&folder)?;
        if let Some(private) = private {
            write(&folder.join("key.pem"), private.as_bytes())?;
        }
        write(&folder.join("ca.pem"), read_text(&self.file("ca.pem"))?.as_bytes())?;
        write(&folder.join("cert.pem"), certificate.pem().as_bytes())?;
        let listed = Listed {
            name: request.name.clone(),
            id,
            serial: Some(HEXLOWER.encode(&serial)),
            fingerprint: sha256(certificate.der()),
            max_size: request.max_size,
            expires: utc::seconds(expires),
            revoked: false,
        };
        list.clients.push(listed.clone());
        list.write(&self.list_path())?;
        Ok((folder, listed))
    }

    /// Revokes all certificates of a client; a running server refuses them from then on.
    pub fn revoke(&self, name: &str) -> Result<Vec<Listed>, AuthorityError> {
        let revoked = self.revoke_all(|entry| entry.name == name)?;
        if revoked.is_empty() { Err(AuthorityError::UnknownClient(name.to_owned())) } else { Ok(revoked) }
    }

    /// Revokes the certificate with this serial number, in hexadecimal.
    pub fn revoke_serial(&self, serial: &str) -> Result<Vec<Listed>, AuthorityError> {
        // Other programs print colons, upper case and leading zeros.
        let digits = serial.replace(':', "").to_lowercase();
        let digits = digits.trim_start_matches('0');
        let revoked = self.revoke_all(|entry| entry.serial.as_deref() == Some(digits))?;
        if revoked.is_empty() { Err(AuthorityError::UnknownSerial(serial.to_owned())) } else { Ok(revoked) }
    }

    fn revoke_all(&self, wanted: impl Fn(&Listed) -> bool) -> Result<Vec<Listed>, AuthorityError> {
        let _lock = ListLock::acquire(self.folder())?;
        let mut list = self.list()?;
        let mut revoked = Vec::new();
        for entry in list.clients.iter_mut().filter(|entry| !entry.revoked && wanted(entry)) {
            entry.revoked = true;
            revoked.push(entry.clone());
        }
        if !revoked.is_empty() {
            list.write(&self.list_path())?;
        }
        Ok(revoked)
    }
}

/// The number of a client's next certificate.
fn number(list: &AllowList, name: &str, wanted: Option<ClientId>) -> Result<ClientId, AuthorityError> {
    let next = list.clients.iter().map(|entry| entry.id.saturating_add(1)).max().unwrap_or(0);
    let id = wanted.or(list.number(name)).unwrap_or(next);
    if let Some(other) = list.clients.iter().find(|entry| entry.id == id && entry.name != name) {
        return Err(AuthorityError::NumberInUse { id, name: other.name.clone() });
    }
    match list.named(name) {
        Some(valid) if valid.id != id => {
            Err(AuthorityError::OtherNumber { name: name.to_owned(), id: valid.id })
        }
        _ => Ok(id),
    }
}
