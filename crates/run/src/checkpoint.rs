//! Checkpoints: the server's state and one file of memory per client that has any.
//!
//! A checkpoint is a folder `checkpoint/round-000012` that a rename put into its place after all its files were on
//! the disk. `index.json` holds the hash of every file. The newest two stay; a corrupt one gives way to the one
//! before. A memory that has not changed since is linked, not written again.

use crate::digest::sha256;
use crate::files::{FileError, doing, sync, write_through};
use fedtvd_core::bytes::BytesError;
use fedtvd_core::layout::Layout;
use fedtvd_core::memory::Memory;
use fedtvd_core::profile::ClientId;
use fedtvd_core::run::State;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// What clients remember, by client and by the round in which they learned it.
pub type Memories = BTreeMap<ClientId, BTreeMap<u32, Memory>>;

/// How many checkpoints stay.
const KEPT: usize = 2;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Index {
    round: u32,
    /// Name and hash of every file.
    files: BTreeMap<String, String>,
}

/// Why a checkpoint cannot be used.
#[derive(Debug, Error)]
pub enum CheckpointError {
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file is not what was written.
    #[error("{} is damaged: {why}", .path.display())]
    Damaged {
        /// Which.
        path: PathBuf,
        /// In what way.
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
}

/// Saves a checkpoint and lets older ones go.
pub fn save(folder: &Path, state: &State, memories: &Memories) -> Result<(), CheckpointError> {
    fs::create_dir_all(folder).map_err(doing("making", folder))?;
    let place = folder.join(format!("round-{:06}", state.round));
    let beside = folder.join("partial");
    for leftover in [&beside, &place] {
        if leftover.exists() {
            fs::remove_dir_all(leftover).map_err(doing("removing", leftover))?;
        }
    }
    fs::create_dir(&beside).map_err(doing("making", &beside))?;
    let before = list(folder)?.into_iter().next_back().map(|(_, path)| path);
    let known = before.as_deref().and_then(|path| Some((path, index(path).ok()?)));
    let mut files = BTreeMap::new();
    let bytes = state.to_bytes();
    let path = beside.join("state.safetensors");
    write_through(&path, &bytes).map_err(doing("writing", &path))?;
    files.insert("state.safetensors".to_owned(), sha256(&bytes));
    for (client, versions) in memories {
        for (round, memory) in versions {
            let name = format!("client-{client}-round-{round}.safetensors");
            let path = beside.join(&name);
            let old = known
                .as_ref()
                .and_then(|(folder, index)| Some((folder.join(&name), index.files.get(&name)?)));
            let hash = match old {
                Some((old, hash)) if fs::hard_link(&old, &path).is_ok() => hash.clone(),
                _ => {
                    let bytes = memory.to_bytes();
                    write_through(&path, &bytes).map_err(doing("writing", &path))?;
                    sha256(&bytes)
                }
            };
            files.insert(name, hash);
        }
    }
    let text =
        serde_json::to_string_pretty(&Index { round: state.round, files }).expect("an index is plain data");
    let path = beside.join("index.json");
    write_through(&path, text.as_bytes()).map_err(doing("writing", &path))?;
    sync(&beside)?;
    fs::rename(&beside, &place).map_err(doing("writing", &place))?;
    sync(folder)?;
    let all = list(folder)?;
    for (_, old) in &all[..all.len().saturating_sub(KEPT)] {
        fs::remove_dir_all(old).map_err(doing("removing", old))?;
    }
    Ok(())
}

/// Checkpoints in a folder, oldest first; none where there is no folder.
pub fn list(folder: &Path) -> Result<Vec<(u32, PathBuf)>, FileError> {
    let mut found = Vec::new();
    if !folder.exists() {
        return Ok(found);
    }
    for entry in fs::read_dir(folder).map_err(doing("reading", folder))? {
        let path = entry.map_err(doing("reading", folder))?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        if let Some(round) = name.and_then(|name| name.strip_prefix("round-")?.parse().ok()) {
            found.push((round, path));
        }
    }
    found.sort();
    Ok(found)
}

fn index(path: &Path) -> Result<Index, CheckpointError> {
    let path = path.join("index.json");
    let text = crate::files::read_text(&path)?;
    serde_json::from_str(&text).map_err(|error| damaged(&path, error))
}

fn damaged(path: &Path, why: impl ToString) -> CheckpointError {
    CheckpointError::Damaged { path: path.to_owned(), why: why.to_string() }
}

/// Reads a checkpoint back and checks every byte.
pub fn load(folder: &Path, layout: &Arc<Layout>) -> Result<Checkpoint, CheckpointError> {
    let Index { round, files } = index(folder)?;
    let mut state = None;
    let mut memories = Memories::new();
    for (name, hash) in &files {
        let path = folder.join(name);
        let bytes = fs::read(&path).map_err(doing("reading", &path))?;
        if sha256(&bytes) != *hash {
            return Err(damaged(&path, "its bytes are not those that were written"));
        }
        let misread = |error: BytesError| damaged(&path, error);
        if name == "state.safetensors" {
            state = Some(State::from_bytes(&bytes, layout).map_err(misread)?);
            continue;
        }
        let place = name.strip_suffix(".safetensors").and_then(|name| name.strip_prefix("client-"));
        let place = place.and_then(|place| place.split_once("-round-"));
        let place = place.and_then(|(client, round)| Some((client.parse().ok()?, round.parse().ok()?)));
        let (client, learned) =
            place.ok_or_else(|| damaged(&path, "its name says neither client nor round"))?;
        memories.entry(client).or_default().insert(learned, Memory::from_bytes(&bytes).map_err(misread)?);
    }
    match state {
        Some(state) if state.round == round => Ok(Checkpoint { state, memories }),
        _ => Err(damaged(folder, "its index names no state of its round")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedtvd_core::params::Params;
    use fedtvd_core::statistic::Reference;

    fn layout() -> Arc<Layout> {
        Arc::new(Layout::vector(3))
    }

    fn state(round: u32) -> State {
        State {
            round,
            params: Arc::new(Params::zeros(layout())),
            reference: Reference::uniform(2),
            roster: Vec::new(),
            carried: Arc::default(),
            weighting: Memory::default(),
            server: Memory::default(),
            accepted: BTreeMap::new(),
        }
    }

    fn memories(round: u32) -> Memories {
        let mut memory = Memory::default();
        memory.put("control", vec![1.0f32, 2.0, round as f32]);
        BTreeMap::from([(7, BTreeMap::from([(round, memory)]))])
    }

    #[test]
    fn a_checkpoint_comes_back_and_the_newest_two_stay() {
        let folder = tempfile::tempdir().unwrap();
        for round in [1, 2, 3] {
            save(folder.path(), &state(round), &memories(1)).unwrap();
        }
        let found = list(folder.path()).unwrap();
        assert_eq!(found.iter().map(|(round, _)| *round).collect::<Vec<_>>(), [2, 3]);
        let back = load(&found[1].1, &layout()).unwrap();
        assert_eq!((back.state, back.memories), (state(3), memories(1)));
    }

    #[test]
    fn every_changed_byte_is_found() {
        let folder = tempfile::tempdir().unwrap();
        save(folder.path(), &state(1), &memories(1)).unwrap();
        let (_, path) = list(folder.path()).unwrap().remove(0);
        for name in ["state.safetensors", "client-7-round-1.safetensors", "index.json"] {
            let file = path.join(name);
            let good = fs::read(&file).unwrap();
            for place in [0, good.len() / 2, good.len() - 2] {
                let mut bad = good.clone();
                bad[place] ^= 0x40;
                fs::write(&file, &bad).unwrap();
                assert!(load(&path, &layout()).is_err(), "{name} at {place}");
            }
            fs::write(&file, &good).unwrap();
        }
        assert!(load(&path, &layout()).is_ok());
    }
}
