//! The list of clients that may take part: `clients.toml`, one entry per certificate.
//!
//! A client is identified by its certificate's fingerprint and by nothing that it claims. A client may have several
//! valid certificates, with the same name and number, so that one can be renewed before it expires. A revoked entry stays
//! in the list, so that its number is not given to another client.

use crate::identity::same_owner::replace;
use crate::utc;
use fedtvd_core::round::ClientId;
use fedtvd_run::directory::{FileError, files};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use thiserror::Error;
use time::OffsetDateTime;

/// One certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listed {
    /// The client's name.
    pub name: String,
    /// Its number in runs.
    pub id: ClientId,
    /// The certificate's serial number in hexadecimal; `None` in lists that were written before entries had one.
    #[serde(default)]
    pub serial: Option<String>,
    /// SHA-256 of its certificate.
    pub fingerprint: String,
    /// Maximum number of training samples that it may claim.
    pub max_size: u64,
    /// The last moment at which the certificate is valid, as YYYY-MM-DDThh:mm:ssZ; or the last day, as YYYY-MM-DD.
    pub expires: String,
    /// Whether it may no longer take part.
    #[serde(default)]
    pub revoked: bool,
}

impl Listed {
    /// Whether the client may take part with it: neither revoked nor expired.
    pub fn valid(&self) -> bool {
        !self.revoked && !self.expired()
    }

    /// Whether it has expired.
    pub fn expired(&self) -> bool {
        let now = utc::seconds(OffsetDateTime::now_utc());
        // Moments in this form sort as text, and so do their first characters, the dates.
        self.expires.as_str() < now.get(..self.expires.len()).unwrap_or(&now)
    }
}

/// All certificates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AllowList {
    /// One entry per certificate.
    #[serde(default, rename = "client")]
    pub clients: Vec<Listed>,
}

/// Why the list cannot be used.
#[derive(Debug, Error)]
pub enum AllowError {
    /// The file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// Its content is invalid.
    #[error("{path}: {why}")]
    Text {
        /// The file.
        path: String,
        /// What is wrong.
        why: String,
    },
}

impl AllowList {
    /// Reads the list.
    pub fn read(path: &Path) -> Result<Self, AllowError> {
        let wrong = |why: String| AllowError::Text { path: path.display().to_string(), why };
        let list: Self =
            toml::from_str(&files::read_text(path)?).map_err(|error| wrong(error.to_string()))?;
        if let Some((entry, other)) = list.conflict() {
            return Err(wrong(format!(
                "{} (number {}) and {} (number {}) must be different certificates, of one client or of clients that \
                 differ in name and number",
                other.name, other.id, entry.name, entry.id
            )));
        }
        Ok(list)
    }

    /// An entry that repeats a certificate, or a name or number of another client, and the earlier entry.
    fn conflict(&self) -> Option<(&Listed, &Listed)> {
        let (mut fingerprints, mut serials) = (BTreeMap::new(), BTreeMap::new());
        let (mut names, mut ids) = (BTreeMap::new(), BTreeMap::new());
        self.clients.iter().find_map(|entry| {
            let fingerprint = fingerprints.insert(&entry.fingerprint, entry);
            let serial = entry.serial.as_ref().and_then(|serial| serials.insert(serial, entry));
            let (mut name, mut id) = (None, None);
            if entry.valid() {
                name = names.insert(&entry.name, entry).filter(|other| other.id != entry.id);
                id = ids.insert(entry.id, entry).filter(|other| other.name != entry.name);
            }
            Some((entry, fingerprint.or(serial).or(name).or(id)?))
        })
    }

    /// Writes the list. Whoever could read it before still can: the server may run as another user.
    pub fn write(&self, path: &Path) -> Result<(), FileError> {
        let text = toml::to_string(self).expect("a list of clients is plain data");
        let text = format!("# Who may take part; a running server reads changes at once.\n\n{text}");
        replace(path, text.as_bytes())
    }

    /// The entry of a certificate.
    pub fn find(&self, fingerprint: &str) -> Option<&Listed> {
        self.clients.iter().find(|entry| entry.fingerprint == fingerprint)
    }

    /// The newest valid entry of this name.
    pub fn named(&self, name: &str) -> Option<&Listed> {
        self.clients.iter().rev().find(|entry| entry.name == name && entry.valid())
    }

    /// The newest entry of this name, a valid one if there is any.
    pub fn newest(&self, name: &str) -> Option<&Listed> {
        let revoked = || self.clients.iter().rev().find(|entry| entry.name == name);
        self.named(name).or_else(revoked)
    }

    /// The number of the client of this name, even if its certificate was revoked: a run may have begun with it.
    pub fn number(&self, name: &str) -> Option<ClientId> {
        self.newest(name).map(|entry| entry.id)
    }

    /// How many certificates are valid, expired and revoked, as a sentence.
    pub fn summary(&self) -> String {
        let revoked = self.clients.iter().filter(|entry| entry.revoked).count();
        let valid = self.clients.iter().filter(|entry| entry.valid()).count();
        let expired = self.clients.len() - revoked - valid;
        format!("the list of clients has {valid} valid, {expired} expired and {revoked} revoked certificates")
    }

    /// Numbers of clients that may take part.
    pub fn valid(&self) -> BTreeSet<ClientId> {
        self.clients.iter().filter(|entry| entry.valid()).map(|entry| entry.id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn entry(name: &str, id: ClientId) -> Listed {
        let fingerprint = format!("{name}-{id}");
        Listed {
            name: name.into(),
            id,
            serial: None,
            fingerprint,
            max_size: 10,
            expires: "9999-01-01".into(),
            revoked: false,
        }
    }

    #[test]
    fn a_client_with_an_expired_certificate_is_not_waited_for_and_may_get_a_new_one() {
        let mut list = AllowList { clients: vec![entry("a", 0), entry("b", 1)] };
        list.clients[1].expires = "2020-02-29".into();
        assert_eq!((list.valid(), list.named("b")), ([0].into(), None));
        list.clients[1].expires = OffsetDateTime::now_utc().date().to_string();
        assert_eq!(list.valid(), [0, 1].into());
    }

    #[test]
    fn a_revoked_client_keeps_its_number_until_another_certificate_has_its_name() {
        let mut list = AllowList { clients: vec![entry("a", 0), entry("b", 1)] };
        list.clients[1].revoked = true;
        assert_eq!((list.number("b"), list.number("c")), (Some(1), None));
        assert_eq!(list.valid(), [0].into());
        list.clients.push(entry("b", 4));
        assert_eq!(list.number("b"), Some(4));
        assert_eq!(list.valid(), [0, 4].into());
    }

    #[test]
    fn only_certificates_of_one_client_may_share_a_number() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clients.toml");
        let read = |clients| {
            AllowList { clients }.write(&path).unwrap();
            AllowList::read(&path).map_err(|error| error.to_string())
        };
        let renewed = Listed { fingerprint: "renewed".into(), ..entry("a", 3) };
        assert_eq!(read(vec![entry("a", 3), renewed.clone()]).unwrap().valid(), [3].into());
        for other in [entry("b", 3), Listed { id: 4, ..renewed.clone() }, entry("a", 3)] {
            let names = format!("a (number 3) and {} (number {})", other.name, other.id);
            let error = read(vec![entry("a", 3), other]).unwrap_err();
            assert!(error.contains(&names), "{error}");
        }
        let numbered = |entry| Listed { serial: Some("5f".into()), ..entry };
        assert!(read(vec![numbered(entry("a", 3)), numbered(renewed)]).is_err());
    }

    #[test]
    fn a_certificate_expires_to_the_second_and_one_of_an_old_list_to_the_day() {
        let now = OffsetDateTime::now_utc();
        let expired = |expires: String| Listed { expires, ..entry("a", 0) }.expired();
        assert!(expired(utc::seconds(now - Duration::from_secs(2))));
        assert!(!expired(utc::seconds(now + Duration::from_secs(60))));
        assert!(expired((now - Duration::from_secs(86_400)).date().to_string()));
        assert!(!expired((now + Duration::from_secs(86_400)).date().to_string()));
        let text =
            "[[client]]\nname = \"a\"\nid = 0\nfingerprint = \"f\"\nmax_size = 5\nexpires = \"2999-12-31\"\n";
        let list: AllowList = toml::from_str(text).unwrap();
        assert!(list.clients[0].serial.is_none() && list.clients[0].valid());
    }
}
