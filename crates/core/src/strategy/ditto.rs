//! Ditto: each client keeps a model of its own beside the shared one, and pulls it towards the shared one.
//!
//! ```text
//! w_k = local training from w_t, and w = Σ s_k w_k                          as without Ditto
//! v_k = local training from v_k with gradient ∇F_k(v) + mu (v - w_t)        kept by the client, at first w_t
//! ```
//!
//! mu is the paper's lambda: 0 is training alone, a large one the shared model. w_t is the model that the client received, not
//! the one that it has just trained. v_k is trained on plain cross-entropy whatever loss the shared model is trained on, with the same
//! optimiser and, if `own_epochs` is 0, for as many epochs. Training the shared model is FedAvg's and cannot be replaced by
//! another local rule; weights, losses, combination and server rules can be.
//!
//! Li et al., "Ditto: Fair and Robust Federated Learning Through Personalization", ICML 2021.

use crate::memory::Memory;
use crate::model::Params;
use crate::rules::{Guide, LocalRule, Needs, Recipe, Settings, Spec, Task, Trained};
use crate::settings::{Param, Range};
use crate::train::{LocalRun, Pass, Pull, TrainFailure, Trainer};
use std::sync::Arc;

/// v_k in a client's memory.
const MODEL: &str = "model";

pub(super) const SPEC: Spec = Spec {
    guide: Guide {
        formula: "client k keeps v_k = local training with gradient ∇F_k(v) + mu (v - w_t);   w as without it",
        choose: "where clients differ in what they need and can keep a model; mu = 0.1 to 1 first",
        avoid: "where clients are asked rarely: v_k trains only in rounds in which they are",
        cost: "the bytes of `fedavg`; clients train twice and keep one more model",
    },
    params: &[
        Param::number("mu", 0.1, Range::NOT_NEGATIVE, "strength of the pull towards the shared model"),
        Param::whole(
            "own_epochs",
            0,
            (0, 1000),
            "epochs of the client's own model; 0 for as many as local.epochs",
        ),
    ],
    ..Spec::new(
        "ditto",
        "each client keeps a model of its own, pulled towards the shared one; clients keep state between rounds",
        "Li et al., Ditto: Fair and Robust Federated Learning Through Personalization, ICML 2021",
        build,
    )
};

fn build(settings: &Settings) -> Recipe {
    let ditto = Ditto { mu: settings.number("mu"), epochs: settings.whole("own_epochs") as u32 };
    Recipe { local: Some(Arc::new(ditto)), ..Recipe::default() }
}

#[derive(Debug)]
struct Ditto {
    mu: f64,
    /// 0 for as many as the shared model's.
    epochs: u32,
}

impl LocalRule for Ditto {
    fn epochs(&self, local: u32) -> u64 {
        let own = if self.epochs == 0 { local } else { self.epochs };
        u64::from(local) + u64::from(own)
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
        let (rows, local) = (&task.client.rows, task.local);
        let shared = LocalRun::run(task.base, rows, local, &task.pass, None, None, trainer)?;
        let start = self.own_model(task.base, memory);
        let epochs = if self.epochs == 0 { task.pass.epochs } else { self.epochs };
        let pass = Pass { epochs, offsets: None, ..task.pass };
        let pull = Pull { mu: self.mu, anchor: task.base.trainable() };
        let start = start.as_ref().unwrap_or(task.base);
        let own = LocalRun::run(start, rows, local, &pass, Some(pull), None, trainer)?;
        let mut trained = Trained::from(shared);
        trained.memory.put(MODEL, own.params.values);
        Ok(trained)
    }

    fn own_model(&self, model: &Params, memory: Option<&Memory>) -> Option<Params> {
        let values = memory?.f32(MODEL).filter(|values| values.len() == model.values.len())?;
        Some(Params { layout: Arc::clone(&model.layout), values: values.to_vec() })
    }
}
