//! FedAvg: the baseline that every other method modifies.
//!
//! ```text
//! p_k = n_k / Σ n_j                          over the round's clients
//! w   = w_t + server_lr (Σ p_k w_k - w_t)    server_lr = 1: the weighted mean itself
//! ```
//!
//! McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data", AISTATS 2017.

use crate::labels::{Ask, Reference};
use crate::memory::Memory;
use crate::model::{Layout, Params, Tensor};
use crate::round::{Accepted, ClientId, Mode, Profile, ReadFailure, UpdatePart};
use crate::rules::{
    Combine, Combined, Guide, LocalRule, Loss, Needs, Recipe, Selection, ServerRule, Settings, Shares,
    Sharing, Spec, Step, Strategy, Task, Trained, Weighting,
};
use crate::settings::{Param, Range};
use crate::train::{LocalRun, TrainFailure, Trainer};
use std::sync::Arc;

pub(super) const SPEC: Spec = Spec {
    guide: Guide {
        formula: "w = w_t + server_lr (Σ p_k w_k - w_t),   p_k = n_k / Σ n",
        choose: "as the baseline of every comparison, and where clients' labels are similar",
        avoid: "where a few large clients dominate and their labels are skewed: compare with `uniform`",
        cost: "no memory beyond the model; one model down and one up per client and round",
    },
    params: &[Param::number(
        "server_lr",
        1.0,
        Range::POSITIVE,
        "learning rate of the server: how far the model moves towards the clients' mean",
    )],
    ..Spec::new(
        "fedavg",
        "the mean of the clients' models, weighted by size",
        "McMahan et al., Communication-Efficient Learning of Deep Networks from Decentralized Data, AISTATS 2017",
        build,
    )
};

/// FedAvg adds nothing to a composition unless its server learning rate is set.
fn build(settings: &Settings) -> Recipe {
    let server_lr = settings.number("server_lr");
    if server_lr == 1.0 {
        return Recipe::default();
    }
    Recipe { server: Some(Arc::new(Adopt { server_lr })), ..Recipe::default() }
}

/// Completes a recipe with FedAvg's rules.
pub(crate) fn complete(recipe: Recipe, label: String) -> Strategy {
    Strategy {
        label,
        weighting: recipe.weighting.unwrap_or_else(|| Arc::new(Size)),
        loss: recipe.loss.unwrap_or_else(|| Arc::new(CrossEntropy)),
        local: recipe.local.unwrap_or_else(|| Arc::new(Plain)),
        combine: recipe.combine.unwrap_or_else(|| Arc::new(Mean)),
        server: recipe.server.unwrap_or_else(|| Arc::new(Adopt { server_lr: 1.0 })),
        selection: recipe.selection.unwrap_or_else(|| Arc::new(Random)),
        sharing: recipe.sharing.unwrap_or_else(|| Arc::new(Everything)),
        personal: recipe.personal,
        grouping: recipe.grouping,
        matching: recipe.matching,
        outside: recipe.outside,
    }
}

#[derive(Debug)]
struct Size;

impl Weighting for Size {
    fn asks(&self) -> Ask {
        Ask::Nothing
    }

    fn shares(&self, profiles: &[&Profile], _: &Reference, _: &mut Memory) -> Shares {
        let size = size_shares(profiles);
        Shares { quality: None, weight: size.clone(), size }
    }
}

/// p_k = n_k / Σ n_j.
pub(super) fn size_shares(profiles: &[&Profile]) -> Vec<f64> {
    let total: f64 = profiles.iter().map(|profile| profile.size as f64).sum();
    profiles.iter().map(|profile| profile.size as f64 / total).collect()
}

/// s_k = lambda a_k + (1 - lambda) p_k.
pub(super) fn mixed(lambda: f64, quality: Vec<f64>, size: Vec<f64>) -> Shares {
    let weight = quality.iter().zip(&size).map(|(a, p)| lambda * a + (1.0 - lambda) * p).collect();
    Shares { quality: Some(quality), size, weight }
}

#[derive(Debug)]
struct CrossEntropy;

impl Loss for CrossEntropy {
    fn offsets(&self, counts: &[u64], _: &Reference) -> Vec<f64> {
        vec![0.0; counts.len()]
    }
}

#[derive(Debug)]
struct Plain;

impl LocalRule for Plain {
    fn needs(&self) -> Needs {
        Needs::default()
    }

    fn train(
        &self,
        task: &Task<'_>,
        _: Option<&Memory>,
        trainer: &mut dyn Trainer,
    ) -> Result<Trained, TrainFailure> {
        LocalRun::run(task.base, &task.client.rows, task.local, &task.pass, None, None, trainer)
            .map(Trained::from)
    }
}

impl From<LocalRun> for Trained {
    /// The result of a client without carried vectors or memory.
    fn from(LocalRun { params, steps, reach, losses, .. }: LocalRun) -> Self {
        Self { params, carried: Memory::default(), memory: Memory::default(), steps, reach, losses }
    }
}

#[derive(Debug)]
struct Mean;

impl Combine for Mean {
    fn combine(
        &self,
        base: &Params,
        accepted: &mut Accepted<'_>,
        weights: &[f64],
        _: &mut Memory,
    ) -> Result<Combined, ReadFailure> {
        let values = accepted.weighted_sum(UpdatePart::Model, 0..base.values.len(), weights)?;
        Ok(Combined { values, counted: weights.to_vec() })
    }
}

#[derive(Debug)]
struct Adopt {
    server_lr: f64,
}

/// The step of a server that adopts what the updates combine to.
pub(super) fn adopt() -> Arc<dyn ServerRule> {
    Arc::new(Adopt { server_lr: 1.0 })
}

impl ServerRule for Adopt {
    fn step(&self, &Step { base, aggregate, .. }: &Step<'_>, _: &mut Memory) -> Vec<f32> {
        let server_lr = self.server_lr;
        if server_lr == 1.0 {
            return aggregate.iter().map(|&x| x as f32).collect();
        }
        let moved = base.iter().zip(aggregate).map(|(&w, mean)| (f64::from(w), mean));
        moved.map(|(w, mean)| (w + server_lr * (mean - w)) as f32).collect()
    }
}

#[derive(Debug)]
struct Random;

impl Selection for Random {
    fn asks(&self) -> Ask {
        Ask::Nothing
    }

    fn cohort(&self, shuffled: &[&Profile], count: usize, _: &Reference, _: Mode) -> Vec<ClientId> {
        shuffled.iter().take(count).map(|profile| profile.client).collect()
    }
}

#[derive(Debug)]
struct Everything;

impl Sharing for Everything {
    fn travels(&self, _: &Layout, _: &Tensor) -> bool {
        true
    }

    fn stays(&self) -> Option<&'static str> {
        None
    }
}
