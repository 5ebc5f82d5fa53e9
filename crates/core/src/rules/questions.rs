//! The questions that a strategy answers, one small rule each.
//!
//! A rule is immutable; what it remembers is passed in and out as [`Memory`]. It knows nothing of networks, data sets
//! or transport.

use crate::labels::{Ask, Reference};
use crate::memory::Memory;
use crate::model::{Layout, Params};
use crate::round::{Accepted, ClientData, ClientId, Mode, Profile, ReadFailure, Report};
use crate::train::{Local, Pass, TrainFailure, Trainer};
use std::fmt::Debug;

/// What is the weight of each client? Sees profiles, never parameters.
pub trait Weighting: Debug + Send + Sync {
    /// The label statistic that it needs from clients.
    fn asks(&self) -> Ask;
    /// The weights of these clients: at least one, in client order.
    fn shares(&self, profiles: &[&Profile], reference: &Reference, memory: &mut Memory) -> Shares;
}

/// The clients' weights and the shares that they are made of.
#[derive(Clone, Debug, PartialEq)]
pub struct Shares {
    /// Share by label quality; `None` if labels play no part.
    pub quality: Option<Vec<f64>>,
    /// Share by size: n_k / Σ n.
    pub size: Vec<f64>,
    /// Weight; the weights sum to 1.
    pub weight: Vec<f64>,
}

/// What does a client minimise? Cross-entropy, with an offset added to the logit of each class.
pub trait Loss: Debug + Send + Sync {
    /// The offsets for a client with these label counts.
    fn offsets(&self, counts: &[u64], reference: &Reference) -> Vec<f64>;
}

/// How does a client train?
pub trait LocalRule: Debug + Send + Sync {
    /// What the round must know about the rule.
    fn needs(&self) -> Needs;
    /// Trains a client for one round; its new memory is returned in [`Trained::memory`].
    fn train(
        &self,
        task: &Task<'_>,
        memory: Option<&Memory>,
        trainer: &mut dyn Trainer,
    ) -> Result<Trained, TrainFailure>;

    /// Epochs over its samples that a client may be asked for in a round of `local` epochs: more if it trains more than
    /// the shared model.
    fn epochs(&self, local: u32) -> u64 {
        u64::from(local)
    }

    /// The model that the client itself uses, if it keeps one beside the shared model. `model` is the newest shared model
    /// with the client's own tensors, `memory` what the client remembers.
    fn own_model(&self, _model: &Params, _memory: Option<&Memory>) -> Option<Params> {
        None
    }
}

/// What the round must know about a local rule.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Needs {
    /// Vectors sent along with the model.
    pub carries: &'static [Carried],
    /// Whether clients keep a memory between rounds.
    pub remembers: bool,
    /// Strength of the proximal term in the passes that train the shared model; it bounds their reach.
    pub mu: f64,
    /// Why clients must train with SGD, if they must.
    pub sgd: Option<&'static str>,
    /// Whether clients keep a model of their own: see [`LocalRule::own_model`].
    pub own_model: bool,
    /// Whether clients decide how to train by samples that they hold out.
    pub holdout: bool,
    /// The lowest learning rate with which a client may start a round, if it may choose one below the round's; it bounds
    /// the reach.
    pub least_lr: Option<f64>,
}

/// A vector sent along with the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried {
    /// Its name.
    pub name: &'static str,
    /// The part of the model that has the same length.
    pub extent: Extent,
}

/// A part of the model, and with it how the server's copy of a vector follows from the clients' changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The trainable tensors, for vectors like gradients. The copy starts at zero and is a mean over all clients.
    Trainable,
    /// The buffers, for batch statistics. The copy starts as the model's buffers, is a mean over the clients seen so far,
    /// and the model's buffers take its values.
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

/// A client's task in one round.
#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    /// The model to start from.
    pub base: &'a Params,
    /// The server's copy of the carried vectors.
    pub carried: &'a Memory,
    /// The client's data.
    pub client: &'a ClientData,
    /// Local training settings.
    pub local: &'a Local,
    /// The plain pass: epochs, key, loss offsets and class weights are set.
    pub pass: Pass<'a>,
}

/// The result of local training.
#[derive(Clone, Debug, PartialEq)]
pub struct Trained {
    /// The model that goes to the server.
    pub params: Params,
    /// The change of each carried vector.
    pub carried: Memory,
    /// The client's new memory.
    pub memory: Memory,
    /// Optimiser steps made.
    pub steps: u64,
    /// lr ‖a‖₁ of those steps.
    pub reach: f64,
    /// Mean loss per sample of the first and of the last epoch.
    pub losses: [f64; 2],
}

/// How are weighted updates combined?
pub trait Combine: Debug + Send + Sync {
    /// Combines the accepted updates. The weights sum to 1.
    fn combine(
        &self,
        base: &Params,
        accepted: &mut Accepted<'_>,
        weights: &[f64],
        memory: &mut Memory,
    ) -> Result<Combined, ReadFailure>;

    /// The fewest clients among whom the rule can do what it promises. A round with fewer changes nothing.
    fn least_clients(&self) -> usize {
        1
    }

    /// How far the rule scales up a client's change of the trainable tensors, apart from its weight and from what is the
    /// same for all clients. Screening bounds the scaled change.
    fn amplification(&self, _: &Report) -> f64 {
        1.0
    }

    /// Why clients must train with SGD, if they must.
    fn needs_sgd(&self) -> Option<&'static str> {
        None
    }
}

/// The clients' updates, combined.
#[derive(Clone, Debug, PartialEq)]
pub struct Combined {
    /// The next model before the server's step: all tensors.
    pub values: Vec<f64>,
    /// The weight with which each client really entered; they sum to 1. A mean counts every client with its weight, Krum
    /// only those that it selects.
    pub counted: Vec<f64>,
}

/// How does the server update the global model? Trainable tensors only.
pub trait ServerRule: Debug + Send + Sync {
    /// The next model.
    fn step(&self, step: &Step<'_>, memory: &mut Memory) -> Vec<f32>;

    /// Whether its memory is a sum over what all clients remember. Then it gets [`Step::roster_change`], clients may not
    /// join after the first round, and it starts anew if the clients' memories do.
    fn sums_clients(&self) -> bool {
        false
    }
}

/// What the server's step is computed from.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// The last model.
    pub base: &'a [f32],
    /// The combined model of the clients.
    pub aggregate: &'a [f64],
    /// The weight with which each client of the round entered.
    pub weights: &'a [f64],
    /// ‖w_k − w_t‖ of each of them, after screening.
    pub norms: &'a [f64],
    /// Longest step of a rule that extrapolates, ‖w_(t+1) − w_t‖, where the aggregate itself is not farther: in hardened mode the
    /// median of the norms, the lower one of two, otherwise infinite.
    pub limit: f64,
    /// Σ s_k^(N) (w_k − w_t) over the clients of the round, with their weights among all enrolled clients; empty unless the
    /// rule sums over clients.
    pub roster_change: &'a [f64],
}

/// Who is asked in a round?
pub trait Selection: Debug + Send + Sync {
    /// The label statistic that it needs from clients.
    fn asks(&self) -> Ask;
    /// Chooses `count` clients, or all if there are fewer. The clients come in random order, so that a rule needs no random
    /// numbers of its own. In hardened mode a claim must not buy a client many more rounds than the others have.
    fn cohort(&self, shuffled: &[&Profile], count: usize, reference: &Reference, mode: Mode)
    -> Vec<ClientId>;
}
