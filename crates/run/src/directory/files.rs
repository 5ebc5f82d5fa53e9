//! Atomic file writes: a file exists completely or not at all. New files and folders can be read by their owner only,
//! whatever the umask is: models, updates and keys are nobody else's business.

use crate::directory::disk;
use std::fs::{self, File, OpenOptions};
use std::io;
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
    let written = write_through(&partial, bytes).and_then(|()| disk::rename(&partial, path));
    if written.is_err() {
        // A partial file is useless; failing to remove it is not worth reporting.
        let _ = disk::remove_file(&partial);
    }
    written.map_err(doing("writing", path))?;
    path.parent().map_or(Ok(()), sync)
}

/// Writes and syncs a file.
pub fn write_through(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let file = create(path)?;
    disk::write(&file, path, bytes)?;
    disk::sync_file(&file, path)
}

/// Options to open files; only the owner can read those that it creates.
pub fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.clone()
}

/// Creates an empty file that only its owner can read, or empties an existing one.
pub fn create(path: &Path) -> io::Result<File> {
    disk::open(private().write(true).create(true).truncate(true), path)
}

/// Makes a folder that only its owner can enter, unless it exists; parents that do not exist are ordinary folders. It
/// survives a crash of the machine.
pub fn make_folder(path: &Path) -> Result<(), FileError> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    make_with(&builder, path)
}

fn make_with(builder: &fs::DirBuilder, path: &Path) -> Result<(), FileError> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(parent) = parent.filter(|parent| !parent.is_dir()) {
        make_with(&fs::DirBuilder::new(), parent)?;
    }
    if !path.is_dir() {
        match disk::make_folder(builder, path) {
            Err(_) if path.is_dir() => {}
            made => made.map_err(doing("making", path))?,
        }
    }
    // Also if it exists: a process may have been killed right after it made it.
    match parent.map_or(Ok(()), sync) {
        // A folder may be entered and written to by those who cannot read it, and only readers can sync it.
        Err(error) if error.error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        synced => synced,
    }
}

/// Syncs a file.
pub(crate) fn sync_file(path: &Path) -> Result<(), FileError> {
    let file = OpenOptions::new().write(true).open(path);
    file.and_then(|file| disk::sync_file(&file, path)).map_err(doing("syncing", path))
}

/// Syncs a directory's entries, if the system can.
pub fn sync(directory: &Path) -> Result<(), FileError> {
    match disk::sync_folder(directory) {
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
