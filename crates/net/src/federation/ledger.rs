//! What was accepted: files whose rename is the commit.
//!
//! ```text
//! federation/lock                             one server at a time
//! federation/run.json                         the run's name and roster
//! federation/round-000003/open.json           the roster, on disk before the first job goes out
//! federation/round-000003/client-7-HASH       an accepted update
//! federation/round-000003/closed.json         the round's answers, frozen before they are summed up
//! ```
//!
//! An update is written beside its place, synced, renamed, and the folder synced; then it is acknowledged. So the
//! folder's entries are the one source of truth: there is no second record (a database's row beside a file's bytes)
//! that a crash could leave in disagreement, and updates of 45 MB are written once. The name holds the hash, which is
//! checked when a server starts again. Updates go when the checkpoint after their round is on the disk; `closed.json`
//! stays.

use crate::federation::stored::StoredUpdate;
use data_encoding::HEXLOWER;
use fedtvd_core::bytes::UploadStream;
use fedtvd_core::labels::Reference;
use fedtvd_core::round::{ClientFailure, ClientId, Profile};
use fedtvd_run::directory::FileError;
use fedtvd_run::directory::files::{doing, read_text, sync, write};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, TryLockError};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The folder of a federation.
#[derive(Debug)]
pub struct Ledger {
    folder: PathBuf,
    /// Held while the server lives; the system lets go of it whatever ends the process.
    _lock: File,
}

/// Why the ledger cannot be used.
#[derive(Debug, Error)]
pub enum LedgerError {
    /// A file.
    #[error(transparent)]
    File(#[from] FileError),
    /// Another server is at work.
    #[error("another server is at work in {0}")]
    Locked(String),
    /// A file that does not read.
    #[error("{path} is damaged: {why}")]
    Damaged {
        /// Which.
        path: String,
        /// In what way.
        why: String,
    },
}

/// What a round begins with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Opening {
    /// Enrolled clients, by id.
    pub roster: Vec<Profile>,
    /// Q.
    pub reference: Reference,
}

/// A round's answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Closing {
    /// Enrolled clients.
    pub roster: Vec<ClientId>,
    /// Who answered what.
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
        /// Bytes.
        bytes: u64,
    },
    /// Why there is none that counts.
    Failure(ClientFailure),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Name {
    run: String,
    /// The clients that it waits for, and no others.
    #[serde(default)]
    roster: Option<BTreeSet<ClientId>>,
}

impl Ledger {
    /// The ledger in this folder, for this process alone.
    pub fn open(folder: &Path) -> Result<Self, LedgerError> {
        fs::create_dir_all(folder).map_err(doing("making", folder))?;
        let path = folder.join("lock");
        let lock = File::create(&path).map_err(doing("opening", &path))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { folder: folder.to_owned(), _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(LedgerError::Locked(folder.display().to_string())),
            Err(TryLockError::Error(error)) => Err(doing("locking", &path)(error).into()),
        }
    }

    /// The roster that the run in this folder began with, if it began: none where anybody listed may join.
    pub fn roster(folder: &Path) -> Result<Option<Option<BTreeSet<ClientId>>>, LedgerError> {
        Ok(read_json::<Name>(&folder.join("run.json"))?.map(|name| name.roster))
    }

    /// The run's name; a new one gets this, and this roster.
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

    fn round(&self, round: u32) -> PathBuf {
        self.folder.join(format!("round-{round:06}"))
    }

    /// What a round began with, if it began.
    pub fn opening(&self, round: u32) -> Result<Option<Opening>, LedgerError> {
        read_json(&self.round(round).join("open.json"))
    }

    /// Begins a round.
    pub fn begin(&self, round: u32, opening: &Opening) -> Result<(), LedgerError> {
        let folder = self.round(round);
        fs::create_dir_all(&folder).map_err(doing("making", &folder))?;
        write_json(&folder.join("open.json"), opening)?;
        Ok(sync(&self.folder)?)
    }

    /// A round's frozen answers, if it was closed.
    pub fn closing(&self, round: u32) -> Result<Option<Closing>, LedgerError> {
        read_json(&self.round(round).join("closed.json"))
    }

    /// Freezes a round's answers.
    pub fn close(&self, round: u32, closing: &Closing) -> Result<(), LedgerError> {
        Ok(write_json(&self.round(round).join("closed.json"), closing)?)
    }

    /// Where an update is written before it is accepted.
    pub fn beside(&self, round: u32, client: ClientId) -> PathBuf {
        self.round(round).join(format!("client-{client}.partial"))
    }

    /// Where an accepted update is.
    pub fn place(&self, round: u32, client: ClientId, hash: &str) -> PathBuf {
        self.round(round).join(format!("client-{client}-{hash}"))
    }

    /// Accepts an update whose bytes are on the disk beside their place. When this returns, it is for good.
    pub fn commit(&self, round: u32, client: ClientId, hash: &str) -> Result<(), FileError> {
        let place = self.place(round, client, hash);
        fs::rename(self.beside(round, client), &place).map_err(doing("writing", &place))?;
        sync(&self.round(round)).inspect_err(|_| {
            // Not acknowledged, so it must not be found later beside other bytes that are.
            let _ = fs::remove_file(&place);
        })
    }

    /// The accepted updates of a round, after a restart: those whose bytes have the hash of their name and pass the
    /// check again. What a crash left half done, or a disk has changed, is removed and noted.
    pub(crate) fn recover(
        &self,
        round: u32,
        check: &dyn Fn(ClientId, u64) -> Option<UploadStream>,
    ) -> Result<(BTreeMap<ClientId, StoredUpdate>, Vec<String>), LedgerError> {
        let folder = self.round(round);
        let (mut updates, mut notes) = (BTreeMap::new(), Vec::new());
        for entry in fs::read_dir(&folder).map_err(doing("reading", &folder))? {
            let path = entry.map_err(doing("reading", &folder))?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let Some(rest) = name.strip_prefix("client-") else { continue };
            let place = rest.split_once('-').and_then(|(client, hash)| Some((client.parse().ok()?, hash)));
            let update = match place {
                Some((client, hash)) => {
                    let check = |bytes| check(client, bytes);
                    read_update(&path, hash, &check)
                        .map_err(doing("reading", &path))?
                        .map(|update| (client, update))
                }
                None => None,
            };
            let Some((client, update)) = update else {
                fs::remove_file(&path).map_err(doing("removing", &path))?;
                if place.is_some() {
                    notes.push(format!("{} is damaged; its client is asked again", path.display()));
                }
                continue;
            };
            if let Some(other) = updates.insert(client, update) {
                // Which of them was acknowledged nobody knows; the same job gives the same bytes again.
                updates.remove(&client);
                for path in [self.place(round, client, &other.hash), path] {
                    fs::remove_file(&path).map_err(doing("removing", &path))?;
                }
                notes.push(format!("client {client} has two updates; it is asked again"));
            }
        }
        // A process that was killed between rename and sync left names that a crash of the machine could still undo.
        sync(&folder)?;
        Ok((updates, notes))
    }

    /// Lets the updates of all rounds before this one go.
    pub fn clean(&self, before: u32) -> Result<(), LedgerError> {
        for entry in fs::read_dir(&self.folder).map_err(doing("reading", &self.folder))? {
            let path = entry.map_err(doing("reading", &self.folder))?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let round: Option<u32> = name.strip_prefix("round-").and_then(|round| round.parse().ok());
            if round.is_none_or(|round| round >= before) || !path.join("open.json").exists() {
                continue;
            }
            for update in fs::read_dir(&path).map_err(doing("reading", &path))? {
                let update = update.map_err(doing("reading", &path))?.path();
                let name = update.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                if name.starts_with("client-") {
                    fs::remove_file(&update).map_err(doing("removing", &update))?;
                }
            }
            // Without it the folder is clean.
            let open = path.join("open.json");
            fs::remove_file(&open).map_err(doing("removing", &open))?;
        }
        Ok(())
    }
}

/// The update in a file, if its bytes have this hash and pass the check: one read.
fn read_update(
    path: &Path,
    expected: &str,
    check: &dyn Fn(u64) -> Option<UploadStream>,
) -> std::io::Result<Option<StoredUpdate>> {
    let mut file = File::open(path)?;
    let bytes = file.metadata()?.len();
    let Some(mut stream) = check(bytes) else { return Ok(None) };
    let (mut hash, mut block) = (Sha256::new(), vec![0; 1 << 16]);
    loop {
        let read = file.read(&mut block)?;
        if read == 0 {
            break;
        }
        hash.update(&block[..read]);
        stream.feed(&block[..read]);
    }
    let hash = HEXLOWER.encode(&hash.finalize());
    let update = stream.finish().ok().filter(|_| hash == expected);
    Ok(update.map(|(head, checked)| StoredUpdate { hash, bytes, head, checked }))
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
mod tests {
    use super::*;
    use fedtvd_core::memory::Memory;
    use fedtvd_core::model::{Layout, Params};
    use fedtvd_core::round::{Job, Offer, Report, Upload};
    use fedtvd_core::rules::Needs;
    use fedtvd_core::stream::Key;
    use fedtvd_core::train::Local;
    use std::sync::Arc;

    fn opened() -> (tempfile::TempDir, Ledger) {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::open(folder.path()).unwrap();
        ledger.begin(3, &Opening { roster: Vec::new(), reference: Reference::uniform(2) }).unwrap();
        (folder, ledger)
    }

    fn job(client: ClientId) -> Job {
        let offer = Offer {
            round: 3,
            strategy: "fedavg".to_owned(),
            local: Local::default(),
            reference: Reference::uniform(2),
            params: Arc::new(Params::zeros(Arc::new(Layout::vector(1)))),
            carried: Arc::default(),
        };
        Job { client, key: Key::of(1), accepted: None, offer: Arc::new(offer) }
    }

    fn upload(client: ClientId, value: f32) -> Vec<u8> {
        let params = Params { layout: Arc::new(Layout::vector(1)), values: vec![value] };
        let report = Report { round: 3, steps: 1, reach: 0.01, losses: [1.0, 1.0], remembers: true };
        Upload { client, params, carried: Memory::default(), report }.to_bytes()
    }

    fn keep(ledger: &Ledger, client: ClientId, bytes: &[u8]) -> String {
        let hash = fedtvd_run::directory::sha256(bytes);
        fs::write(ledger.beside(3, client), bytes).unwrap();
        ledger.commit(3, client, &hash).unwrap();
        hash
    }

    fn recovered(ledger: &Ledger) -> (Vec<(ClientId, String, u64)>, Vec<String>) {
        let check = |client, bytes| Some(UploadStream::new(Needs::default(), 10, job(client), bytes));
        let (updates, notes) = ledger.recover(3, &check).unwrap();
        (updates.into_iter().map(|(client, update)| (client, update.hash, update.bytes)).collect(), notes)
    }

    #[test]
    fn what_was_committed_is_there_after_a_restart_and_nothing_else() {
        let (_folder, ledger) = opened();
        let bytes = upload(7, 1.0);
        let hash = keep(&ledger, 7, &bytes);
        fs::write(ledger.beside(3, 8), b"half of ei").unwrap();
        let nine = keep(&ledger, 9, &upload(9, 1.0));
        fs::write(ledger.place(3, 9, &nine), upload(9, 2.0)).unwrap();
        // The right hash, but no update that the round could accept.
        let ten = keep(&ledger, 10, &upload(10, f32::NAN));
        let (updates, notes) = recovered(&ledger);
        assert_eq!(updates, [(7, hash, bytes.len() as u64)]);
        assert_eq!(notes.len(), 2);
        assert!(!ledger.beside(3, 8).exists() && !ledger.place(3, 10, &ten).exists());
    }

    #[test]
    fn of_two_updates_of_one_client_neither_counts() {
        let (_folder, ledger) = opened();
        let [one, other] = [1.0, 2.0].map(|value| keep(&ledger, 7, &upload(7, value)));
        let bytes = upload(8, 1.0);
        let eight = keep(&ledger, 8, &bytes);
        let (updates, notes) = recovered(&ledger);
        assert_eq!(updates, [(8, eight, bytes.len() as u64)]);
        assert_eq!(notes, ["client 7 has two updates; it is asked again"]);
        assert!(!ledger.place(3, 7, &one).exists() && !ledger.place(3, 7, &other).exists());
    }

    #[test]
    fn a_second_server_is_kept_out_until_the_first_is_gone() {
        let (folder, ledger) = opened();
        assert!(matches!(Ledger::open(folder.path()), Err(LedgerError::Locked(_))));
        drop(ledger);
        assert!(Ledger::open(folder.path()).is_ok());
    }

    #[test]
    fn updates_go_when_their_round_is_over_and_its_answers_stay() {
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
}
