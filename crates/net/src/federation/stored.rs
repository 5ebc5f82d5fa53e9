//! Reads the updates of a round from the ledger's files, each opened once.

use crate::federation::ledger::{Answer, Ledger};
use fedtvd_core::bytes::UploadHead;
use fedtvd_core::round::{Checked, ClientFailure, ClientId, Outcome, ReadFailure, UpdatePart, Updates};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::ops::Range;
use std::path::PathBuf;

/// A client's answer in the open round.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// An update on disk.
    Update(StoredUpdate),
    /// Why there is no accepted update.
    Failure(ClientFailure),
}

/// An update on disk that passed every check on arrival.
#[derive(Clone, Debug)]
pub(crate) struct StoredUpdate {
    /// SHA-256 of its bytes.
    pub(crate) hash: String,
    /// Number of bytes.
    pub(crate) bytes: u64,
    /// Its head, with the offsets of its values.
    pub(crate) head: UploadHead,
    /// The result of the check.
    pub(crate) checked: Checked,
}

impl Reply {
    /// The update, if it is one.
    pub(crate) fn update(&self) -> Option<&StoredUpdate> {
        match self {
            Self::Update(update) => Some(update),
            Self::Failure(_) => None,
        }
    }

    /// The answer as stored in the ledger.
    pub(crate) fn answer(&self) -> Answer {
        match self {
            Self::Update(StoredUpdate { hash, bytes, .. }) => {
                Answer::Update { hash: hash.clone(), bytes: *bytes }
            }
            Self::Failure(failure) => Answer::Failure(failure.clone()),
        }
    }
}

/// The updates of a round.
pub(crate) struct Stored {
    outcomes: Vec<Outcome>,
    updates: Vec<Option<(Source, UploadHead)>>,
}

/// The source of an update.
enum Source {
    Open(File),
    /// Opened for each read, because the number of open files is limited.
    Path(PathBuf),
}

/// Maximum number of updates kept open; many systems limit a process to 1024 open files by default.
const MOST_OPEN: usize = 128;

impl Stored {
    /// The answers of a closed round, in client order.
    pub(crate) fn new(
        ledger: &Ledger,
        round: u32,
        replies: BTreeMap<ClientId, Reply>,
    ) -> Result<Self, ReadFailure> {
        let (mut outcomes, mut updates, mut open) = (Vec::new(), Vec::new(), 0);
        for (client, reply) in replies {
            let (answer, update) = match reply {
                Reply::Failure(failure) => (Err(failure), None),
                Reply::Update(StoredUpdate { hash, head, checked, .. }) => {
                    let path = ledger.place(round, client, &hash);
                    open += 1;
                    let file = if open <= MOST_OPEN { File::open(&path).ok() } else { None };
                    let source = file.map_or(Source::Path(path), Source::Open);
                    (Ok(checked), Some((source, head)))
                }
            };
            outcomes.push(Outcome { client, answer });
            updates.push(update);
        }
        Ok(Self { outcomes, updates })
    }
}

impl Updates for Stored {
    fn outcomes(&self) -> &[Outcome] {
        &self.outcomes
    }

    fn read(
        &self,
        index: usize,
        part: UpdatePart<'_>,
        range: Range<usize>,
        out: &mut [f32],
    ) -> Result<(), ReadFailure> {
        let client = self.outcomes[index].client;
        let place = self.updates[index].as_ref().and_then(|(source, head)| Some((source, head.place(part)?)));
        let (source, start) = match place {
            Some((source, (start, len))) if range.end <= len => (source, start + 4 * range.start as u64),
            _ => return Err(unread(client, &"it is too short")),
        };
        let mut bytes = vec![0; 4 * out.len()];
        let read = match source {
            Source::Open(file) => read_at(file, start, &mut bytes),
            Source::Path(path) => File::open(path).and_then(|file| read_at(&file, start, &mut bytes)),
        };
        read.map_err(|error| unread(client, &error))?;
        for (out, value) in out.iter_mut().zip(bytes.as_chunks().0) {
            *out = f32::from_le_bytes(*value);
        }
        Ok(())
    }
}

fn read_at(mut file: &File, start: u64, bytes: &mut [u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(start))?;
    file.read_exact(bytes)
}

fn unread(client: ClientId, why: &dyn std::fmt::Display) -> ReadFailure {
    ReadFailure { client, why: why.to_string() }
}
