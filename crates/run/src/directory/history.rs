//! The states of past rounds that a run keeps (`retention.rs` says which).

use crate::directory::checkpoint::{Checkpoint, load};
use crate::directory::checkpoints::list;
use crate::directory::{DirectoryError, FileError, RunDirectory};
use fedtvd_core::model::{Layout, Params};
use std::path::PathBuf;
use std::sync::Arc;
use thiserror::Error;

/// Why the state of a past round cannot be had.
#[derive(Debug, Error)]
pub enum HistoryError {
    /// The run directory.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// There is no checkpoint of this round, or it is damaged.
    #[error("{directory} has no usable checkpoint of round {round}; available rounds: {}", named(.available))]
    NotKept {
        /// The run directory.
        directory: String,
        /// The round asked for.
        round: u32,
        /// The rounds that there are.
        available: Vec<u32>,
    },
}

impl From<FileError> for HistoryError {
    fn from(error: FileError) -> Self {
        Self::Directory(error.into())
    }
}

fn named(rounds: &[u32]) -> String {
    match rounds {
        [] => "none yet".to_owned(),
        rounds => rounds.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    }
}

/// The rounds whose checkpoints are kept, oldest first; they are not read, so that some may be damaged.
pub fn rounds(directory: &RunDirectory) -> Result<Vec<u32>, HistoryError> {
    Ok(folders(directory)?.into_iter().map(|(round, _)| round).collect())
}

/// The model after a round, and the file that holds it.
pub fn model(
    directory: &RunDirectory,
    layout: &Arc<Layout>,
    round: u32,
) -> Result<(Arc<Params>, PathBuf), HistoryError> {
    let (checkpoint, folder) = checkpoint(directory, layout, round)?;
    Ok((checkpoint.state.params, folder.join("state.safetensors")))
}

/// The checkpoint after a round, and its folder.
pub(crate) fn checkpoint(
    directory: &RunDirectory,
    layout: &Arc<Layout>,
    round: u32,
) -> Result<(Checkpoint, PathBuf), HistoryError> {
    let folders = folders(directory)?;
    let place = folders.iter().find(|(kept, _)| *kept == round).map(|(_, folder)| folder);
    match place.and_then(|folder| Some((load(folder, layout).ok()?, folder.clone()))) {
        Some(found) => Ok(found),
        None => {
            let usable = folders.into_iter().filter(|(_, folder)| load(folder, layout).is_ok());
            let available = usable.map(|(round, _)| round).collect();
            Err(HistoryError::NotKept { directory: directory.path().display().to_string(), round, available })
        }
    }
}

/// The checkpoints that `rounds.jsonl` reaches: later ones do not belong to the run.
fn folders(directory: &RunDirectory) -> Result<Vec<(u32, PathBuf)>, HistoryError> {
    let done = directory.lines()?.len() as u32;
    let listed = list(&directory.file("checkpoint"))?;
    Ok(listed.into_iter().filter(|(round, _)| *round <= done).collect())
}
