//! What a power cut undoes: every change of the disk that was not synced. A file's content is durable once the file was
//! synced, an entry of a folder once the folder was.

use fedtvd_run::directory::disk::Change;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// Changes that were not synced, oldest first.
#[derive(Default)]
pub(super) struct Journal {
    undo: Vec<Undo>,
}

/// How one change is undone.
#[derive(Debug)]
pub(super) enum Undo {
    /// The file had this content.
    Content { file: PathBuf, before: Vec<u8> },
    /// There was nothing of this name.
    Made { path: PathBuf },
    /// It had another name, and what it replaced had its name.
    Renamed { from: PathBuf, to: PathBuf, replaced: Option<Tree> },
    /// It existed.
    Removed { path: PathBuf, was: Tree },
}

/// A file, or a folder with its entries.
#[derive(Debug)]
pub(super) enum Tree {
    File(Vec<u8>),
    Folder(BTreeMap<OsString, Tree>),
}

impl Tree {
    fn of(path: &Path) -> Option<Self> {
        if path.is_dir() {
            let entries = fs::read_dir(path).ok()?.flatten();
            let entries = entries.filter_map(|entry| Some((entry.file_name(), Self::of(&entry.path())?)));
            return Some(Self::Folder(entries.collect()));
        }
        fs::read(path).ok().map(Self::File)
    }

    fn restore(self, path: &Path) {
        match self {
            Self::File(bytes) => fs::write(path, bytes).unwrap(),
            Self::Folder(entries) => {
                fs::create_dir_all(path).unwrap();
                entries.into_iter().for_each(|(name, tree)| tree.restore(&path.join(name)));
            }
        }
    }
}

/// What would undo a change that is about to be made.
pub(super) fn undo(change: Change<'_>) -> Option<Undo> {
    let content =
        |file: &Path| fs::read(file).ok().map(|before| Undo::Content { file: file.to_owned(), before });
    let made = |path: &Path| (!path.exists()).then(|| Undo::Made { path: path.to_owned() });
    match change {
        Change::Open(path) => made(path).or_else(|| content(path)),
        Change::MakeFolder(path) | Change::Link(_, path) => made(path),
        Change::Write(path, _) | Change::Truncate(path, _) => content(path),
        Change::SyncFile(_) | Change::SyncFolder(_) => None,
        Change::Rename(from, to) => {
            Some(Undo::Renamed { from: from.to_owned(), to: to.to_owned(), replaced: Tree::of(to) })
        }
        Change::RemoveFile(path) | Change::RemoveFolder(path) => {
            Tree::of(path).map(|was| Undo::Removed { path: path.to_owned(), was })
        }
    }
}

impl Undo {
    /// The folder whose sync makes it durable; `None` if it is the sync of a file.
    fn folder(&self) -> Option<&Path> {
        match self {
            Self::Content { .. } => None,
            Self::Made { path } | Self::Renamed { to: path, .. } | Self::Removed { path, .. } => {
                path.parent()
            }
        }
    }

    /// Follows a rename.
    fn follow(&mut self, from: &Path, to: &Path) {
        let follow = |path: &mut PathBuf| {
            if let Ok(rest) = path.strip_prefix(from) {
                *path = if rest.as_os_str().is_empty() { to.to_owned() } else { to.join(rest) };
            }
        };
        match self {
            Self::Content { file: path, .. } | Self::Made { path } | Self::Removed { path, .. } => {
                follow(path)
            }
            Self::Renamed { from, to, .. } => {
                follow(from);
                follow(to);
            }
        }
    }

    fn carry_out(self) {
        match self {
            // A file that was renamed or removed meanwhile has been put back by what was undone before.
            Self::Content { file, before } if file.is_file() => fs::write(file, before).unwrap(),
            Self::Content { .. } => {}
            Self::Made { path } if path.is_dir() => fs::remove_dir_all(path).unwrap(),
            Self::Made { path } => _ = fs::remove_file(path),
            Self::Renamed { from, to, replaced } => {
                if to.exists() {
                    fs::rename(&to, &from).unwrap();
                }
                if let Some(replaced) = replaced {
                    replaced.restore(&to);
                }
            }
            Self::Removed { path, was } => was.restore(&path),
        }
    }
}

impl Journal {
    /// Notes a change that was made.
    pub(super) fn made(&mut self, change: Change<'_>, undo: Option<Undo>) {
        match change {
            Change::SyncFile(path) => {
                self.undo.retain(|undo| !matches!(undo, Undo::Content { file, .. } if file == path));
            }
            Change::SyncFolder(path) => self.undo.retain(|undo| undo.folder() != Some(path)),
            Change::Rename(from, to) => {
                // What was replaced is restored as it was; what was renamed takes its unsynced changes along.
                self.undo.retain(|undo| !matches!(undo, Undo::Content { file, .. } if file == to));
                self.undo.iter_mut().for_each(|undo| undo.follow(from, to));
                self.undo.extend(undo);
            }
            _ => self.undo.extend(undo),
        }
    }

    /// Undoes the newest unsynced changes, all but the oldest `kept`.
    pub(super) fn cut(&mut self, kept: usize) {
        while self.undo.len() > kept {
            let Some(undo) = self.undo.pop() else { break };
            if let Undo::Renamed { from, to, .. } = &undo {
                self.undo.iter_mut().for_each(|undo| undo.follow(to, from));
            }
            undo.carry_out();
        }
        // What is left was on its way to the disk and has reached it.
        self.undo.clear();
    }

    /// Number of unsynced changes.
    pub(super) fn len(&self) -> usize {
        self.undo.len()
    }
}
