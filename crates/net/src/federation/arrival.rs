//! An upload while it is received. Everything here blocks, and knows nothing of the network.

use crate::federation::admission::{Member, disk};
use crate::federation::partial::{Partial, Unacceptable};
use crate::federation::phase::Phase;
use crate::federation::received::Received;
use crate::federation::stored::Reply;
use crate::federation::{Coordinator, Event};
use crate::server::refusal::{Refusal, plain};
use fedtvd_core::round::ClientFailure;
use fedtvd_run::directory::disk::{open, remove_file, sync_file, truncate, write};
use fedtvd_run::directory::files::{create, private};
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// An upload while it is received. If it is dropped before its end, its bytes are kept for the next one of the same update,
/// unless another connection has taken them over.
pub(crate) struct Arrival {
    pub(super) coordinator: Arc<Coordinator>,
    pub(super) member: Member,
    pub(crate) received: Arc<Received>,
    /// What is to be kept of an upload that ended without being accepted.
    pub(super) rest: Option<Partial>,
}

impl Drop for Arrival {
    fn drop(&mut self) {
        if self.received.is_taken_over() {
            return;
        }
        if let Ok((partial, _)) = self.received.end() {
            self.rest = Some(partial);
        } else if self.received.is_taken_over() {
            return;
        }
        if !self.keep() {
            // Before the next upload of this client may write to the same file; after a commit the file no longer exists.
            let _ = remove_file(&self.received.path);
        }
        self.coordinator.inner().sending.remove(&self.received.client);
    }
}

impl Arrival {
    /// Opens its file. Returns the number of bytes that it has already: the upload begins there.
    pub(crate) fn begin(&mut self) -> Result<u64, Refusal> {
        let path = &self.received.path;
        let begun = self.received.change(|partial, file| {
            let opened = match partial.got {
                0 => create(path),
                got => open_at(path, got),
            };
            *file = opened.map(Some).map_err(|error| disk(&error))?;
            Ok(partial.got)
        });
        begun.map_err(|refusal| self.give_up(refusal))
    }

    /// Stores, hashes and checks the next bytes.
    pub(crate) fn write(&mut self, part: &[u8]) -> Result<(), Refusal> {
        let path = &self.received.path;
        let written = self.received.change(|partial, file| {
            if partial.got + part.len() as u64 > partial.bytes {
                return Err(Refusal::Overrun(partial.bytes));
            }
            let file = file.as_ref().ok_or(Refusal::Disk)?;
            write(file, path, part).map_err(|error| disk(&error))?;
            partial.feed(part);
            Ok(())
        });
        written.map_err(|refusal| self.give_up(refusal))
    }

    /// Accepts a complete update, if its client may still take part. When this returns, the update is durable.
    pub(crate) fn accept(mut self, still: impl FnOnce() -> Result<(), Refusal>) -> Result<(), Refusal> {
        let (partial, file) = self.received.end()?;
        let Some(file) = file else { return Err(Refusal::Disk) };
        if partial.got < partial.bytes {
            let (got, bytes) = (partial.got, partial.bytes);
            self.rest = Some(partial);
            return Err(Refusal::Truncated { got, bytes });
        }
        sync_file(&file, &self.received.path).map_err(|error| disk(&error))?;
        if let Err(refusal) = still() {
            self.rest = Some(partial);
            return Err(refusal);
        }
        let Received { client, round, .. } = *self.received;
        let coordinator = &self.coordinator;
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

    /// Ends an upload that failed; the next one begins at its first byte.
    fn give_up(&self, refusal: Refusal) -> Refusal {
        let _ = self.received.end();
        refusal
    }

    /// Keeps what has arrived for the next upload of the same update, if its round is still open.
    fn keep(&mut self) -> bool {
        let Some(partial) = self.rest.take().filter(|partial| partial.got > 0) else { return false };
        match &mut self.coordinator.inner().phase {
            Phase::Training(open) if open.round == self.received.round => {
                open.partial.insert(self.received.client, partial);
                true
            }
            _ => false,
        }
    }
}

/// A file with exactly its first bytes, to append to.
fn open_at(path: &Path, got: u64) -> io::Result<File> {
    let file = open(private().append(true), path)?;
    if file.metadata()?.len() < got {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    truncate(&file, path, got)?;
    Ok(file)
}
