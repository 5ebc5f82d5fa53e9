//! Refuses requests: a line in the log for the operator, a code and a sentence for the client.

use crate::federation::{Event, Log};
use crate::server::refusal::{Refusal, plain};
use crate::wire::{self, CODE};
use std::sync::Arc;
use tonic::Status;

/// Number of characters of an announced hash that are logged.
const LONGEST_HASH: usize = 64;

/// Refuses requests of one caller, with an event in the log and a sentence to the client.
pub(crate) struct Refuse {
    log: Log,
    name: Option<String>,
    address: String,
    certificate: Option<String>,
    round: Option<u32>,
    update: Option<String>,
}

impl Refuse {
    pub(crate) fn new(log: &Log, name: Option<String>, address: String, certificate: Option<String>) -> Self {
        Self { log: Arc::clone(log), name, address, certificate, round: None, update: None }
    }

    /// The same for a request about a round, counted from 0.
    pub(crate) fn in_round(self, round: u32) -> Self {
        Self { round: Some(round.saturating_add(1)), ..self }
    }

    /// The same for an upload.
    pub(crate) fn with(self, ticket: &wire::Ticket) -> Self {
        let update = plain(&ticket.hash.chars().take(LONGEST_HASH).collect::<String>());
        Self { update: Some(update), ..self.in_round(ticket.round) }
    }

    /// Logs the refusal; returns its sentence.
    pub(crate) fn log(&self, refusal: &Refusal) -> String {
        let (client, peer) = (self.name.as_deref().map(plain), self.address.clone());
        let why = plain(&refusal.to_string());
        (self.log)(&Event::Refused {
            client,
            peer,
            certificate: self.certificate.clone(),
            round: self.round,
            update: self.update.clone(),
            code: refusal.code(),
            why: why.clone(),
        });
        why
    }

    /// Logs the refusal; returns the status for the client.
    pub(crate) fn because(&self, refusal: &Refusal) -> Status {
        let why = self.log(refusal);
        let code = if refusal.passing() { tonic::Code::Unavailable } else { tonic::Code::FailedPrecondition };
        let mut status = Status::new(code, why);
        status.metadata_mut().insert(CODE, tonic::metadata::MetadataValue::from_static(refusal.code()));
        status
    }
}
