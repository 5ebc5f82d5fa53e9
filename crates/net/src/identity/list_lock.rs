//! The lock around every change of an authority's folder: what was read is still true when the change is written.

use fedtvd_run::directory::FileError;
use fedtvd_run::directory::files::{doing, private};
use std::fs::File;
use std::path::Path;

/// An exclusive lock on an authority's folder, also between processes; dropping it releases it.
#[derive(Debug)]
pub(crate) struct ListLock {
    _file: File,
}

impl ListLock {
    /// Waits until no other process changes the folder.
    pub(crate) fn acquire(folder: &Path) -> Result<Self, FileError> {
        // A file of its own, because clients.toml is replaced by every change.
        let path = folder.join(".lock");
        let opened = private().create(true).truncate(false).write(true).open(&path);
        let file = opened.map_err(doing("opening", &path))?;
        // The system releases the lock with the process, however it ends.
        file.lock().map_err(doing("locking", &path))?;
        Ok(Self { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_locked_until_the_lock_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let lock = ListLock::acquire(folder.path()).unwrap();
        let other = File::open(folder.path().join(".lock")).unwrap();
        assert!(other.try_lock().is_err());
        drop(lock);
        other.try_lock().unwrap();
    }
}
