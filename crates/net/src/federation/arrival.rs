//! An upload while it is received. Everything here blocks, and knows nothing of the network.

use crate::federation::admission::{Member, disk};
use crate::federation::partial::{Partial, Unacceptable};
use crate::federation::phase::Phase;
use crate::federation::stored::Reply;
use crate::federation::{Coordinator, Event};
use crate::server::refusal::{Refusal, plain};
use fedtvd_core::round::{ClientFailure, ClientId};
use fedtvd_run::directory::disk::{open, remove_file, sync_file, truncate, write};
use fedtvd_run::directory::files::{create, private};
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// An upload while it is received. If it is dropped before its end, its bytes are kept for the next one of the same update.
pub(crate) struct Arrival {
    pub(super) coordinator: Arc<Coordinator>,
    pub(super) member: Member,
    pub(crate) client: ClientId,
    pub(crate) round: u32,
    /// The file for its bytes until it is accepted.
    pub(super) path: PathBuf,
    /// What has arrived; `None` once there is nothing to continue.
    pub(super) partial: Option<Partial>,
    /// The open file.
    pub(super) file: Option<File>,
}

impl Drop for Arrival {
    fn drop(&mut self) {
        if !self.keep() {
            // Before the next upload of this client may write to the same file; after a commit the file no longer exists.
            let _ = remove_file(&self.path);
        }
        self.coordinator.inner().sending.remove(&self.client);
    }
}

impl Arrival {
    /// Announced number of bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.partial.as_ref().map_or(0, |partial| partial.bytes)
    }

    /// Opens its file. Returns the number of bytes that it has already: the upload begins there.
    pub(crate) fn begin(&mut self) -> Result<u64, Refusal> {
        let got = self.partial.as_ref().map_or(0, |partial| partial.got);
        let opened = match got {
            0 => create(&self.path),
            _ => self.open_at(got),
        };
        self.file = Some(opened.map_err(|error| self.give_up(&error))?);
        Ok(got)
    }

    /// The file with exactly its first bytes, to append to.
    fn open_at(&self, got: u64) -> io::Result<File> {
        let file = open(private().append(true), &self.path)?;
        if file.metadata()?.len() < got {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        truncate(&file, &self.path, got)?;
        Ok(file)
    }

    /// Stores, hashes and checks the next bytes.
    pub(crate) fn write(&mut self, part: &[u8]) -> Result<(), Refusal> {
        let (Some(partial), Some(file)) = (&mut self.partial, &self.file) else {
            return Err(Refusal::Disk);
        };
        if partial.got + part.len() as u64 > partial.bytes {
            let bytes = partial.bytes;
            self.partial = None;
            return Err(Refusal::Overrun(bytes));
        }
        if let Err(error) = write(file, &self.path, part) {
            return Err(self.give_up(&error));
        }
        partial.feed(part);
        Ok(())
    }

    /// Accepts a complete update, if its client may still take part. When this returns, the update is durable.
    pub(crate) fn accept(mut self, still: impl FnOnce() -> Result<(), Refusal>) -> Result<(), Refusal> {
        let (Some(file), Some(partial)) = (&self.file, &self.partial) else { return Err(Refusal::Disk) };
        if partial.got < partial.bytes {
            return Err(Refusal::Truncated { got: partial.got, bytes: partial.bytes });
        }
        if let Err(error) = sync_file(file, &self.path) {
            return Err(self.give_up(&error));
        }
        still()?;
        let (client, round, coordinator) = (self.client, self.round, &self.coordinator);
        let Some(partial) = self.partial.take() else { return Err(Refusal::Disk) };
        let announced = partial.hash.clone();
        match partial.finish() {
            Err(Unacceptable::Hash(got)) => Err(Refusal::WrongHash { got, announced }),
            Err(Unacceptable::Failure(failure)) => {
                let failure = match failure {
                    ClientFailure::Unreadable(why) => ClientFailure::Unreadable(plain(&why)),
                    other => other,
                };
                coordinator.answer(client, round, Reply::Failure(failure.clone()), None)?;
                Err(Refusal::Update(failure))
            }
            Ok(update) => {
                let Member { peer, certificate, .. } = self.member.clone();
                let (bytes, round_number) = (update.bytes, round + 1);
                let event = Event::Accepted {
                    client,
                    round: round_number,
                    bytes,
                    update: announced,
                    peer,
                    certificate,
                };
                coordinator.answer(client, round, Reply::Update(update), Some(&event))
            }
        }
    }

    /// Ends an upload that the disk failed; the next one begins at its first byte.
    fn give_up(&mut self, error: &io::Error) -> Refusal {
        self.partial = None;
        disk(error)
    }

    /// Keeps what has arrived for the next upload of the same update, if its round is still open.
    fn keep(&mut self) -> bool {
        let Some(partial) = self.partial.take().filter(|partial| partial.got > 0) else { return false };
        match &mut self.coordinator.inner().phase {
            Phase::Training(open) if open.round == self.round => {
                open.partial.insert(self.client, partial);
                true
            }
            _ => false,
        }
    }
}
