//! Going back to an earlier round of a federation. What the run directory does is in `fedtvd_run`'s `rollback.rs`; here
//! the ledger follows, and the clients' memories restart.

use crate::federation::ledger::{Ledger, LedgerError};
use crate::federation::{Event, FederationError, Log};
use fedtvd_core::model::Layout;
use fedtvd_core::round::{Run, State};
use fedtvd_run::RunError;
use fedtvd_run::directory::files::{doing, make_folder, sync};
use fedtvd_run::directory::rollback::{Begun, begin, begun, ended_at};
use fedtvd_run::directory::{Lines, RunDirectory, disk};
use std::path::Path;
use std::sync::Arc;

/// Rolls a federation back to a round if asked to, after completing a rollback that a crash interrupted. The caller
/// holds the ledger, so no server is running.
pub(super) fn roll_back(
    directory: &RunDirectory,
    ledger: &Ledger,
    layout: &Arc<Layout>,
    to: Option<u32>,
    log: &Log,
) -> Result<(), FederationError> {
    let interrupted = begun(directory).map_err(RunError::from)?;
    if interrupted.is_none() && to.is_none() {
        return Ok(());
    }
    let mut lines = directory.lock().map_err(RunError::from)?;
    if let Some(interrupted) = interrupted {
        complete(directory, ledger, interrupted, &mut lines, log)?;
    }
    let Some(to) = to else { return Ok(()) };
    let done = directory.lines().map_err(RunError::from)?.len() as u32;
    // Updates of the open round come from the clients that the operator may no longer trust.
    if to == done && ledger.rounds()?.iter().all(|(round, _)| *round < to) {
        log(&Event::Note { note: format!("round {to} is the last round: there is nothing to roll back") });
        return Ok(());
    }
    let begun = begin(directory, layout, to).map_err(RunError::from)?;
    complete(directory, ledger, begun, &mut lines, log)
}

fn complete(
    directory: &RunDirectory,
    ledger: &Ledger,
    begun: Begun,
    lines: &mut Lines,
    log: &Log,
) -> Result<(), FederationError> {
    ledger.set_aside(begun.rollback.to, &begun.folder)?;
    let rollback = begun.complete(lines).map_err(RunError::from)?;
    let record = rollback.folder(directory).display().to_string();
    log(&Event::RolledBack { from: rollback.from, to: rollback.to, record });
    Ok(())
}

/// Restarts the clients' memories if the run continues after a rollback: sites keep only their newest memories, which
/// belong to discarded rounds.
pub(super) fn restart_memories(
    directory: &RunDirectory,
    run: &Run,
    state: &mut State,
    log: &Log,
) -> Result<(), FederationError> {
    let rolled_back = ended_at(directory, state.round).map_err(RunError::from)?.is_some();
    if rolled_back && run.strategy.needs().remembers {
        state.restart_memories(run);
        let label = &run.strategy.label;
        let note = format!(
            "round {} follows a rollback: the state that clients of {label} keep between rounds starts again from zero",
            state.round + 1
        );
        log(&Event::Note { note });
    }
    Ok(())
}

impl Ledger {
    /// Moves the answers of this round and later ones to another folder, and removes their updates. May be repeated.
    fn set_aside(&self, first: u32, to: &Path) -> Result<(), LedgerError> {
        for (_, path) in self.rounds()?.into_iter().filter(|(round, _)| *round >= first) {
            let closed = path.join("closed.json");
            if let (true, Some(name)) = (closed.exists(), path.file_name()) {
                let kept = to.join(name);
                make_folder(&kept)?;
                let place = kept.join("closed.json");
                disk::rename(&closed, &place).map_err(doing("writing", &place))?;
                sync(&kept)?;
                // The folder's own entry, too, before the answers are removed from where they were.
                sync(to)?;
            }
            disk::remove_folder(&path).map_err(doing("removing", &path))?;
        }
        Ok(sync(&self.folder)?)
    }
}

#[cfg(test)]
mod tests {
    use crate::federation::ledger::Closing;
    use crate::federation::ledger::tests::{keep, opened};
    use std::collections::BTreeMap;
    use std::fs;

    #[test]
    fn answers_of_later_rounds_are_set_aside_even_if_a_crash_interrupts_it() {
        let (_folder, ledger) = opened();
        let closing = Closing { roster: vec![7], answers: BTreeMap::new() };
        let hash = keep(&ledger, 7, b"seven");
        for round in [2, 3] {
            fs::create_dir_all(ledger.round(round)).unwrap();
            ledger.close(round, &closing).unwrap();
        }
        let record = tempfile::tempdir().unwrap();
        let moved = record.path().join("round-000003");
        // The answers were moved, and their round was not removed yet.
        fs::create_dir(&moved).unwrap();
        fs::rename(ledger.round(3).join("closed.json"), moved.join("closed.json")).unwrap();
        ledger.set_aside(3, record.path()).unwrap();
        assert!(moved.join("closed.json").is_file() && !ledger.place(3, 7, &hash).exists());
        assert_eq!(ledger.closing(2).unwrap(), Some(closing));
        ledger.set_aside(2, record.path()).unwrap();
        assert!(record.path().join("round-000002/closed.json").is_file());
        assert!(ledger.rounds().unwrap().is_empty());
    }
}
