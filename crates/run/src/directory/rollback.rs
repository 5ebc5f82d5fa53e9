//! Going back to an earlier round: what came after it is set aside, and the run continues from there.
//!
//! ```text
//! rolled-back/0001-from-40-to-30/rounds.jsonl         the lines of rounds 31 to 40, as they were
//! rolled-back/0001-from-40-to-30/summary.json         if the run was finished
//! rolled-back/0001-from-40-to-30/model.safetensors    if the run was finished
//! rolled-back/0001-from-40-to-30/round-000031/…       in a federation: who answered what in round 32
//! ```
//!
//! A crash at any moment leaves either the old run or the run that is rolled back, because of this order:
//!
//! 1. The discarded lines are written to `0001-from-40-to-30.partial`, which counts for nothing.
//! 2. It is renamed to `0001-from-40-to-30.begun`. From here on the run is rolled back: [`RunDirectory`] shows no round
//!    after 30, no summary and no final model, and whoever works on the run next completes what follows. Each
//!    step may be repeated.
//! 3. A federation sets aside its later rounds.
//! 4. The summary is set aside, since it marks a run as done; then the final model.
//! 5. Checkpoints after round 30 are removed.
//! 6. `rounds.jsonl` is truncated.
//! 7. The folder is renamed to `0001-from-40-to-30`. Its name tells the next round that it follows a rollback.

use crate::directory::checkpoints::{clear, list};
use crate::directory::files::{doing, make_folder, read_text, sync, write_through};
use crate::directory::history::{HistoryError, checkpoint};
use crate::directory::run_directory::Lines;
use crate::directory::{DirectoryError, FileError, RunDirectory, disk};
use fedtvd_core::model::Layout;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The folder with one record per rollback.
const FOLDER: &str = "rolled-back";

/// A rollback that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rollback {
    /// Which of the run's rollbacks it was, counted from 1.
    number: u32,
    /// The last round before it.
    pub from: u32,
    /// The round after which the run continues; 0 for the start.
    pub to: u32,
}

impl Rollback {
    /// The folder of its record, once it is complete.
    pub fn folder(&self, directory: &RunDirectory) -> PathBuf {
        directory.file(FOLDER).join(self.name())
    }

    fn name(&self) -> String {
        format!("{:04}-from-{}-to-{}", self.number, self.from, self.to)
    }

    /// The rollback and how far it got, from the name of its folder.
    fn parse(name: &str) -> Option<(Self, Progress)> {
        let (name, progress) = match name.split_once('.') {
            None => (name, Progress::Complete),
            Some((name, "begun")) => (name, Progress::Begun),
            Some((name, "partial")) => (name, Progress::Partial),
            Some(_) => return None,
        };
        let (number, rounds) = name.split_once("-from-")?;
        let (from, to) = rounds.split_once("-to-")?;
        let rollback = Self { number: number.parse().ok()?, from: from.parse().ok()?, to: to.parse().ok()? };
        // Only what this program writes: another spelling of the same numbers would be a second rollback.
        (rollback.name() == name && rollback.to <= rollback.from).then_some((rollback, progress))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// Its record is being written.
    Partial,
    /// The run counts as rolled back, but its files may not be yet.
    Begun,
    Complete,
}

/// A rollback that must be completed before the run continues.
#[derive(Debug)]
pub struct Begun {
    directory: RunDirectory,
    /// The rollback.
    pub rollback: Rollback,
    /// The folder of its record.
    pub folder: PathBuf,
}

/// Rolls a run back to a round whose checkpoint it keeps, or to its start; [`Begun::complete`] must follow. The caller
/// holds the lock of the run and has completed earlier rollbacks.
pub fn begin(directory: &RunDirectory, layout: &Arc<Layout>, to: u32) -> Result<Begun, HistoryError> {
    if to > 0 {
        checkpoint(directory, layout, to).map_err(|error| match error {
            HistoryError::NotKept { directory, round, mut available } => {
                available.insert(0, 0);
                HistoryError::NotKept { directory, round, available }
            }
            other => other,
        })?;
    }
    let from = directory.lines()?.len();
    let path = directory.file("rounds.jsonl");
    let text = if path.exists() { read_text(&path)? } else { String::new() };
    let discarded: String = text.split_inclusive('\n').take(from).skip(to as usize).collect();
    let all = all(directory)?;
    let number = all.iter().map(|(rollback, _)| rollback.number).max().unwrap_or(0).saturating_add(1);
    let rollback = Rollback { number, from: from as u32, to };
    let records = directory.file(FOLDER);
    for (left, _) in all.iter().filter(|(_, progress)| *progress == Progress::Partial) {
        clear(&records.join(left.name() + ".partial"))?;
    }
    let partial = records.join(rollback.name() + ".partial");
    if let Some(parent) = partial.parent() {
        make_folder(parent)?;
    }
    make_folder(&partial)?;
    let lines = partial.join("rounds.jsonl");
    write_through(&lines, discarded.as_bytes()).map_err(doing("writing", &lines))?;
    sync(&partial)?;
    sync(directory.path())?;
    let folder = records.join(rollback.name() + ".begun");
    rename(&partial, &folder)?;
    Ok(Begun { directory: directory.clone(), rollback, folder })
}

/// The rollback that a crash interrupted, if there is one.
pub fn begun(directory: &RunDirectory) -> Result<Option<Begun>, FileError> {
    let found = all(directory)?.into_iter().find(|(_, progress)| *progress == Progress::Begun);
    Ok(found.map(|(rollback, _)| {
        let folder = directory.file(FOLDER).join(rollback.name() + ".begun");
        Begun { directory: directory.clone(), rollback, folder }
    }))
}

/// The rollback after which the run continues from this round, if there was one; the next round records it.
pub fn ended_at(directory: &RunDirectory, round: u32) -> Result<Option<Rollback>, FileError> {
    let complete = all(directory)?.into_iter().filter(|(_, progress)| *progress == Progress::Complete);
    // A rollback to an earlier round undid all rollbacks to later ones.
    let last = { complete }.rev().map(|(rollback, _)| rollback).find(|rollback| rollback.to <= round);
    Ok(last.filter(|rollback| rollback.to == round))
}

/// All rollbacks of a run, in order.
fn all(directory: &RunDirectory) -> Result<Vec<(Rollback, Progress)>, FileError> {
    let folder = directory.file(FOLDER);
    let mut found = Vec::new();
    if folder.exists() {
        for entry in fs::read_dir(&folder).map_err(doing("reading", &folder))? {
            let name = entry.map_err(doing("reading", &folder))?.file_name();
            found.extend(name.to_str().and_then(Rollback::parse));
        }
    }
    found.sort_by_key(|(rollback, _)| *rollback);
    Ok(found)
}

type Step = fn(&Begun, &mut Lines) -> Result<(), DirectoryError>;

/// What makes the files agree with the rollback, in order; each step may be repeated.
const STEPS: [Step; 7] = [
    |begun, _| begun.set_aside("summary.json"),
    |begun, _| begun.set_aside("model.safetensors"),
    |begun, _| begun.set_aside("predictions.npy"),
    |begun, _| begun.set_aside("clients.json"),
    |begun, _| begun.remove_checkpoints(),
    |begun, lines| begun.truncate(lines),
    |begun, _| begun.close(),
];

impl Begun {
    /// Completes the rollback.
    pub fn complete(self, lines: &mut Lines) -> Result<Rollback, DirectoryError> {
        STEPS.iter().try_for_each(|step| step(&self, lines))?;
        Ok(self.rollback)
    }

    fn set_aside(&self, name: &str) -> Result<(), DirectoryError> {
        let file = self.directory.file(name);
        if file.exists() {
            rename(&file, &self.folder.join(name))?;
            sync(self.directory.path())?;
        }
        Ok(())
    }

    fn remove_checkpoints(&self) -> Result<(), DirectoryError> {
        let folder = self.directory.file("checkpoint");
        for (_, later) in list(&folder)?.into_iter().filter(|(round, _)| *round > self.rollback.to) {
            clear(&later)?;
        }
        if folder.exists() { Ok(sync(&folder)?) } else { Ok(()) }
    }

    fn truncate(&self, lines: &mut Lines) -> Result<(), DirectoryError> {
        lines.truncate(self.rollback.to)?;
        Ok(lines.sync()?)
    }

    fn close(&self) -> Result<(), DirectoryError> {
        Ok(rename(&self.folder, &self.rollback.folder(&self.directory))?)
    }
}

/// Renames a file or folder durably.
fn rename(from: &Path, to: &Path) -> Result<(), FileError> {
    disk::rename(from, to).map_err(doing("writing", to))?;
    to.parent().map_or(Ok(()), sync)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::{Checkpoints, FORMAT, Fingerprint, Manifest, Memories};
    use fedtvd_core::labels::Reference;
    use fedtvd_core::memory::Memory;
    use fedtvd_core::model::Params;
    use fedtvd_core::round::{RoundRecord, State};
    use std::collections::BTreeMap;

    fn layout() -> Arc<Layout> {
        Arc::new(Layout::vector(3))
    }

    /// Adds rounds up to this one, with a checkpoint after each.
    fn extend(directory: &RunDirectory, to: u32) {
        let done = directory.lines().unwrap().len() as u32;
        let mut lines = directory.append(done).unwrap();
        let found = Checkpoints::new(directory.file("checkpoint"), 10).find(&layout(), done).unwrap();
        let mut checkpoints = found.checkpoints;
        for round in done + 1..=to {
            lines.write(&RoundRecord { round, ..RoundRecord::default() }).unwrap();
            let state = State {
                round,
                params: Arc::new(Params::zeros(layout())),
                own: Arc::default(),
                reference: Reference::uniform(2),
                roster: Vec::new(),
                carried: Arc::default(),
                weighting: Memory::default(),
                server: Memory::default(),
                combining: Memory::default(),
                screening: Memory::default(),
                branches: Vec::new(),
                members: BTreeMap::new(),
                accepted: BTreeMap::new(),
            };
            checkpoints.save(&state, &Memories::new()).unwrap();
        }
    }

    /// A finished run of six rounds.
    fn finished() -> (tempfile::TempDir, RunDirectory) {
        let folder = tempfile::tempdir().unwrap();
        let fingerprint = Fingerprint {
            architecture: String::new(),
            instructions: String::new(),
            kernels: 1,
            caches: Vec::new(),
            device: None,
        };
        let manifest = Manifest {
            format: FORMAT,
            version: String::new(),
            fingerprint,
            strategy: String::new(),
            data_checksum: String::new(),
            split_hash: String::new(),
            schema_hash: String::new(),
            start_hash: String::new(),
            rules: Default::default(),
            model_source: String::new(),
        };
        let directory = RunDirectory::create(folder.path(), "", &manifest, None).unwrap();
        extend(&directory, 6);
        fs::write(directory.file("model.safetensors"), "model").unwrap();
        let summary = r#"{"strategy": "", "seed": 1, "rounds": 6, "accuracy": null, "last10_accuracy": null, "seconds": 1,
            "images_per_second": 1, "peak_memory_bytes": null, "split_hash": "", "directory": "", "model": ""}"#;
        fs::write(directory.file("summary.json"), summary).unwrap();
        assert!(directory.summary().unwrap().is_some());
        (folder, directory)
    }

    /// What a run shows: its rounds, whether it is done, whether it has a final model, where it resumes, and what it
    /// can be rolled back to.
    fn shown(directory: &RunDirectory) -> (usize, bool, bool, u32, Vec<u32>) {
        let done = directory.lines().unwrap().len();
        let checkpoints = Checkpoints::new(directory.file("checkpoint"), 10);
        let found = checkpoints.find(&layout(), done as u32).unwrap().checkpoint.unwrap();
        let (summary, model) = (directory.summary().unwrap(), directory.model().unwrap());
        let kept = crate::directory::history::rounds(directory).unwrap();
        (done, summary.is_some(), model.is_some(), found.state.round, kept)
    }

    /// The names and contents of all files but checkpoints.
    fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let inside = |path: PathBuf| {
            if path.is_dir() { files(&path) } else { [(path.clone(), fs::read(&path).unwrap())].into() }
        };
        entries.filter(|path| !path.ends_with("checkpoint")).flat_map(inside).collect()
    }

    fn roll_back(directory: &RunDirectory, to: u32) -> Rollback {
        begin(directory, &layout(), to).unwrap().complete(&mut directory.lock().unwrap()).unwrap()
    }

    #[test]
    fn a_crash_at_any_moment_leaves_the_old_run_or_the_one_that_is_rolled_back() {
        let (old, new) = ((6, true, true, 6, vec![1, 2, 3, 4, 5, 6]), (4, false, false, 4, vec![1, 2, 3, 4]));
        let whole = {
            let (folder, directory) = finished();
            roll_back(&directory, 4);
            assert_eq!(shown(&directory), new);
            let relative =
                |(path, bytes): (PathBuf, _)| (path.strip_prefix(folder.path()).unwrap().to_owned(), bytes);
            files(folder.path()).into_iter().map(relative).collect::<BTreeMap<_, _>>()
        };
        for steps in 0..=STEPS.len() {
            let (folder, directory) = finished();
            assert_eq!(shown(&directory), old);
            let partial = directory.file("rolled-back/0001-from-6-to-4.partial");
            fs::create_dir_all(&partial).unwrap();
            fs::write(partial.join("rounds.jsonl"), "half of a li").unwrap();
            assert_eq!(shown(&directory), old, "nothing counts before the record is complete");
            fs::remove_dir_all(&partial).unwrap();
            let begun = begin(&directory, &layout(), 4).unwrap();
            let mut lines = directory.lock().unwrap();
            STEPS[..steps].iter().for_each(|step| step(&begun, &mut lines).unwrap());
            assert_eq!(shown(&directory), new, "after {steps} steps");
            // Another process finds what the first one left.
            if let Some(begun) = super::begun(&directory).unwrap() {
                assert_eq!(ended_at(&directory, 4).unwrap(), None);
                begun.complete(&mut lines).unwrap();
            }
            assert!(super::begun(&directory).unwrap().is_none());
            assert_eq!(shown(&directory), new);
            for (path, bytes) in &whole {
                assert!(fs::read(folder.path().join(path)).unwrap() == *bytes, "{}", path.display());
            }
            assert_eq!(files(folder.path()).len(), whole.len());
            assert_eq!(ended_at(&directory, 4).unwrap().map(|rollback| rollback.from), Some(6));
            // A crash after the line of the next round and before its checkpoint: the old one must not take its place.
            lines.write(&RoundRecord { round: 5, ..RoundRecord::default() }).unwrap();
            assert_eq!(shown(&directory), (5, false, false, 4, vec![1, 2, 3, 4]));
        }
    }

    #[test]
    fn the_discarded_lines_are_kept_as_they_were() {
        let (_folder, directory) = finished();
        let before = fs::read_to_string(directory.file("rounds.jsonl")).unwrap();
        roll_back(&directory, 4);
        let kept = fs::read_to_string(directory.file("rounds.jsonl")).unwrap();
        let record = directory.file("rolled-back/0001-from-6-to-4");
        assert_eq!(kept + &fs::read_to_string(record.join("rounds.jsonl")).unwrap(), before);
        assert!(record.join("summary.json").is_file() && record.join("model.safetensors").is_file());
    }

    #[test]
    fn a_record_that_a_crash_left_half_written_is_replaced() {
        let (_folder, directory) = finished();
        fs::create_dir_all(directory.file("rolled-back/0001-from-6-to-3.partial")).unwrap();
        roll_back(&directory, 4);
        assert_eq!(all(&directory).unwrap().len(), 1);
    }

    #[test]
    fn a_round_follows_the_last_rollback_to_it_unless_the_run_went_back_further() {
        let (_folder, directory) = finished();
        let ended = |round| ended_at(&directory, round).unwrap().map(|rollback| rollback.from);
        roll_back(&directory, 4);
        extend(&directory, 5);
        assert_eq!((ended(4), ended(5), ended(3)), (Some(6), None, None));
        roll_back(&directory, 4);
        assert_eq!(ended(4), Some(5));
        roll_back(&directory, 2);
        assert_eq!((ended(2), ended(4)), (Some(4), None));
        roll_back(&directory, 0);
        assert_eq!((ended(0), ended(2)), (Some(2), None));
        assert_eq!(directory.lines().unwrap().len(), 0);
    }

    #[test]
    fn only_rounds_with_an_intact_checkpoint_are_available() {
        let (_folder, directory) = finished();
        let error = |to| begin(&directory, &layout(), to).unwrap_err().to_string();
        let sentence = |round, available: &str| {
            let run = directory.path().display();
            format!("{run} has no usable checkpoint of round {round}; available rounds: {available}")
        };
        assert_eq!(error(7), sentence(7, "0, 1, 2, 3, 4, 5, 6"));
        fs::write(directory.file("checkpoint/round-000004/index.json"), "{}").unwrap();
        assert_eq!(error(4), sentence(4, "0, 1, 2, 3, 5, 6"));
        assert!(all(&directory).unwrap().is_empty() && directory.summary().unwrap().is_some());
    }
}
