//! An upload on its way: the server's side is what the handler of uploads calls.

use crate::fault_schedules::client::Unsent;
use crate::federation::admission::{Arrival, disk};
use crate::server::refusal::Refusal;
use data_encoding::HEXLOWER;
use fedtvd_core::bytes::UploadStream;
use fedtvd_run::directory::disk::{sync_file, write};
use fedtvd_run::directory::files::create;
use sha2::{Digest as _, Sha256};
use std::fs::File;

pub(super) struct Receiving {
    /// The request that it belongs to.
    pub(super) request: u64,
    pub(super) client: usize,
    pub(super) update: Unsent,
    got: usize,
    arrival: Arrival,
    file: File,
    hash: Sha256,
    check: UploadStream,
}

impl Receiving {
    pub(super) fn begin(
        request: u64,
        client: usize,
        update: Unsent,
        arrival: Arrival,
    ) -> Result<Self, Refusal> {
        let file = create(&arrival.path).map_err(|error| disk(&error))?;
        let check = arrival.check();
        Ok(Self { request, client, update, got: 0, arrival, file, hash: Sha256::new(), check })
    }

    pub(super) fn complete(&self) -> bool {
        self.got == self.update.bytes.len()
    }

    pub(super) fn receive(&mut self, most: usize) -> Result<(), Refusal> {
        let end = self.update.bytes.len().min(self.got.saturating_add(most));
        let part = &self.update.bytes[self.got..end];
        write(&self.file, &self.arrival.path, part).map_err(|error| disk(&error))?;
        self.hash.update(part);
        self.check.feed(part);
        self.got = end;
        Ok(())
    }

    pub(super) fn accept(self, still: impl FnOnce() -> Result<(), Refusal>) -> Result<(), Refusal> {
        let got = HEXLOWER.encode(&self.hash.finalize());
        if got != self.arrival.hash {
            return Err(Refusal::WrongHash { got, announced: self.arrival.hash.clone() });
        }
        sync_file(&self.file, &self.arrival.path).map_err(|error| disk(&error))?;
        still()?;
        self.arrival.accept(self.check)
    }
}
