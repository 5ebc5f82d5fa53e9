//! SCAFFOLD: control variates correct a client's gradient for its drift.
//!
//! ```text
//! y    = local training from w_t with gradient g(y) + d (c - c_k),   d: damping, 1 in the paper
//! c_k+ = g(w_t), over all of the client's samples                                                (option I)
//! c_k+ = (w_t - y) / r_k - d (c - c_k),   r_k = lr ‖a‖₁ (plain SGD: lr times the steps)          (option II)
//! w    = w_t + Σ_{k in round} s_k (y_k - w_t)
//! c    = c + Σ_{k in round} s_k^(N) (c_k+ - c_k),   s^(N): weights over all N clients
//! ```
//!
//! All variates start at zero, so round 1 is uniform averaging; c is the mean of all c_k after every round. The
//! correction is inside the momentum, so option II divides by the reach and not by the number of steps. It subtracts
//! the correction that was applied, so that c_k+ is the mean of the client's own gradients with any damping, those
//! that were clipped and got weight decay included. Option I treats its gradient the same way; it costs one more pass.
//!
//! Karimireddy et al., "SCAFFOLD: Stochastic Controlled Averaging for Federated Learning", ICML 2020.

use crate::memory::Memory;
use crate::rules::{
    Carried, Extent, Guide, LocalRule, Needs, Property, Recipe, Rule, Settings, Spec, Task, Trained,
};
use crate::settings::{Param, Range};
use crate::train::{LocalRun, Optimizer, TrainFailure, Trainer};
use std::sync::Arc;

pub(super) const CONTROL: Carried = Carried { name: "control", extent: Extent::Trainable };

pub(super) const DAMPING: Param = Param::number(
    "damping",
    1.0,
    Range::UNIT,
    "factor on the correction of the gradient: 1 is the paper's, 0 trains without correction",
);

pub(super) const KEEPS: [(Rule, &str); 3] = [
    (
        Rule::Combine,
        "its control variate is the weighted mean of the clients' changes, and the model must move by the same mean",
    ),
    (Rule::Sharing, "its control variate corrects the gradient of every trainable tensor"),
    (Rule::Grouping, "its control variate is a mean over all clients, who must train the same model"),
];

pub(super) const TRAINS_CORRECTED: (Property, &str) =
    (Property::TrainsPlainly, "its gradient is corrected by control variates from the second round on");

pub(super) const SPEC: Spec = Spec {
    guide: Guide {
        formula: "gradient g(y) - damping (c_k - c);   c_k+ = mean gradient of the client;   c = Σ s_k^(N) c_k",
        choose: "where all clients, or many of them, take part in each round and skew is moderate",
        avoid: "at strong skew with momentum: a client's variate can grow from round to round until training diverges, as it did in 8 of 24 runs at alpha 0.1 and 0.5 with 10 of 100 clients per round; with `damping=0.5` in none of 24 (`results/scaffold`, `results/methods`)",
        cost: "twice the bytes of `fedavg` in both directions; each client keeps one vector as long as the model, the server one",
    },
    params: &[
        Param::whole(
            "option",
            2,
            (1, 2),
            "how a client's variate is made: 1 is its gradient at the model it received, which takes one more pass over its samples and diverged with momentum 0.9 in all runs tried; 2 is its mean gradient while training",
        ),
        DAMPING,
    ],
    suggests: Some("uniform"),
    keeps: &KEEPS,
    lacks: &[TRAINS_CORRECTED],
    ..Spec::new(
        "scaffold",
        "control variates correct each client's gradient for client drift; clients keep state between rounds",
        "Karimireddy et al., SCAFFOLD: Stochastic Controlled Averaging for Federated Learning, ICML 2020",
        build,
    )
};

fn build(settings: &Settings) -> Recipe {
    let controlled =
        Controlled { at_start: settings.whole("option") == 1, damping: settings.number("damping") };
    Recipe { local: Some(Arc::new(controlled)), ..Recipe::default() }
}

/// Training with a corrected gradient.
#[derive(Debug)]
pub(super) struct Controlled {
    /// Whether a variate is the gradient at the start (option I).
    pub(super) at_start: bool,
    pub(super) damping: f64,
}

impl LocalRule for Controlled {
    fn needs(&self) -> Needs {
        Needs {
            carries: &[CONTROL],
            remembers: true,
            sgd: Some(if self.at_start {
                "control variates are gradients and cancel the drift of steps that are linear in gradients, as only those of SGD are"
            } else {
                "a control variate is a client's change divided by its total step size, which is a mean gradient only with SGD"
            }),
            ..Needs::default()
        }
    }

    fn train(
        &self,
        task: &Task<'_>,
        memory: Option<&Memory>,
        trainer: &mut dyn Trainer,
    ) -> Result<Trained, TrainFailure> {
        self.train_and_measure(task, memory, trainer).map(|(trained, _)| trained)
    }
}

impl Controlled {
    /// Trains, and returns the mean batch statistics too if the task's pass has constants for them.
    pub(super) fn train_and_measure(
        &self,
        task: &Task<'_>,
        memory: Option<&Memory>,
        trainer: &mut dyn Trainer,
    ) -> Result<(Trained, Option<Vec<f64>>), TrainFailure> {
        let zeros = vec![0.0; task.base.layout.trainable()];
        let c = task.carried.f32(CONTROL.name).unwrap_or(&zeros);
        let c_k = memory.and_then(|memory| memory.f32(CONTROL.name)).unwrap_or(&zeros);
        let at_start = if self.at_start { Some(gradient_at_start(task, trainer)?) } else { None };
        let damping = self.damping as f32;
        let correction: Vec<f32> = c.iter().zip(c_k).map(|(c, c_k)| damping * (c - c_k)).collect();
        let rows = &task.client.rows;
        let mut course =
            LocalRun::run(task.base, rows, task.local, &task.pass, None, Some(&correction), trainer)?;
        let statistics = course.statistics.take();
        let next = at_start.unwrap_or_else(|| {
            let moved = task.base.trainable().iter().zip(course.params.trainable());
            let own = |((&w, &y), &correction): ((&f32, &f32), &f32)| {
                ((f64::from(w) - f64::from(y)) / course.reach - f64::from(correction)) as f32
            };
            moved.zip(&correction).map(own).collect()
        });
        let change: Vec<f32> = next.iter().zip(c_k).map(|(next, c_k)| next - c_k).collect();
        let mut trained = Trained::from(course);
        trained.carried.put(CONTROL.name, change);
        trained.memory.put(CONTROL.name, next);
        Ok((trained, statistics))
    }
}

/// The gradient that SGD would use at w_t in a step over all samples: clipped, and with weight decay.
fn gradient_at_start(task: &Task<'_>, trainer: &mut dyn Trainer) -> Result<Vec<f32>, TrainFailure> {
    let mut gradient = trainer.gradient(task.base, &task.client.rows, &task.pass)?;
    let norm = gradient.iter().map(|&g| f64::from(g) * f64::from(g)).sum::<f64>().sqrt();
    let scale = task.pass.clip.map_or(1.0, |clip| (clip / (norm + 1e-6)).min(1.0));
    let decay = match task.pass.optimizer {
        Optimizer::Sgd(sgd) => sgd.weight_decay,
        Optimizer::Adam(_) | Optimizer::AdamW(_) => 0.0,
    };
    for (g, &w) in gradient.iter_mut().zip(task.base.trainable()) {
        *g = (f64::from(*g) * scale + decay * f64::from(w)) as f32;
    }
    Ok(gradient)
}
