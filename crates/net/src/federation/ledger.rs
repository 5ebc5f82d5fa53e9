//! The accepted updates on disk: renaming a file into place is the commit.
//!
//! ```text
//! federation/lock                             one server at a time
//! federation/lease                            when the last server started
//! federation/run.json                         the run's id and roster
//! federation/address                          where the server listens
//! federation/log.jsonl                        events, for operators
//! federation/audit.jsonl                      events, chained by hashes (audit.rs)
//! federation/timings.json                     the slowest site's time in each of the last rounds (deadline.rs)
//! federation/round-000003/open.json           the roster, on disk before the first job is sent
//! federation/round-000003/client-7-HASH-BYTES.partial   an upload that broke off and can be continued (partial.rs)
//! federation/round-000003/client-7-HASH       an accepted update
//! federation/round-000003/closed.json         the round's answers, on disk before they are aggregated
//! ```
//!
//! An update is written to a temporary file, synced, renamed, and the folder synced; then it is acknowledged. So the
//! folder's entries are the single source of truth: there is no second record, such as a database row, that could
//! disagree with them after a crash, and updates of 45 MB are written once. The file name holds the hash, which is
//! verified when a server restarts. Updates are removed once the checkpoint after their round is on disk; `closed.json`
//! is kept.

use crate::federation::lease;
use fedtvd_core::labels::Reference;
use fedtvd_core::round::{ClientFailure, ClientId, Profile};
use fedtvd_run::directory::files::{create, doing, make_folder, read_text, sync, write};
use fedtvd_run::directory::{FileError, disk};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use thiserror::Error;

/// The folder of a federation.
#[derive(Debug)]
pub struct Ledger {
    pub(super) folder: PathBuf,
    /// Files of updates that were not accepted and could not be removed.
    left: Mutex<BTreeMap<ClientId, PathBuf>>,
    /// Which start of a server this is.
    pub(crate) lease: u64,
    /// The round that `clean` was last called with in this process; all before it are clean.
    cleaned: AtomicU32,
    /// Held while the server runs; the system releases it however the process ends.
    _lock: File,
}

/// Why the ledger cannot be used.
#[derive(Debug, Error)]
pub enum LedgerError {
    /// A file.
    #[error(transparent)]
    File(#[from] FileError),
    /// Another server uses the ledger.
    #[error("another server is using {0}")]
    Locked(String),
    /// A file that cannot be parsed.
    #[error("{path} is damaged: {why}")]
    Damaged {
        /// The file.
        path: String,
        /// What is wrong.
        why: String,
    },
}

/// The roster and reference that a round begins with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Opening {
    /// Enrolled clients, by id.
    pub roster: Vec<Profile>,
    /// The reference label distribution Q.
    pub reference: Reference,
}

/// A round's answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Closing {
    /// Enrolled clients.
    pub roster: Vec<ClientId>,
    /// Each client's answer.
    pub answers: BTreeMap<ClientId, Answer>,
}

/// One client's answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// An update of this hash and length.
    Update {
        /// SHA-256.
        hash: String,
        /// Number of bytes.
        bytes: u64,
    },
    /// Why there is no accepted update.
    Failure(ClientFailure),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Name {
    run: String,
    /// The only clients that may take part; `None` without a roster.
    #[serde(default)]
    roster: Option<BTreeSet<ClientId>>,
}

impl Ledger {
    /// Opens the ledger in this folder exclusively.
    pub fn open(folder: &Path) -> Result<Self, LedgerError> {
        make_folder(folder)?;
        let path = folder.join("lock");
        let lock = create(&path).map_err(doing("opening", &path))?;
        match lock.try_lock() {
            Ok(()) => {
                let (folder, left, lease) = (folder.to_owned(), Mutex::default(), lease::take(folder)?);
                Ok(Self { folder, left, lease, cleaned: AtomicU32::new(0), _lock: lock })
            }
            Err(TryLockError::WouldBlock) => Err(LedgerError::Locked(folder.display().to_string())),
            Err(TryLockError::Error(error)) => Err(doing("locking", &path)(error).into()),
        }
    }

    /// Whether a server is running in this folder. While it looks, for a moment, a server that starts is refused.
    pub fn in_use(folder: &Path) -> bool {
        let lock = File::open(folder.join("lock"));
        lock.is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }

    /// The roster of the run in this folder: `None` without a run, `Some(None)` if any listed client may join.
    pub fn roster(folder: &Path) -> Result<Option<Option<BTreeSet<ClientId>>>, LedgerError> {
        Ok(read_json::<Name>(&folder.join("run.json"))?.map(|name| name.roster))
    }

    /// The run's id; a new run gets this id and this roster.
    pub fn run(&self, new: &str, roster: Option<&BTreeSet<ClientId>>) -> Result<String, LedgerError> {
        let path = self.folder.join("run.json");
        match read_json::<Name>(&path)? {
            Some(name) => Ok(name.run),
            None => {
                write_json(&path, &Name { run: new.to_owned(), roster: roster.cloned() })?;
                Ok(new.to_owned())
            }
        }
    }

    pub(super) fn round(&self, round: u32) -> PathBuf {
        self.folder.join(format!("round-{round:06}"))
    }

    /// The opening of a round, if it was opened.
    pub fn opening(&self, round: u32) -> Result<Option<Opening>, LedgerError> {
        read_json(&self.round(round).join("open.json"))
    }

    /// Records the opening of a round.
    pub fn begin(&self, round: u32, opening: &Opening) -> Result<(), LedgerError> {
        let folder = self.round(round);
        make_folder(&folder)?;
        write_json(&folder.join("open.json"), opening)?;
        Ok(sync(&self.folder)?)
    }

    /// The answers of a round, if it was closed.
    pub fn closing(&self, round: u32) -> Result<Option<Closing>, LedgerError> {
        read_json(&self.round(round).join("closed.json"))
    }

    /// Records the answers of a round, which are final.
    pub fn close(&self, round: u32, closing: &Closing) -> Result<(), LedgerError> {
        Ok(write_json(&self.round(round).join("closed.json"), closing)?)
    }

    /// The file of an update, announced with this hash and length, before it is accepted.
    pub fn partial(&self, round: u32, client: ClientId, hash: &str, bytes: u64) -> PathBuf {
        self.round(round).join(format!("client-{client}-{hash}-{bytes}.partial"))
    }

    /// The file of an accepted update.
    pub fn place(&self, round: u32, client: ClientId, hash: &str) -> PathBuf {
        self.round(round).join(format!("client-{client}-{hash}"))
    }

    /// Accepts an update whose temporary file is on disk. When this returns, the update is durable.
    pub fn commit(&self, round: u32, client: ClientId, hash: &str, bytes: u64) -> Result<(), FileError> {
        let place = self.place(round, client, hash);
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(other) = left.get(&client).filter(|other| **other != place) {
            remove(other)?;
        }
        left.remove(&client);
        let renamed = disk::rename(&self.partial(round, client, hash, bytes), &place);
        let committed = renamed.map_err(doing("writing", &place)).and_then(|()| sync(&self.round(round)));
        // It was not acknowledged, so it must not be found later next to one that was. A rename may have happened although
        // it was reported as failed.
        if committed.is_err() && remove(&place).is_err() {
            left.insert(client, place);
        }
        committed
    }

    /// The rounds of the ledger, oldest first, and their folders.
    pub(super) fn rounds(&self) -> Result<Vec<(u32, PathBuf)>, LedgerError> {
        Self::rounds_in(&self.folder)
    }

    /// The same of the ledger in this folder, which may be in use.
    pub(super) fn rounds_in(folder: &Path) -> Result<Vec<(u32, PathBuf)>, LedgerError> {
        let mut rounds = Vec::new();
        for entry in fs::read_dir(folder).map_err(doing("reading", folder))? {
            let path = entry.map_err(doing("reading", folder))?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if let Some(round) = name.strip_prefix("round-").and_then(|round| round.parse().ok()) {
                rounds.push((round, path));
            }
        }
        rounds.sort();
        Ok(rounds)
    }

    /// Removes the updates of all rounds before this one.
    pub fn clean(&self, before: u32) -> Result<(), LedgerError> {
        // A long run has thousands of folders, and after the first call all but one are clean.
        let rounds = match self.cleaned.load(Relaxed) {
            cleaned if cleaned > 0 && before.checked_sub(1) == Some(cleaned) => {
                vec![(cleaned, self.round(cleaned))]
            }
            _ => self.rounds()?,
        };
        for (round, path) in rounds {
            if round >= before || !path.join("open.json").exists() {
                continue;
            }
            for update in fs::read_dir(&path).map_err(doing("reading", &path))? {
                let update = update.map_err(doing("reading", &path))?.path();
                let name = update.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                if name.starts_with("client-") {
                    remove(&update)?;
                }
            }
            // Last, because its absence marks the folder as clean.
            let open = path.join("open.json");
            disk::remove_file(&open).map_err(doing("removing", &open))?;
        }
        self.cleaned.store(before, Relaxed);
        Ok(())
    }
}

/// Removes a file, which an upload that broke off may have removed already.
pub(super) fn remove(path: &Path) -> Result<(), FileError> {
    match disk::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(doing("removing", path)(error)),
        _ => Ok(()),
    }
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<(), FileError> {
    let text = serde_json::to_string_pretty(value).expect("records are plain data");
    write(path, text.as_bytes())
}

fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<Option<T>, LedgerError> {
    if !path.exists() {
        return Ok(None);
    }
    let damaged = |error: serde_json::Error| LedgerError::Damaged {
        path: path.display().to_string(),
        why: error.to_string(),
    };
    serde_json::from_str(&read_text(path)?).map(Some).map_err(damaged)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::federation) fn opened() -> (tempfile::TempDir, Ledger) {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::open(folder.path()).unwrap();
        ledger.begin(3, &Opening { roster: Vec::new(), reference: Reference::uniform(2) }).unwrap();
        (folder, ledger)
    }

    pub(in crate::federation) fn keep(ledger: &Ledger, client: ClientId, bytes: &[u8]) -> String {
        let hash = fedtvd_run::directory::sha256(bytes);
        let len = bytes.len() as u64;
        fs::write(ledger.partial(3, client, &hash, len), bytes).unwrap();
        ledger.commit(3, client, &hash, len).unwrap();
        hash
    }

    #[test]
    fn a_second_server_is_refused_until_the_first_ends() {
        let (folder, ledger) = opened();
        assert!(matches!(Ledger::open(folder.path()), Err(LedgerError::Locked(_))));
        drop(ledger);
        assert!(Ledger::open(folder.path()).is_ok());
    }

    #[test]
    fn updates_are_removed_after_their_round_and_its_answers_are_kept() {
        let (_folder, ledger) = opened();
        let hash = keep(&ledger, 7, b"seven");
        let closing = Closing { roster: vec![7], answers: BTreeMap::new() };
        ledger.close(3, &closing).unwrap();
        ledger.clean(3).unwrap();
        assert!(ledger.place(3, 7, &hash).exists());
        ledger.clean(4).unwrap();
        assert!(!ledger.place(3, 7, &hash).exists());
        assert_eq!(ledger.closing(3).unwrap(), Some(closing));
    }

    #[test]
    fn the_first_cleaning_after_a_start_removes_the_updates_of_all_earlier_rounds() {
        let (folder, ledger) = opened();
        let places = [3, 4, 5].map(|round| {
            ledger.begin(round, &Opening { roster: Vec::new(), reference: Reference::uniform(2) }).unwrap();
            let place = ledger.place(round, 7, "hash");
            fs::write(&place, "update").unwrap();
            place
        });
        drop(ledger);
        Ledger::open(folder.path()).unwrap().clean(5).unwrap();
        assert_eq!(places.map(|place| place.exists()), [false, false, true]);
    }
}
