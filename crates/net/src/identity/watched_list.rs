//! The list of clients of a running server: read again when its file changes, and every second while it cannot be read.

use crate::identity::file_version::{Change, FileVersion, Stamp, stamp};
use crate::identity::{AllowError, AllowList};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A list that is read again when its file changes.
#[derive(Debug)]
pub(crate) struct Watched {
    path: PathBuf,
    known: Mutex<FileVersion<Stamp, AllowList>>,
}

impl Watched {
    /// Starts with the list as it is.
    pub(crate) fn new(path: PathBuf) -> Result<Self, AllowError> {
        let stamp = stamp(&path);
        let list = Arc::new(AllowList::read(&path)?);
        Ok(Self { path, known: Mutex::new(FileVersion::new(stamp, list)) })
    }

    /// The current list. If the file changed and cannot be read, the previous list stays in force. A problem is returned
    /// once, and so is its end.
    pub(crate) fn current(&self) -> (Arc<AllowList>, Option<Change>) {
        let now = stamp(&self.path);
        let mut known = self.known();
        let change = known.refresh(now, Instant::now(), |before| self.read(before));
        (known.value(), change)
    }

    /// Reads the list even if its file seems unchanged. If it cannot be read, the previous list stays in force and the
    /// reason is returned.
    pub(crate) fn reload(&self) -> Result<Arc<AllowList>, String> {
        let now = stamp(&self.path);
        let mut known = self.known();
        known.reload(now, Instant::now(), |before| self.read(before));
        known.unusable().map_or_else(|| Ok(known.value()), |why| Err(why.to_owned()))
    }

    /// Why the list in force is not that of the file, if it is not.
    pub(crate) fn unreadable(&self) -> Option<String> {
        self.known().unusable().map(str::to_owned)
    }

    fn known(&self) -> MutexGuard<'_, FileVersion<Stamp, AllowList>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, before: &AllowList) -> Result<Arc<AllowList>, AllowError> {
        let list = AllowList::read(&self.path)?;
        // Somebody is writing it, or emptied it by mistake: revoked clients stay listed.
        if list.clients.is_empty() && !before.clients.is_empty() {
            let (path, why) = (self.path.display().to_string(), "it no longer lists any clients".to_owned());
            return Err(AllowError::Text { path, why });
        }
        Ok(Arc::new(list))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Listed;

    fn entry(name: &str) -> Listed {
        Listed {
            name: name.into(),
            id: u32::from(name.as_bytes()[0]),
            serial: None,
            fingerprint: name.into(),
            max_size: 10,
            expires: "9999-01-01".into(),
            revoked: false,
        }
    }

    #[test]
    fn a_change_is_seen_at_once_and_a_broken_file_leaves_the_last_list_in_force() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clients.toml");
        let mut list = AllowList { clients: vec![entry("a"), entry("b")] };
        list.write(&path).unwrap();
        let watched = Watched::new(path.clone()).unwrap();
        list.clients[1].revoked = true;
        list.write(&path).unwrap();
        assert!(watched.current().0.find("b").unwrap().revoked);
        std::fs::write(&path, "client = 7").unwrap();
        let (current, change) = watched.current();
        assert!(current.find("b").unwrap().revoked && matches!(change, Some(Change::Unusable(_))));
        assert!(watched.current().1.is_none() && watched.unreadable().is_some());
        // An editor that truncates before it writes.
        std::fs::write(&path, "").unwrap();
        let (current, change) = watched.current();
        assert!(current.find("a").is_some() && change.is_some());
        list.write(&path).unwrap();
        assert_eq!((watched.current().1, watched.unreadable()), (Some(Change::Usable), None));
    }
}
