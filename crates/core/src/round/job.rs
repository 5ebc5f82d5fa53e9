//! What the server asks of a client in one round.

use crate::labels::{Ask, Reference};
use crate::memory::Memory;
use crate::model::Params;
use crate::round::ClientId;
use crate::stream::Key;
use crate::train::Local;
use std::sync::Arc;

/// One client's work in one round. With the client's data and the memory that it names, it says everything.
#[derive(Clone, Debug)]
pub struct Job {
    /// Who.
    pub client: ClientId,
    /// Where the client's random numbers come from; it says nothing about the run's seed.
    pub key: Key,
    /// The last round in which an update of this client was accepted: the memory to go on from.
    pub accepted: Option<u32>,
    /// What all clients of the round get.
    pub offer: Arc<Offer>,
}

/// What all clients of a round get.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    /// The round.
    pub round: u32,
    /// The strategy's label.
    pub strategy: String,
    /// How to train, with the round's learning rate.
    pub local: Local,
    /// Q, for losses that use it.
    pub reference: Reference,
    /// The global model.
    pub params: Arc<Params>,
    /// Vectors that travel beside it.
    pub carried: Arc<Memory>,
}

/// What clients are asked once, at their first contact.
#[derive(Clone, Debug, PartialEq)]
pub struct Survey {
    /// Which label statistic.
    pub ask: Ask,
    /// The Q that distances refer to.
    pub reference: Reference,
}
