//! Files that are there completely or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// What could not be done with which file.
#[derive(Debug, Error)]
#[error("{action} {}: {error}", .path.display())]
pub struct FileError {
    /// Such as "writing".
    pub action: &'static str,
    /// The file.
    pub path: PathBuf,
    /// What the system says.
    pub error: io::Error,
}

/// Adds to an error what was being done with which file.
pub fn doing(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> FileError {
    let path = path.to_owned();
    move |error| FileError { action, path, error }
}

/// Writes a file: beside its place, to the disk, then into its place.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let beside = path.with_extension("partial");
    let written = write_through(&beside, bytes).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        // Half a file helps nobody; that it cannot be removed either is not news.
        let _ = fs::remove_file(&beside);
    }
    written.map_err(doing("writing", path))?;
    path.parent().map_or(Ok(()), sync)
}

/// Writes a file to the disk.
pub fn write_through(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Makes a file that was written durable.
pub(crate) fn sync_file(path: &Path) -> Result<(), FileError> {
    let file = OpenOptions::new().write(true).open(path);
    file.and_then(|file| file.sync_all()).map_err(doing("syncing", path))
}

/// Makes a directory's entries durable, where the system can.
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
