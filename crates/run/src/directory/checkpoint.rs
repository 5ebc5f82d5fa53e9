//! One checkpoint: a folder with the server's state, one file of memory per client that has any, and `index.json`,
//! which holds the hash of every file.

use crate::directory::files::{create, doing, make_folder, read_text, sync, sync_file};
use crate::directory::{FileError, disk, sha256};
use fedtvd_core::bytes::BytesError;
use fedtvd_core::memory::Memory;
use fedtvd_core::model::Layout;
use fedtvd_core::round::{ClientId, State};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// The clients' memories, by client and by the round that produced them.
pub type Memories = BTreeMap<ClientId, BTreeMap<u32, Memory>>;

/// Name and hash of every file of a checkpoint.
pub(crate) type Hashes = BTreeMap<String, String>;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Index {
    round: u32,
    files: Hashes,
}

/// Why a checkpoint cannot be used.
#[derive(Debug, Error)]
pub enum CheckpointError {
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file is damaged.
    #[error("{} is damaged: {why}", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
}

/// A checkpoint that was read back.
#[derive(Debug)]
pub struct Checkpoint {
    /// The server's state.
    pub state: State,
    /// The clients' memories.
    pub memories: Memories,
    /// Its files.
    pub files: Hashes,
}

/// A checkpoint on disk, with its files as written or read.
#[derive(Debug)]
pub(crate) struct Saved {
    pub(crate) round: u32,
    pub(crate) path: PathBuf,
    pub(crate) files: Hashes,
}

/// Writes a checkpoint to a new folder. A memory that `known` already holds is hard-linked instead of written.
pub(crate) fn write(
    folder: &Path,
    state: &State,
    memories: &Memories,
    known: Option<&Saved>,
) -> Result<Hashes, FileError> {
    make_folder(folder)?;
    let mut files = Hashes::new();
    let mut written = Vec::new();
    let mut put = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        create(&path).and_then(|file| disk::write(&file, &path, bytes)).map_err(doing("writing", &path))?;
        written.push(path);
        Ok::<_, FileError>(())
    };
    let bytes = state.to_bytes();
    put("state.safetensors", &bytes)?;
    files.insert("state.safetensors".to_owned(), sha256(&bytes));
    for (client, versions) in memories {
        for (round, memory) in versions {
            let name = format!("client-{client}-round-{round}.safetensors");
            let old = known.and_then(|known| Some((known.path.join(&name), known.files.get(&name)?)));
            let hash = match old {
                Some((old, hash)) if disk::link(&old, &folder.join(&name)).is_ok() => hash.clone(),
                _ => {
                    let bytes = memory.to_bytes();
                    put(&name, &bytes)?;
                    sha256(&bytes)
                }
            };
            files.insert(name, hash);
        }
    }
    let index = Index { round: state.round, files };
    let text = serde_json::to_string_pretty(&index).expect("an index is plain data");
    put("index.json", text.as_bytes())?;
    // After all are written: syncing many files together is faster than one after the other.
    for path in &written {
        sync_file(path)?;
    }
    sync(folder)?;
    Ok(index.files)
}

fn damaged(path: &Path, why: impl ToString) -> CheckpointError {
    CheckpointError::Damaged { path: path.to_owned(), why: why.to_string() }
}

/// Reads a checkpoint and verifies the hash of every file.
pub(crate) fn load(folder: &Path, layout: &Arc<Layout>) -> Result<Checkpoint, CheckpointError> {
    let path = folder.join("index.json");
    let Index { round, files } =
        serde_json::from_str(&read_text(&path)?).map_err(|error| damaged(&path, error))?;
    let mut state = None;
    let mut memories = Memories::new();
    for (name, hash) in &files {
        if Path::new(name).file_name().is_none_or(|plain| plain != name.as_str()) {
            return Err(damaged(&path, format!("{name:?} is not the name of a file")));
        }
        let path = folder.join(name);
        let bytes = fs::read(&path).map_err(doing("reading", &path))?;
        if sha256(&bytes) != *hash {
            return Err(damaged(&path, "its hash does not match the index"));
        }
        let misread = |error: BytesError| damaged(&path, error);
        if name == "state.safetensors" {
            state = Some(State::from_bytes(&bytes, layout).map_err(misread)?);
            continue;
        }
        let place = name.strip_suffix(".safetensors").and_then(|name| name.strip_prefix("client-"));
        let place = place.and_then(|place| place.split_once("-round-"));
        let place = place.and_then(|(client, round)| Some((client.parse().ok()?, round.parse().ok()?)));
        let (client, learned) = place.ok_or_else(|| damaged(&path, "its name lacks a client or a round"))?;
        memories.entry(client).or_default().insert(learned, Memory::from_bytes(&bytes).map_err(misread)?);
    }
    match state {
        Some(state) if state.round == round => Ok(Checkpoint { state, memories, files }),
        _ => Err(damaged(folder, "its index has no state of this round")),
    }
}
