//! Atomic file writes: a file exists completely or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A file operation that failed.
#[derive(Debug, Error)]
#[error("{action} {}: {error}", .path.display())]
pub struct FileError {
    /// The operation, such as "writing".
    pub action: &'static str,
    /// The file.
    pub path: PathBuf,
    /// The system's error.
    pub error: io::Error,
}

/// Adds the operation and the file to an error.
pub fn doing(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> FileError {
    let path = path.to_owned();
    move |error| FileError { action, path, error }
}

/// Writes a file under a temporary name, syncs it, and renames it into place.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let partial = path.with_extension("partial");
    let written = write_through(&partial, bytes).and_then(|()| fs::rename(&partial, path));
    if written.is_err() {
        // A partial file is useless; failing to remove it is not worth reporting.
        let _ = fs::remove_file(&partial);
    }
    written.map_err(doing("writing", path))?;
    path.parent().map_or(Ok(()), sync)
}

/// Writes and syncs a file.
pub fn write_through(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Syncs a file.
pub(crate) fn sync_file(path: &Path) -> Result<(), FileError> {
    let file = OpenOptions::new().write(true).open(path);
    file.and_then(|file| file.sync_all()).map_err(doing("syncing", path))
}

/// Syncs a directory's entries, if the system can.
pub fn sync(directory: &Path) -> Result<(), FileError> {
    match File::open(directory).and_then(|directory| directory.sync_all()) {
        // Some file systems, and Windows, cannot sync a directory.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && cfg!(windows) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        synced => synced.map_err(doing("syncing", directory)),
    }
}

/// Reads a text file.
pub fn read_text(path: &Path) -> Result<String, FileError> {
    fs::read_to_string(path).map_err(doing("reading", path))
}
