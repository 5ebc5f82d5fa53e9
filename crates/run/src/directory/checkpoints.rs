//! The checkpoints of a run: `checkpoint/round-000012` and so on, each renamed into place after all its files are on
//! disk.
//!
//! The newest two share no file: an unchanged memory is hard-linked from the checkpoint two before. So damage to one of
//! the two leaves the other intact, and a run falls back to the older one if the newest is corrupt. Some older ones are
//! kept to go back to (`retention.rs`).

use crate::directory::checkpoint::{Checkpoint, Saved, load, write};
use crate::directory::files::{doing, make_folder, sync};
use crate::directory::{CheckpointError, FileError, Memories, disk, retention};
use fedtvd_core::model::Layout;
use fedtvd_core::round::State;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// The checkpoints of a run.
#[derive(Debug)]
pub struct Checkpoints {
    folder: PathBuf,
    /// Length of the run.
    rounds: u32,
    newest: Option<Saved>,
    before: Option<Saved>,
    /// The rounds of all checkpoints that belong to the run, and their bytes.
    saved: BTreeMap<u32, u64>,
}

/// Finished rounds of which no checkpoint can be used.
#[derive(Debug, Error)]
#[error(
    "rounds.jsonl reaches round {}, but no checkpoint in {} can be used, so the run cannot continue from there{}; restore \
     the checkpoints, or start a new run with another --out",
    .rounds, .folder.display(), .why.as_ref().map_or_else(String::new, |why| format!(" ({why})"))
)]
pub struct NoCheckpoint {
    folder: PathBuf,
    rounds: u32,
    why: Option<String>,
}

/// What a run can resume from.
#[derive(Debug)]
pub struct Found {
    /// The run's checkpoints, to add further ones.
    pub checkpoints: Checkpoints,
    /// The newest usable checkpoint, if any.
    pub checkpoint: Option<Checkpoint>,
    /// Why newer ones cannot be used.
    pub notes: Vec<String>,
}

impl Found {
    /// Fails instead of letting a run start over that has finished this many rounds. A run that was killed before its
    /// first checkpoint has none: `unsaved` is the most rounds that it can have finished.
    pub fn or_refuse(self, done: u32, unsaved: u32) -> Result<Self, NoCheckpoint> {
        if self.checkpoint.is_some() || done == 0 || (self.notes.is_empty() && done <= unsaved) {
            return Ok(self);
        }
        let why = self.notes.into_iter().next();
        Err(NoCheckpoint { folder: self.checkpoints.folder, rounds: done, why })
    }
}

impl Checkpoints {
    /// No checkpoints yet, of a run of this many rounds.
    pub fn new(folder: PathBuf, rounds: u32) -> Self {
        Self { folder, rounds, newest: None, before: None, saved: BTreeMap::new() }
    }

    /// Finds the newest usable checkpoint after `done` finished rounds.
    pub fn find(self, layout: &Arc<Layout>, done: u32) -> Result<Found, FileError> {
        let mut found = Found { checkpoints: self, checkpoint: None, notes: Vec::new() };
        let listed = list(&found.checkpoints.folder)?;
        for (round, path) in listed.clone().into_iter().rev() {
            match load(&path, layout) {
                Ok(checkpoint) if round <= done => {
                    // A process killed between rename and sync left a checkpoint that a crash of the machine could still undo,
                    // together with all that is built on it.
                    sync(&found.checkpoints.folder)?;
                    // Later ones are damaged or ahead: the next save removes them.
                    for (round, path) in listed.into_iter().filter(|(other, _)| *other <= round) {
                        found.checkpoints.saved.insert(round, bytes(&path)?);
                    }
                    let files = checkpoint.files.clone();
                    found.checkpoints.newest = Some(Saved { round, path, files });
                    found.checkpoint = Some(checkpoint);
                    return Ok(found);
                }
                Ok(_) => {
                    found.notes.push(format!("{} is ahead of rounds.jsonl and is skipped", path.display()))
                }
                Err(error) => found.notes.push(format!("{error}; the checkpoint is skipped")),
            }
        }
        Ok(found)
    }

    /// Whether a checkpoint of this round is kept for the rest of the run.
    pub(crate) fn keeps(&self, round: u32) -> bool {
        round.is_multiple_of(retention::spacing(self.rounds))
    }

    /// Bytes of the newest checkpoint; 0 without one.
    pub(crate) fn newest_bytes(&self) -> u64 {
        self.saved.last_key_value().map_or(0, |(_, bytes)| *bytes)
    }

    /// Saves a checkpoint and removes those that are no longer kept; does nothing if this round is already saved.
    pub fn save(&mut self, state: &State, memories: &Memories) -> Result<(), CheckpointError> {
        let round = state.round;
        if self.newest.as_ref().is_some_and(|newest| newest.round == round) {
            return Ok(());
        }
        make_folder(&self.folder)?;
        let path = self.folder.join(format!("round-{round:06}"));
        let partial = self.folder.join("partial");
        clear(&partial)?;
        let files = write(&partial, state, memories, self.before.as_ref()).inspect_err(|_| {
            // A partial checkpoint only fills the disk; failing to remove it is not worth reporting.
            let _ = disk::remove_folder(&partial);
        })?;
        // A damaged checkpoint of the same round that was skipped.
        clear(&path)?;
        disk::rename(&partial, &path).map_err(doing("writing", &path))?;
        sync(&self.folder)?;
        self.saved.insert(round, bytes(&path)?);
        self.before = self.newest.replace(Saved { round, path, files });
        let kept = retention::kept(&self.saved, self.rounds);
        self.saved.retain(|round, _| kept.contains(round));
        for (_, old) in list(&self.folder)?.into_iter().filter(|(round, _)| !kept.contains(round)) {
            clear(&old)?;
        }
        Ok(())
    }
}

/// Bytes of all files of a checkpoint; those of a linked file count each time.
fn bytes(folder: &Path) -> Result<u64, FileError> {
    let entries = fs::read_dir(folder).map_err(doing("reading", folder))?;
    let sizes = entries.map(|entry| Ok(entry?.metadata()?.len()));
    sizes.sum::<std::io::Result<u64>>().map_err(doing("reading", folder))
}

pub(crate) fn clear(folder: &Path) -> Result<(), FileError> {
    if folder.exists() { disk::remove_folder(folder).map_err(doing("removing", folder)) } else { Ok(()) }
}

/// Checkpoints in a folder, oldest first; empty if there is no folder.
pub(crate) fn list(folder: &Path) -> Result<Vec<(u32, PathBuf)>, FileError> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use fedtvd_core::labels::Reference;
    use fedtvd_core::memory::Memory;
    use fedtvd_core::model::Params;
    use std::collections::BTreeMap;

    fn layout() -> Arc<Layout> {
        Arc::new(Layout::vector(3))
    }

    fn state(round: u32) -> State {
        State {
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
        }
    }

    /// Client 7 updated its memory in round 0 and not since.
    fn memories() -> Memories {
        let mut memory = Memory::default();
        memory.put("control", vec![1.0f32, 2.0, 3.0]);
        BTreeMap::from([(7, BTreeMap::from([(0, memory)]))])
    }

    const MEMORY: &str = "client-7-round-0.safetensors";

    /// A run that is so long that none of its first rounds is kept for good.
    const LONG: u32 = 1000;

    fn saved(folder: &Path, rounds: std::ops::RangeInclusive<u32>) -> Checkpoints {
        let mut checkpoints = Checkpoints::new(folder.to_owned(), LONG);
        rounds.for_each(|round| checkpoints.save(&state(round), &memories()).unwrap());
        checkpoints
    }

    fn damage(file: &Path, place: usize) {
        let mut bytes = fs::read(file).unwrap();
        bytes[place] ^= 0x40;
        fs::write(file, &bytes).unwrap();
    }

    fn rounds(folder: &Path) -> Vec<u32> {
        list(folder).unwrap().into_iter().map(|(round, _)| round).collect()
    }

    #[test]
    fn a_checkpoint_round_trips_and_the_newest_and_the_last_few_before_them_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        saved(folder.path(), 1..=7);
        assert_eq!(rounds(folder.path()), [3, 4, 5, 6, 7]);
        let found = Checkpoints::new(folder.path().to_owned(), LONG).find(&layout(), 7).unwrap();
        let back = found.checkpoint.unwrap();
        assert_eq!((back.state, back.memories, found.notes), (state(7), memories(), vec![]));
    }

    #[test]
    fn every_changed_byte_is_detected() {
        let folder = tempfile::tempdir().unwrap();
        saved(folder.path(), 1..=1);
        let (_, path) = list(folder.path()).unwrap().remove(0);
        for name in ["state.safetensors", MEMORY, "index.json"] {
            let file = path.join(name);
            let len = fs::read(&file).unwrap().len();
            for place in [0, len / 2, len - 2] {
                damage(&file, place);
                assert!(load(&path, &layout()).is_err(), "{name} at {place}");
                damage(&file, place);
            }
        }
        assert!(load(&path, &layout()).is_ok());
    }

    /// Checkpoints 1 to `last`; a memory of the newest is damaged.
    fn damaged(last: u32) -> (tempfile::TempDir, Checkpoints) {
        let folder = tempfile::tempdir().unwrap();
        let checkpoints = saved(folder.path(), 1..=last);
        damage(&folder.path().join(format!("round-{last:06}")).join(MEMORY), 70);
        (folder, checkpoints)
    }

    fn whole(folder: &Path, round: u32) -> bool {
        load(&folder.join(format!("round-{round:06}")), &layout()).is_ok()
    }

    #[test]
    fn damage_to_the_newest_leaves_the_previous_one_intact_and_is_not_copied() {
        for last in 2..=5 {
            let (folder, _) = damaged(last);
            let found = Checkpoints::new(folder.path().to_owned(), LONG).find(&layout(), last).unwrap();
            let Found { mut checkpoints, checkpoint, notes } = found;
            assert_eq!(checkpoint.unwrap().state.round, last - 1);
            assert!(notes[0].contains("its hash does not match the index"), "{notes:?}");
            for round in last + 1..=last + 4 {
                checkpoints.save(&state(round), &memories()).unwrap();
                assert!(whole(folder.path(), round), "{round}");
                assert!(!rounds(folder.path()).contains(&last), "the damaged one is removed");
            }
        }
    }

    #[test]
    fn a_run_with_finished_rounds_starts_over_only_if_it_was_killed_before_its_first_checkpoint() {
        let folder = tempfile::tempdir().unwrap();
        let found = |done, unsaved| {
            let found = Checkpoints::new(folder.path().to_owned(), LONG).find(&layout(), done).unwrap();
            found.or_refuse(done, unsaved).map(|found| found.checkpoint.map(|found| found.state.round))
        };
        assert_eq!(found(0, 1).unwrap(), None);
        assert_eq!(found(1, 1).unwrap(), None);
        assert_eq!(found(7, u32::MAX).unwrap(), None);
        let error = found(2, 1).unwrap_err().to_string();
        assert!(error.starts_with("rounds.jsonl reaches round 2, but no checkpoint in "), "{error}");
        saved(folder.path(), 1..=1);
        assert_eq!(found(1, 1).unwrap(), Some(1));
        damage(&folder.path().join("round-000001/state.safetensors"), 70);
        for unsaved in [1, u32::MAX] {
            let error = found(1, unsaved).unwrap_err().to_string();
            assert!(error.contains("its hash does not match the index"), "{error}");
        }
    }

    #[test]
    fn a_run_that_never_notices_damage_always_has_an_intact_checkpoint() {
        for last in 2..=5 {
            let (folder, mut checkpoints) = damaged(last);
            for round in last + 1..=last + 4 {
                checkpoints.save(&state(round), &memories()).unwrap();
                assert!(whole(folder.path(), round - 1) || whole(folder.path(), round), "{round}");
            }
        }
    }

    #[cfg(unix)]
    #[test]
    fn an_unchanged_memory_is_written_twice_and_then_linked() {
        use std::os::unix::fs::MetadataExt as _;
        let folder = tempfile::tempdir().unwrap();
        let mut checkpoints = saved(folder.path(), 1..=2);
        let file = |round: u32| {
            fs::metadata(folder.path().join(format!("round-{round:06}")).join(MEMORY)).unwrap().ino()
        };
        let (one, two) = (file(1), file(2));
        assert_ne!(one, two);
        checkpoints.save(&state(3), &memories()).unwrap();
        assert_eq!(file(3), one);
        checkpoints.save(&state(4), &memories()).unwrap();
        assert_eq!(file(4), two);
    }

    #[test]
    fn a_failed_save_keeps_the_older_checkpoints() {
        let folder = tempfile::tempdir().unwrap();
        let mut checkpoints = saved(folder.path(), 1..=2);
        // A file in place of the new folder; only a folder would be removed.
        fs::write(folder.path().join("partial"), "in the way").unwrap();
        assert!(checkpoints.save(&state(3), &memories()).is_err());
        assert_eq!(rounds(folder.path()), [1, 2]);
        fs::remove_file(folder.path().join("partial")).unwrap();
        checkpoints.save(&state(3), &memories()).unwrap();
        assert_eq!(rounds(folder.path()), [1, 2, 3]);
    }

    #[test]
    fn every_nth_round_stays_after_a_restart_too() {
        let folder = tempfile::tempdir().unwrap();
        let mut checkpoints = Checkpoints::new(folder.path().to_owned(), 40);
        (1..=14).for_each(|round| checkpoints.save(&state(round), &memories()).unwrap());
        let found = Checkpoints::new(folder.path().to_owned(), 40).find(&layout(), 14).unwrap();
        let mut checkpoints = found.checkpoints;
        (15..=22).for_each(|round| checkpoints.save(&state(round), &memories()).unwrap());
        assert_eq!(rounds(folder.path()), [4, 8, 12, 16, 18, 19, 20, 21, 22]);
        for round in rounds(folder.path()) {
            assert_eq!(
                load(&folder.path().join(format!("round-{round:06}")), &layout()).unwrap().state,
                state(round)
            );
        }
    }
}
