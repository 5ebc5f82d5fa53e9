//! Every change of the disk by a run or a federation: one function per system call, so that the fault schedules can let
//! each of them fail (`disk_faults.rs`, behind a feature that only tests switch on).

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

/// A change of the disk.
#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    /// A file is opened, and created if it does not exist.
    Open(&'a Path),
    /// A folder is made.
    MakeFolder(&'a Path),
    /// Bytes are written at the end of a file.
    Write(&'a Path, &'a [u8]),
    /// A file is cut to this length.
    Truncate(&'a Path, u64),
    /// A file's content becomes durable.
    SyncFile(&'a Path),
    /// A folder's entries become durable.
    SyncFolder(&'a Path),
    /// A file or folder gets another name, and replaces what had it.
    Rename(&'a Path, &'a Path),
    /// A file gets a second name.
    Link(&'a Path, &'a Path),
    /// A file is removed.
    RemoveFile(&'a Path),
    /// A folder is removed with all that is in it.
    RemoveFolder(&'a Path),
}

impl<'a> Change<'a> {
    /// The file or folder that changes; of a rename or link, its new name.
    pub fn path(self) -> &'a Path {
        match self {
            Self::Open(path)
            | Self::MakeFolder(path)
            | Self::Write(path, _)
            | Self::Truncate(path, _)
            | Self::SyncFile(path)
            | Self::SyncFolder(path)
            | Self::Rename(_, path)
            | Self::Link(_, path)
            | Self::RemoveFile(path)
            | Self::RemoveFolder(path) => path,
        }
    }
}

#[cfg(feature = "disk-faults")]
use crate::directory::disk_faults::attempt;

#[cfg(not(feature = "disk-faults"))]
fn attempt<T>(_: Change<'_>, change: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    change()
}

/// Opens a file that may be created.
pub fn open(options: &OpenOptions, path: &Path) -> io::Result<File> {
    attempt(Change::Open(path), || options.open(path))
}

/// Makes a folder.
pub fn make_folder(builder: &DirBuilder, path: &Path) -> io::Result<()> {
    attempt(Change::MakeFolder(path), || builder.create(path))
}

/// Writes bytes at the end of a file. Here and below, the path of an open file only tells tests which one it is.
pub fn write(mut file: &File, path: &Path, bytes: &[u8]) -> io::Result<()> {
    attempt(Change::Write(path, bytes), || file.write_all(bytes))
}

/// Cuts a file to a length.
pub fn truncate(file: &File, path: &Path, length: u64) -> io::Result<()> {
    attempt(Change::Truncate(path, length), || file.set_len(length))
}

/// Makes a file's content durable.
pub fn sync_file(file: &File, path: &Path) -> io::Result<()> {
    attempt(Change::SyncFile(path), || file.sync_all())
}

/// The same without the times of its last changes.
pub fn sync_data(file: &File, path: &Path) -> io::Result<()> {
    attempt(Change::SyncFile(path), || file.sync_data())
}

/// Makes a folder's entries durable.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    attempt(Change::SyncFolder(path), || File::open(path)?.sync_all())
}

/// Renames a file or folder.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    attempt(Change::Rename(from, to), || fs::rename(from, to))
}

/// Gives a file a second name.
pub fn link(from: &Path, to: &Path) -> io::Result<()> {
    attempt(Change::Link(from, to), || fs::hard_link(from, to))
}

/// Removes a file.
pub fn remove_file(path: &Path) -> io::Result<()> {
    attempt(Change::RemoveFile(path), || fs::remove_file(path))
}

/// Removes a folder with all that is in it.
pub fn remove_folder(path: &Path) -> io::Result<()> {
    attempt(Change::RemoveFolder(path), || fs::remove_dir_all(path))
}
