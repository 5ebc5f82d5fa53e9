//! The questions that a strategy answers, one small rule each.
//!
//! A rule is immutable; what it remembers goes in and out as [`Memory`]. It sees neither a network nor a
//! data set nor a transport.

use crate::labels::{Ask, Reference};
use crate::memory::Memory;
use crate::model::{Layout, Params};
use crate::round::{Accepted, ClientData, Profile, ReadFailure};
use crate::train::{Local, Pass, TrainFailure, Trainer};
use std::fmt::Debug;

/// How much does each client count? Sees profiles, never parameters.
pub trait Weighting: Debug + Send + Sync {
    /// What it needs to know of a client's labels.
    fn asks(&self) -> Ask;
    /// The weights of these clients, which are in client order and at least one.
    fn shares(&self, profiles: &[&Profile], memory: &mut Memory) -> Shares;
}

/// How much each client counts, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Shares {
    /// What its labels earn it; `None` where labels play no part.
    pub quality: Option<Vec<f64>>,
    /// What its size earns it: n_k / Σ n.
    pub size: Vec<f64>,
    /// What it counts; sums to 1.
    pub weight: Vec<f64>,
}

/// What does a client minimise? Cross-entropy of logits with something added, one number per class.
pub trait Loss: Debug + Send + Sync {
    /// What is added for a client with these label counts.
    fn offsets(&self, counts: &[u64], reference: &Reference) -> Vec<f64>;
}

/// How does a client train?
pub trait LocalRule: Debug + Send + Sync {
    /// What the round must know of the rule.
    fn needs(&self) -> Needs;
    /// Trains a client for one round; what it remembers comes out new in [`Trained::memory`].
    fn train(
        &self,
        task: &Task<'_>,
        memory: Option<&Memory>,
        trainer: &mut dyn Trainer,
    ) -> Result<Trained, TrainFailure>;
}

/// What the round must know of a local rule.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Needs {
    /// Vectors that travel beside the model.
    pub carries: &'static [Carried],
    /// Whether clients keep something between their rounds.
    pub remembers: bool,
    /// Proximal term of the passes that make the shared model: it bounds their reach.
    pub mu: f64,
}

/// A vector that travels beside the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried {
    /// Its name.
    pub name: &'static str,
    /// Which part of the model it is as long as.
    pub extent: Extent,
}

/// A part of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The trainable tensors: a vector like a gradient.
    Trainable,
    /// The buffers: a vector like batch statistics.
    Buffers,
}

impl Extent {
    /// Its length in a model of this layout.
    pub fn len(self, layout: &Layout) -> usize {
        match self {
            Self::Trainable => layout.trainable(),
            Self::Buffers => layout.len() - layout.trainable(),
        }
    }
}

/// What a client is asked to do in one round.
#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    /// The model it starts from.
    pub base: &'a Params,
    /// The server's copy of the vectors that travel beside the model.
    pub carried: &'a Memory,
    /// What the client has.
    pub client: &'a ClientData,
    /// How it trains.
    pub local: &'a Local,
    /// The pass to start from: epochs, key and loss are in it.
    pub pass: Pass<'a>,
}

/// What local training came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Trained {
    /// The model that goes to the server.
    pub params: Params,
    /// By how much each carried vector changed.
    pub carried: Memory,
    /// What the client keeps.
    pub memory: Memory,
    /// Optimiser steps made.
    pub steps: u64,
    /// lr ‖a‖₁ of those steps.
    pub reach: f64,
    /// Mean loss per sample of the first and of the last epoch.
    pub losses: [f64; 2],
}

/// How do weighted updates become one?
pub trait Combine: Debug + Send + Sync {
    /// The next model before the server's step: all tensors, in f64. The weights sum to 1.
    fn combine(
        &self,
        base: &Params,
        accepted: &mut Accepted<'_>,
        weights: &[f64],
    ) -> Result<Vec<f64>, ReadFailure>;
}

/// How does the global model move? Trainable tensors only.
pub trait ServerRule: Debug + Send + Sync {
    /// The next model, from the last one and what the clients came to.
    fn step(&self, base: &[f32], aggregate: &[f64], memory: &mut Memory) -> Vec<f32>;
}
