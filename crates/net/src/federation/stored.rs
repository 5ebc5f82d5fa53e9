//! The updates of a round as the server reads them: from the ledger's files, each opened once.

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
    /// An update that is on the disk.
    Update(StoredUpdate),
    /// Why there is none that counts.
    Failure(ClientFailure),
}

/// An update on the disk that passed every check when it arrived.
#[derive(Clone, Debug)]
pub(crate) struct StoredUpdate {
    /// SHA-256 of its bytes.
    pub(crate) hash: String,
    /// How many bytes.
    pub(crate) bytes: u64,
    /// Where its values are.
    pub(crate) head: UploadHead,
    /// What the check found.
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

    /// The answer as the ledger freezes it.
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

/// Where an update is read from.
enum Source {
    Open(File),
    /// Opened for each read: a process may not have more open files than this.
    Path(PathBuf),
}

/// Updates that are kept open; systems allow a process 1024 open files or fewer by default.
const MOST_OPEN: usize = 512;

impl Stored {
    /// The frozen answers of a round, in client order.
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
                    let source = if open < MOST_OPEN {
                        open += 1;
                        Source::Open(File::open(path).map_err(|error| unread(client, &error))?)
                    } else {
                        Source::Path(path)
                    };
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
