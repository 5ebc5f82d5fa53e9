//! An upload on its way. The server's side of it is what the handler of uploads calls.

use crate::fault_schedules::client::Unsent;
use crate::federation::Coordinator;
use crate::federation::arrival::Arrival;
use crate::server::refusal::Refusal;

/// An upload on its way.
pub(super) struct Receiving {
    /// The request that it belongs to.
    pub(super) request: u64,
    pub(super) client: usize,
    pub(super) update: Unsent,
    /// Number of bytes that the server has.
    got: usize,
    arrival: Box<Arrival>,
}

impl Receiving {
    /// The server lets the client begin, perhaps where an earlier upload broke off.
    pub(super) fn begin(
        request: u64,
        client: usize,
        update: Unsent,
        mut arrival: Box<Arrival>,
    ) -> Result<Self, Refusal> {
        let got = arrival.begin()? as usize;
        Ok(Self { request, client, update, got, arrival })
    }

    /// Whether the client has sent everything.
    pub(super) fn complete(&self) -> bool {
        self.got == self.update.bytes.len()
    }

    /// At most this many further bytes arrive.
    pub(super) fn receive(&mut self, server: &Coordinator, most: usize) -> Result<(), Refusal> {
        let round = self.arrival.received.round;
        if !server.at(round) {
            return Err(Refusal::Late { round });
        }
        let end = self.update.bytes.len().min(self.got.saturating_add(most));
        self.arrival.write(&self.update.bytes[self.got..end])?;
        self.got = end;
        Ok(())
    }

    /// The end arrives.
    pub(super) fn accept(self, still: impl FnOnce() -> Result<(), Refusal>) -> Result<(), Refusal> {
        self.arrival.accept(still)
    }
}
