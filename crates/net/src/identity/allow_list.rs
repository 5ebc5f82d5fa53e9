//! The list of clients that may take part: `clients.toml`, one entry per certificate, read again when it changes.
//!
//! A client is identified by its certificate's fingerprint and by nothing that it claims. A revoked entry stays in the
//! list, so that its number is not given to another client.

use fedtvd_core::round::ClientId;
use fedtvd_run::directory::{FileError, files};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;
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
    /// SHA-256 of its certificate.
    pub fingerprint: String,
    /// Maximum number of training samples that it may claim.
    pub max_size: u64,
    /// The last day on which the certificate is valid, as YYYY-MM-DD.
    pub expires: String,
    /// Whether it may no longer take part.
    #[serde(default)]
    pub revoked: bool,
}

impl Listed {
    /// Whether the client may take part: neither revoked nor expired, to the day.
    pub fn valid(&self) -> bool {
        // Dates in this form sort as text.
        !self.revoked && self.expires >= OffsetDateTime::now_utc().date().to_string()
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
        for (place, entry) in list.clients.iter().enumerate() {
            let same = |other: &&Listed| {
                other.fingerprint == entry.fingerprint
                    || entry.valid() && other.valid() && (other.id == entry.id || other.name == entry.name)
            };
            if let Some(other) = list.clients[..place].iter().find(same) {
                return Err(wrong(format!(
                    "{} (number {}) and {} (number {}) must differ in certificate, name and number",
                    other.name, other.id, entry.name, entry.id
                )));
            }
        }
        Ok(list)
    }

    /// Writes the list.
    pub fn write(&self, path: &Path) -> Result<(), FileError> {
        let text = toml::to_string(self).expect("a list of clients is plain data");
        let text = format!("# Who may take part; a running server reads changes at once.\n\n{text}");
        files::write(path, text.as_bytes())
    }

    /// The entry of a certificate.
    pub fn find(&self, fingerprint: &str) -> Option<&Listed> {
        self.clients.iter().find(|entry| entry.fingerprint == fingerprint)
    }

    /// The valid entry of this name.
    pub fn named(&self, name: &str) -> Option<&Listed> {
        self.clients.iter().find(|entry| entry.name == name && entry.valid())
    }

    /// The number of the client of this name, even if its certificate was revoked: a run may have begun with it.
    pub fn number(&self, name: &str) -> Option<ClientId> {
        let revoked = || self.clients.iter().rev().find(|entry| entry.name == name);
        self.named(name).or_else(revoked).map(|entry| entry.id)
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

/// What distinguishes one version of a file from the next.
type Stamp = (Option<SystemTime>, u64, u64);

/// A list that is read again when its file changes.
#[derive(Debug)]
pub(crate) struct Watched {
    path: PathBuf,
    known: Mutex<(Option<Stamp>, Arc<AllowList>)>,
}

impl Watched {
    /// Starts with the list as it is.
    pub(crate) fn new(path: PathBuf) -> Result<Self, AllowError> {
        let stamp = stamp(&path);
        let list = Arc::new(AllowList::read(&path)?);
        Ok(Self { path, known: Mutex::new((stamp, list)) })
    }

    /// The current list. If the file changed and cannot be read, the previous list stays in force and the error is
    /// returned once.
    pub(crate) fn current(&self) -> (Arc<AllowList>, Option<AllowError>) {
        let now = stamp(&self.path);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut error = None;
        if known.0 != now {
            known.0 = now;
            match self.read(&known.1) {
                Ok(list) => known.1 = Arc::new(list),
                Err(unreadable) => error = Some(unreadable),
            }
        }
        (Arc::clone(&known.1), error)
    }

    /// Reads the list even if its file seems unchanged. If it cannot be read, the previous list stays in force.
    pub(crate) fn reload(&self) -> Result<Arc<AllowList>, AllowError> {
        let now = stamp(&self.path);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let list = Arc::new(self.read(&known.1)?);
        *known = (now, Arc::clone(&list));
        Ok(list)
    }

    fn read(&self, before: &AllowList) -> Result<AllowList, AllowError> {
        let list = AllowList::read(&self.path)?;
        // Somebody is writing it, or emptied it by mistake: revoked clients stay listed.
        if list.clients.is_empty() && !before.clients.is_empty() {
            let (path, why) = (self.path.display().to_string(), "it no longer lists any clients".to_owned());
            return Err(AllowError::Text { path, why });
        }
        Ok(list)
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let data = std::fs::metadata(path).ok()?;
    #[cfg(unix)]
    let number = std::os::unix::fs::MetadataExt::ino(&data);
    #[cfg(not(unix))]
    let number = 0;
    Some((data.modified().ok(), data.len(), number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, id: ClientId) -> Listed {
        let fingerprint = format!("{name}-{id}");
        Listed {
            name: name.into(),
            id,
            fingerprint,
            max_size: 10,
            expires: "9999-01-01".into(),
            revoked: false,
        }
    }

    #[test]
    fn a_change_is_seen_at_once_and_a_broken_file_leaves_the_last_list_in_force() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clients.toml");
        let mut list = AllowList { clients: vec![entry("a", 0), entry("b", 1)] };
        list.write(&path).unwrap();
        let watched = Watched::new(path.clone()).unwrap();
        list.clients[1].revoked = true;
        list.write(&path).unwrap();
        assert!(watched.current().0.find("b-1").unwrap().revoked);
        std::fs::write(&path, "client = 7").unwrap();
        let (current, error) = watched.current();
        assert!(current.find("b-1").unwrap().revoked && error.is_some());
        assert!(watched.current().1.is_none());
        // An editor that truncates before it writes.
        std::fs::write(&path, "").unwrap();
        let (current, error) = watched.current();
        assert!(current.find("a-0").is_some() && error.is_some());
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
    fn two_clients_with_the_same_number_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clients.toml");
        AllowList { clients: vec![entry("a", 3), entry("b", 3)] }.write(&path).unwrap();
        let error = AllowList::read(&path).unwrap_err().to_string();
        assert!(error.contains("a (number 3) and b (number 3)"), "{error}");
    }
}
