//! FedProx: a proximal term keeps clients close to the global model.
//!
//! ```text
//! client k minimises F_k(w) + mu/2 ‖w - w_t‖²,   gradient + mu (w - w_t), inside the momentum
//! ```
//!
//! mu = 0 is FedAvg. A client that finished fewer epochs still counts.
//!
//! Li et al., "Federated Optimization in Heterogeneous Networks", MLSys 2020.

use crate::memory::Memory;
use crate::rules::{Guide, LocalRule, Needs, Property, Recipe, Settings, Spec, Task, Trained};
use crate::settings::{Param, Range};
use crate::train::{LocalRun, Pull, TrainFailure, Trainer};
use std::sync::Arc;

pub(super) const SPEC: Spec = Spec {
    guide: Guide {
        formula: "loss_k(w) + mu/2 ‖w - w_t‖²",
        choose: "where clients make very different numbers of steps, or long local training diverges",
        avoid: "as a remedy against label skew: at the paper's settings it hardly differs from `fedavg`",
        cost: "as `fedavg`",
    },
    params: &[Param::number("mu", 0.01, Range::NOT_NEGATIVE, "strength of the proximal term; 0 is FedAvg")],
    lacks: &[(Property::TrainsPlainly, "its gradient has a proximal term")],
    ..Spec::new(
        "fedprox",
        "a proximal term keeps clients close to the global model",
        "Li et al., Federated Optimization in Heterogeneous Networks, MLSys 2020",
        build,
    )
};

fn build(settings: &Settings) -> Recipe {
    let mu = settings.number("mu");
    Recipe { local: Some(Arc::new(Proximal { mu })), ..Recipe::default() }
}

#[derive(Debug)]
struct Proximal {
    mu: f64,
}

impl LocalRule for Proximal {
    fn needs(&self) -> Needs {
        Needs { mu: self.mu, ..Needs::default() }
    }

    fn train(
        &self,
        task: &Task<'_>,
        _: Option<&Memory>,
        trainer: &mut dyn Trainer,
    ) -> Result<Trained, TrainFailure> {
        let pull = Pull { mu: self.mu, anchor: task.base.trainable() };
        LocalRun::run(task.base, &task.client.rows, task.local, &task.pass, Some(pull), None, trainer)
            .map(Trained::from)
    }
}
