//! What an upload has received, shared by the connection that receives it and the coordinator: a new connection of the same
//! client takes it over and continues, so that one that was lost without a sign delays nobody.
//!
//! ```text
//! open ──────► ending       its connection ended or all bytes are there: they are kept, removed or accepted
//!   └────────► taken over   another connection has what has arrived, and this one writes nothing any more
//! ```
//!
//! Whoever writes to the file holds the lock, so that after a change of the state nothing more is written.

use crate::federation::partial::Partial;
use crate::server::refusal::Refusal;
use crate::wire;
use fedtvd_core::round::ClientId;
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// What an upload has received.
pub(crate) struct Received {
    pub(crate) client: ClientId,
    pub(crate) round: u32,
    /// The file for its bytes until it is accepted.
    pub(crate) path: PathBuf,
    /// Announced number of bytes.
    pub(crate) bytes: u64,
    /// Cancelled when another connection takes it over.
    pub(crate) taken_over: CancellationToken,
    state: Mutex<State>,
}

enum State {
    /// What has arrived, and its file once that is open.
    Open(Box<Partial>, Option<File>),
    Ending,
    TakenOver,
}

impl Received {
    pub(crate) fn new(client: ClientId, round: u32, path: PathBuf, partial: Partial) -> Self {
        let (bytes, taken_over) = (partial.bytes, CancellationToken::new());
        Self {
            client,
            round,
            path,
            bytes,
            taken_over,
            state: Mutex::new(State::Open(Box::new(partial), None)),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what has arrived or its file; refuses if this connection may not write any more.
    pub(crate) fn change<T>(
        &self,
        change: impl FnOnce(&mut Partial, &mut Option<File>) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        match &mut *self.state() {
            State::Open(partial, file) => change(partial, file),
            State::Ending => Err(Refusal::Disk),
            State::TakenOver => Err(Refusal::TakenOver(self.client)),
        }
    }

    /// Ends it: from now on nothing is written, and nobody takes it over. Returns what has arrived, unless it ended before.
    pub(crate) fn end(&self) -> Result<(Partial, Option<File>), Refusal> {
        let mut state = self.state();
        match std::mem::replace(&mut *state, State::Ending) {
            State::Open(partial, file) => Ok((*partial, file)),
            State::Ending => Err(Refusal::Disk),
            State::TakenOver => {
                *state = State::TakenOver;
                Err(Refusal::TakenOver(self.client))
            }
        }
    }

    /// What has arrived, for another connection that announces the same update, or an update of a later round. An upload that
    /// is ending is done in a moment, and one of another update may be that of another process.
    pub(crate) fn take_over(&self, ticket: &wire::Ticket) -> Result<Partial, Refusal> {
        let mut state = self.state();
        match std::mem::replace(&mut *state, State::TakenOver) {
            State::Open(partial, _) if self.round != ticket.round || partial.is_of(ticket) => {
                self.taken_over.cancel();
                Ok(*partial)
            }
            other => {
                *state = other;
                Err(Refusal::Busy(self.client))
            }
        }
    }

    /// Whether another connection has taken it over.
    pub(crate) fn is_taken_over(&self) -> bool {
        self.taken_over.is_cancelled()
    }
}
