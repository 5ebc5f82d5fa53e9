//! The question of clustered federated learning: which clients share a model?

use crate::model::Params;
use crate::round::{Accepted, ReadFailure};
use std::fmt::Debug;

/// Which clients share a model? A branch is one model with its clients.
pub trait Grouping: Debug + Send + Sync {
    /// Number of models before the first round. All but the first start at random, each from numbers of its own.
    fn models(&self) -> usize;
    /// Whether a client chooses: it gets all models, and trains the one with the least loss on its training samples. Otherwise
    /// the server gives it the model of its branch.
    fn clients_choose(&self) -> bool;
    /// How the clients of a branch part after a round, if they do.
    fn split(&self, round: &mut BranchRound<'_, '_>) -> Result<Option<Split>, ReadFailure>;
}

/// What one branch did in a round.
pub struct BranchRound<'a, 'u> {
    /// The round, counted from 1.
    pub round: u32,
    /// The model that its clients started from.
    pub base: &'a Params,
    /// Their updates.
    pub accepted: &'a mut Accepted<'u>,
    /// Their weights, which sum to 1.
    pub weights: &'a [f64],
    /// ‖w_k − w_t‖ of each of them.
    pub norms: &'a [f64],
}

/// How the clients of a branch part.
#[derive(Clone, Debug, PartialEq)]
pub struct Split {
    /// The places of each part's clients among the branch's updates, ascending. Both parts have clients.
    pub parts: [Vec<usize>; 2],
    /// The greatest similarity of two clients of different parts.
    pub similarity: f64,
}
