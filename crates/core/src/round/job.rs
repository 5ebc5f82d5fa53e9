//! What the server asks of a client in one round.

use crate::labels::{Ask, Reference};
use crate::matching::MatchingStep;
use crate::memory::{Array, Memory};
use crate::model::Params;
use crate::round::{ClientFailure, ClientId};
use crate::rules::{Extent, Needs};
use crate::stream::Key;
use crate::train::{ClassWeights, Local};
use std::sync::Arc;

/// One client's work in one round. Nothing else is needed but the client's data and the memory named here.
#[derive(Clone, Debug)]
pub struct Job {
    /// The client.
    pub client: ClientId,
    /// Key of the client's random numbers; it reveals nothing about the run's seed.
    pub key: Key,
    /// The last round in which an update of this client was accepted: the memory to continue from.
    pub accepted: Option<u32>,
    /// What the client needs to know for layer-wise matching, if the strategy matches networks.
    pub matching: Option<MatchingStep>,
    /// What all clients of a round receive.
    pub offer: Arc<Offer>,
}

impl Job {
    /// Checks that the job has exactly the carried vectors that its strategy needs.
    pub fn check_carried(&self, needs: &Needs) -> Result<(), ClientFailure> {
        let (carried, layout) = (&self.offer.carried, &self.offer.params.layout);
        for (name, array) in carried.arrays() {
            let declared = needs.carries.iter().find(|carried| carried.name == name);
            let fits =
                |extent: Extent| matches!(array, Array::F32(values) if values.len() == extent.len(layout));
            if !declared.is_some_and(|carried| fits(carried.extent)) {
                let strategy = &self.offer.strategy;
                return Err(ClientFailure::BadJob(format!(
                    "{strategy} has no vector {name:?} of this length"
                )));
            }
        }
        match needs.carries.iter().find(|needed| carried.f32(needed.name).is_none()) {
            None => Ok(()),
            Some(missing) => {
                Err(ClientFailure::BadJob(format!("the vector \"{}\" is missing", missing.name)))
            }
        }
    }
}

/// What all clients of a round receive.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    /// The round.
    pub round: u32,
    /// The strategy's label.
    pub strategy: String,
    /// How to train, with the round's learning rate.
    pub local: Local,
    /// Weights of the classes in the clients' losses.
    pub class_weights: ClassWeights,
    /// The reference label distribution Q, for losses that use it.
    pub reference: Reference,
    /// The branch of the model.
    pub branch: u32,
    /// The global model: the tensors that travel.
    pub params: Arc<Params>,
    /// The models of the branches after it, if the client chooses among several.
    pub others: Vec<Arc<Params>>,
    /// Vectors sent along with the model.
    pub carried: Arc<Memory>,
    /// Initial values of the tensors that stay at clients, for a client's first job; empty otherwise, and if all travel.
    pub own: Arc<Memory>,
}

impl Offer {
    /// The model of this branch, if it is offered.
    pub fn model(&self, branch: u32) -> Option<&Arc<Params>> {
        match branch.checked_sub(self.branch)? {
            0 => Some(&self.params),
            place => self.others.get(place as usize - 1),
        }
    }
}

/// The name of a client's own tensors, in its memory and in [`Offer::own`].
pub(crate) const OWN: &str = "own";

/// What each client is asked once, at its first contact.
#[derive(Clone, Debug, PartialEq)]
pub struct Survey {
    /// The label statistic.
    pub ask: Ask,
    /// The reference label distribution Q that distances refer to.
    pub reference: Reference,
}
