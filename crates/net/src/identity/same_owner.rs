//! Replaces files that another user may have to read: an administrator changes the list of clients or renews a certificate,
//! and the server, which runs as a user of its own, reads the new file.

use fedtvd_run::directory::files::{doing, sync, write_through};
use fedtvd_run::directory::{FileError, disk};
use std::fs::{self, Metadata};
use std::io;
use std::path::Path;

/// Writes a file under a temporary name and renames it into place, with owner, group and mode of the file that it
/// replaces. Fails if the owner cannot be kept: a file that its reader cannot read is worse than none.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let partial = path.with_extension("partial");
    let before = fs::metadata(path).ok();
    let written = write_through(&partial, bytes)
        .and_then(|()| before.map_or(Ok(()), |before| give(&partial, &before)))
        .and_then(|()| disk::rename(&partial, path));
    if written.is_err() {
        // A partial file is useless; failing to remove it is not worth reporting.
        let _ = disk::remove_file(&partial);
    }
    written.map_err(doing("writing", path))?;
    path.parent().map_or(Ok(()), sync)
}

/// Gives a file to the owner and group of another one, with the same mode.
#[cfg(unix)]
fn give(path: &Path, before: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt as _, chown};
    let now = fs::metadata(path)?;
    if now.uid() != before.uid() {
        chown(path, Some(before.uid()), Some(before.gid())).map_err(|error| {
            let why = format!("it belongs to user {}, who could not read it then: {error}", before.uid());
            io::Error::new(error.kind(), why)
        })?;
    } else if now.gid() != before.gid() && chown(path, None, Some(before.gid())).is_err() {
        // The mode is for another group: only the owner can read it.
        return Ok(());
    }
    fs::set_permissions(path, before.permissions())
}

#[cfg(not(unix))]
fn give(_: &Path, _: &Metadata) -> io::Result<()> {
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};

    #[test]
    fn a_replaced_file_keeps_its_mode_and_if_root_replaces_it_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clients.toml");
        replace(&path, b"one").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        // Only root can give a file away.
        let given = chown(&path, Some(1234), Some(4321)).is_ok();
        let owner =
            |path: &Path| fs::metadata(path).map(|data| (data.uid(), data.gid(), data.mode())).unwrap();
        let before = owner(&path);
        assert!(!given || before.0 == 1234);
        replace(&path, b"two").unwrap();
        assert_eq!((owner(&path), fs::read(&path).unwrap()), (before, b"two".to_vec()));
    }
}
