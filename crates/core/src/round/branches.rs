//! Several models in one state: what belongs to each branch, and how branches part and clients find theirs.
//!
//! The first branch is the state itself; [`State::branches`] holds the further ones. A branch that has parted keeps the model
//! that it had then. A client that is still there, because it was not asked in that round or is new, trains that model once
//! for each parting on its way down, and goes where its change points:
//!
//! ```text
//! d_c = mean of Δ_j / ‖Δ_j‖ over the clients with which child c began      trainable tensors
//! client k goes to the child with the larger ⟨Δ_k, d_c⟩ / ‖Δ_k‖, its mean cosine to them; the first, if they are equal
//! ```

use crate::memory::Memory;
use crate::model::Params;
use crate::round::products::Products;
use crate::round::{Accepted, ClientId, Drift, ReadFailure, State, UpdatePart};
use crate::rules::Split;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::mem::swap;
use std::sync::Arc;

/// A further model of a run, with the memories of the rules that belong to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Branch {
    /// The model.
    pub params: Arc<Params>,
    /// Memory of the weighting rule.
    pub weighting: Memory,
    /// Memory of the rule that combines updates.
    pub combining: Memory,
    /// Memory of the server rule.
    pub server: Memory,
    /// The branch that it came from by a parting; `None` if it was there at the beginning.
    pub parent: Option<u32>,
    /// d_c above; empty if it was there at the beginning.
    pub direction: Vec<f32>,
}

/// What a round's record says about a branch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BranchRecord {
    /// Its number; the first is 0.
    pub branch: u32,
    /// The branch that it came from by a parting.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub parent: Option<u32>,
    /// The clients that are in it after the round.
    pub clients: Vec<ClientId>,
    /// How far the models of its clients drifted apart; null if none of them took part.
    #[serde(default)]
    pub drift: Option<Drift>,
    /// Why its model stayed unchanged, if clients of it took part.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unchanged: Option<String>,
    /// How it parted in this round, if it did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub parted: Option<Parted>,
    /// Accuracy of its model on the server's test set; null if it was not evaluated.
    #[serde(default)]
    pub accuracy: Option<f64>,
    /// Its mean cross-entropy there.
    #[serde(default)]
    pub loss: Option<f64>,
}

/// A parting of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parted {
    /// The new branches.
    pub into: [u32; 2],
    /// The greatest cosine of two clients' changes of different parts.
    pub similarity: f64,
}

impl State {
    /// Number of branches, those that have parted included.
    pub fn branch_count(&self) -> u32 {
        1 + self.branches.len() as u32
    }

    /// The model of a branch.
    pub fn model(&self, branch: u32) -> Option<&Arc<Params>> {
        match branch.checked_sub(1) {
            None => Some(&self.params),
            Some(place) => self.branches.get(place as usize).map(|branch| &branch.params),
        }
    }

    /// The models of all branches, by number.
    pub fn models(&self) -> impl Iterator<Item = &Arc<Params>> {
        std::iter::once(&self.params).chain(self.branches.iter().map(|branch| &branch.params))
    }

    /// The branch that a branch came from, if it came from one.
    pub fn parent(&self, branch: u32) -> Option<u32> {
        self.branches.get(branch.checked_sub(1)? as usize)?.parent
    }

    /// The branches into which a branch has parted, if it has.
    pub fn children(&self, branch: u32) -> Option<[u32; 2]> {
        let mut children = (1..self.branch_count()).filter(|child| self.parent(*child) == Some(branch));
        Some([children.next()?, children.next()?])
    }

    /// The branches that have not parted, by number: those whose models are in use.
    pub fn leaves(&self) -> impl Iterator<Item = u32> {
        (0..self.branch_count()).filter(|branch| self.children(*branch).is_none())
    }

    /// The branch of a client; that of a client that never took part is the first.
    pub fn branch_of(&self, client: ClientId) -> u32 {
        self.members.get(&client).copied().unwrap_or_default()
    }

    /// The state with this branch in the place of the first.
    pub(crate) fn focused(&self, branch: u32) -> Cow<'_, Self> {
        if branch == 0 {
            return Cow::Borrowed(self);
        }
        let mut focused = self.clone();
        focused.swap(branch);
        Cow::Owned(focused)
    }

    /// Exchanges model and memories of the first branch and another one; a second time puts them back.
    pub(crate) fn swap(&mut self, branch: u32) {
        let place = branch.checked_sub(1).map(|place| place as usize);
        let Some(other) = place.and_then(|place| self.branches.get_mut(place)) else { return };
        swap(&mut self.params, &mut other.params);
        swap(&mut self.weighting, &mut other.weighting);
        swap(&mut self.combining, &mut other.combining);
        swap(&mut self.server, &mut other.server);
    }

    /// The records of the branches that have clients, or have not parted.
    pub(crate) fn branch_records(&self) -> Vec<BranchRecord> {
        let record = |branch| BranchRecord {
            branch,
            parent: self.parent(branch),
            clients: self.members.iter().filter(|(_, own)| **own == branch).map(|(id, _)| *id).collect(),
            drift: None,
            unchanged: None,
            parted: None,
            accuracy: None,
            loss: None,
        };
        let records = (0..self.branch_count()).map(record);
        records.filter(|found| !found.clients.is_empty() || self.children(found.branch).is_none()).collect()
    }

    /// Lets the clients of the branch in the first place part: both new branches start from its model and memories.
    pub(crate) fn part(
        &mut self,
        branch: u32,
        split: &Split,
        clients: &[ClientId],
        directions: [Vec<f32>; 2],
    ) -> Parted {
        let first = self.branch_count();
        let into = [first, first + 1];
        for ((part, child), direction) in split.parts.iter().zip(into).zip(directions) {
            self.branches.push(Branch {
                params: Arc::clone(&self.params),
                weighting: self.weighting.clone(),
                combining: self.combining.clone(),
                server: self.server.clone(),
                parent: Some(branch),
                direction,
            });
            // Places among the branch's updates are not the clients' ids.
            self.members.extend(part.iter().map(|&place| (clients[place], child)));
        }
        Parted { into, similarity: split.similarity }
    }
}

/// d_c: the mean of the changes of these clients, each divided by its norm.
pub(crate) fn direction(
    base: &Params,
    accepted: &mut Accepted<'_>,
    norms: &[f64],
    part: &[usize],
) -> Result<Vec<f32>, ReadFailure> {
    let mut factors = vec![0.0; norms.len()];
    for &place in part.iter().filter(|place| norms[**place] > 0.0) {
        factors[place] = 1.0 / (norms[place] * part.len() as f64);
    }
    let base = base.trainable();
    let sum = accepted.weighted_sum(UpdatePart::Model, 0..base.len(), &factors)?;
    let share: f64 = factors.iter().sum();
    Ok(sum.into_iter().zip(base).map(|(sum, &w)| (sum - share * f64::from(w)) as f32).collect())
}

/// For each client the place of the child, 0 or 1, to which its change points.
pub(crate) fn placed(
    base: &Params,
    accepted: &mut Accepted<'_>,
    directions: [&[f32]; 2],
) -> Result<Vec<usize>, ReadFailure> {
    let clients = accepted.reports().len();
    let products = Products::new(base, accepted, &directions)?;
    let along = |k: usize, child: usize| products.product(k, clients + child);
    Ok((0..clients).map(|k| usize::from(along(k, 1) > along(k, 0))).collect())
}
