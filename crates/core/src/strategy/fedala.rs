//! FedALA: before it trains, a client mixes the shared model's last layers into its own, element by element, by weights that
//! it learns.
//!
//! ```text
//! lower layers:  w^ = w;      last layers:  w^ = v_k + (w - v_k) ⊙ W_k,   v_k = client k's model after its last round
//! learning W_k, batch by batch:  W_k = clip(W_k - mixing_lr ∇F_k(w^) ⊙ (w - v_k), 0, 1)
//! client k:  v_k = local training from w^; sends v_k           server: w = Σ s_k v_k
//! ```
//!
//! W_k starts at 1, which is the shared model, and nothing is learned in a client's first round, in which there is no v_k. In
//! its second round a client repeats epochs until the standard deviation of the last ten losses falls below `mixing_threshold`,
//! or for `mixing_epochs`; later it makes one. The batches are those of a random `mixing_share` of its samples, in training
//! mode; the losses are those of these samples after each epoch, in evaluation mode. (The authors' code takes a contiguous
//! part of the samples and the last batch's loss, and has no bound on the epochs.) Buffers are the shared model's.
//!
//! Outside of training a client uses w^ of the newest w with its last W_k. Only v_k's last layers are remembered, since the
//! lower ones are never used again. A client's change includes w^ - w, which its reach does not describe.
//!
//! Zhang et al., "FedALA: Adaptive Local Aggregation for Personalized Federated Learning", AAAI 2023. They mix the last layer,
//! with 80 % of the samples, mixing_lr 1, and train for one epoch in batches of 10 with lr 0.005.

use crate::memory::Memory;
use crate::model::{Layout, Params};
use crate::rules::{Guide, LocalRule, Needs, Property, Recipe, Settings, Spec, Task, Trained};
use crate::settings::{Param, Range};
use crate::strategy::fedper::Body;
use crate::stream::Purpose;
use crate::train::{Frozen, LocalRun, Pass, TrainFailure, Trainer};
use std::sync::Arc;

/// The last layers of v_k in a client's memory.
const MODEL: &str = "model";
/// W_k in a client's memory, once it has been learned.
const WEIGHTS: &str = "weights";
/// Losses whose standard deviation is compared.
const LOSSES: usize = 10;

pub(super) const SPEC: Spec = Spec {
    guide: Guide {
        formula: "client k trains from v_k + (w - v_k) ⊙ W_k;   W_k = clip(W_k - mixing_lr ∇F_k ⊙ (w - v_k), 0, 1)",
        choose: "where clients take part often and a last layer of their own helps, but the shared one still knows more",
        avoid: "where clients are asked rarely: v_k is then old. Compare with `prior`, which costs nothing",
        cost: "the bytes of `fedavg`; one more pass over most samples, many at first; each client keeps its last layers twice",
    },
    params: &[
        Param::whole(
            "mixing_layers",
            1,
            (1, 1000),
            "number of last layers with parameters that are mixed; a norm counts as a layer",
        ),
        Param::number("mixing_lr", 1.0, Range::POSITIVE, "learning rate of the mixing weights"),
        Param::number(
            "mixing_share",
            0.8,
            Range::above(0.0, 1.0),
            "fraction of its samples by which a client learns mixing weights",
        ),
        Param::number(
            "mixing_threshold",
            0.1,
            Range::NOT_NEGATIVE,
            "at first, weights are learned until the losses' standard deviation is below this",
        ),
        Param::whole(
            "mixing_epochs",
            50,
            (1, 10_000),
            "at first, weights are learned for at most this many epochs",
        ),
    ],
    lacks: &[(Property::TrainsPlainly, "a client starts from a mixture of the shared model and its own")],
    ..Spec::new(
        "fedala",
        "each client mixes the shared model's last layers into its own, by weights that it learns, before it trains; clients keep state between rounds",
        "Zhang et al., FedALA: Adaptive Local Aggregation for Personalized Federated Learning, AAAI 2023",
        build,
    )
};

fn build(settings: &Settings) -> Recipe {
    let mixing = Mixing {
        top: Body { head: settings.whole("mixing_layers") as usize },
        lr: settings.number("mixing_lr") as f32,
        share: settings.number("mixing_share"),
        threshold: settings.number("mixing_threshold"),
        epochs: settings.whole("mixing_epochs"),
    };
    Recipe { local: Some(Arc::new(mixing)), ..Recipe::default() }
}

#[derive(Debug)]
struct Mixing {
    /// The last layers.
    top: Body,
    lr: f32,
    share: f64,
    threshold: f64,
    /// At most, when weights are learned for the first time.
    epochs: u64,
}

/// What a client remembers of its last round: the last layers of its model, and its weights if it has learned any.
struct Kept<'a> {
    model: &'a [f32],
    weights: Option<&'a [f32]>,
}

impl Mixing {
    /// The trainable tensors of the lower layers, so that the last layers are what moves.
    fn lower(&self, layout: &Layout) -> Frozen {
        Frozen::of(layout, |tensor| tensor.role.trainable() && !self.top.is_head(layout, tensor))
    }

    /// The mixing weights after learning in this round.
    fn learned(
        &self,
        task: &Task<'_>,
        kept: &Kept<'_>,
        lower: &Frozen,
        trainer: &mut dyn Trainer,
    ) -> Result<Vec<f32>, TrainFailure> {
        let shared = gathered(task.base, lower);
        let gap: Vec<f32> = shared.iter().zip(kept.model).map(|(w, v)| w - v).collect();
        let mut weights = kept.weights.map_or_else(|| vec![1.0; gap.len()], <[f32]>::to_vec);
        let key = task.pass.key.at(Purpose::Mixing, 0, 0);
        let mut rows = task.client.rows.clone();
        key.stream(0).shuffle(&mut rows);
        rows.truncate((rows.len() as f64 * self.share).ceil() as usize);
        let mut mixed = mixture(task.base, lower, kept.model, &weights);
        let (mut losses, mut step) = (Vec::new(), 0);
        let epochs = if kept.weights.is_some() { 1 } else { self.epochs };
        for _ in 0..epochs {
            for batch in rows.chunks(task.pass.batch.max(1)) {
                // Every batch is an epoch of its own, since an epoch begins with the same dropout.
                let pass =
                    Pass { key, first_epoch: step, batch: batch.len(), frozen: Some(lower), ..task.pass };
                let gradient = gathered_from(&trainer.gradient(&mixed, batch, &pass)?, lower);
                for ((weight, gradient), gap) in weights.iter_mut().zip(gradient).zip(&gap) {
                    *weight = (*weight - self.lr * gradient * gap).clamp(0.0, 1.0);
                }
                mixed = mixture(task.base, lower, kept.model, &weights);
                step += 1;
            }
            if epochs > 1 {
                losses.push(trainer.evaluate(&mixed, &rows, task.pass.offsets)?.mean_loss());
                if losses.len() > LOSSES && deviation(&losses[losses.len() - LOSSES..]) < self.threshold {
                    break;
                }
            }
        }
        Ok(weights)
    }
}

/// The last layers of a model.
fn gathered(model: &Params, lower: &Frozen) -> Vec<f32> {
    gathered_from(model.trainable(), lower)
}

fn gathered_from(values: &[f32], lower: &Frozen) -> Vec<f32> {
    lower.moving().iter().flat_map(|range| &values[range.clone()]).copied().collect()
}

/// The shared model, with its last layers mixed into the client's.
fn mixture(shared: &Params, lower: &Frozen, own: &[f32], weights: &[f32]) -> Params {
    let mut mixed = shared.clone();
    let places = lower.moving().iter().cloned().flatten();
    for ((place, v), weight) in places.zip(own).zip(weights) {
        let w = &mut mixed.values[place];
        *w = v + (*w - v) * weight;
    }
    mixed
}

/// The population's standard deviation.
fn deviation(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    (values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / values.len() as f64).sqrt()
}

/// What is remembered, if it fits this many values.
fn kept(memory: Option<&Memory>, len: usize) -> Option<Kept<'_>> {
    let array = |name| memory?.f32(name).filter(|values| values.len() == len);
    Some(Kept { model: array(MODEL)?, weights: array(WEIGHTS) })
}

impl LocalRule for Mixing {
    fn epochs(&self, local: u32) -> u64 {
        self.epochs + u64::from(local)
    }

    fn needs(&self) -> Needs {
        Needs { remembers: true, own_model: true, ..Needs::default() }
    }

    fn train(
        &self,
        task: &Task<'_>,
        memory: Option<&Memory>,
        trainer: &mut dyn Trainer,
    ) -> Result<Trained, TrainFailure> {
        let lower = self.lower(&task.base.layout);
        let shared = gathered(task.base, &lower);
        let kept = kept(memory, shared.len());
        // Element by element: differences could cancel out in a sum.
        let weights = match &kept {
            Some(kept) if kept.model != shared => Some(self.learned(task, kept, &lower, trainer)?),
            Some(kept) => kept.weights.map(<[f32]>::to_vec),
            None => None,
        };
        let start = match (&kept, &weights) {
            (Some(kept), Some(weights)) => mixture(task.base, &lower, kept.model, weights),
            _ => task.base.clone(),
        };
        let (rows, local) = (&task.client.rows, task.local);
        let mut trained = Trained::from(LocalRun::run(&start, rows, local, &task.pass, None, None, trainer)?);
        trained.memory.put(MODEL, gathered(&trained.params, &lower));
        if let Some(weights) = weights {
            trained.memory.put(WEIGHTS, weights);
        }
        Ok(trained)
    }

    fn own_model(&self, model: &Params, memory: Option<&Memory>) -> Option<Params> {
        let lower = self.lower(&model.layout);
        let kept = kept(memory, gathered(model, &lower).len())?;
        Some(mixture(model, &lower, kept.model, kept.weights?))
    }
}
