//! FedAdam: the server treats the clients' mean change as a gradient and applies Adam to it.
//!
//! ```text
//! D = Σ s_k w_k - w_t
//! m = beta1 m + (1 - beta1) D           m starts at 0
//! v = beta2 v + (1 - beta2) D²          v starts at tau²
//! w = w_t + lr m / (sqrt(v) + tau)
//! ```
//!
//! Without bias correction, as in the paper; with it lr is multiplied by sqrt(1 - beta2^t) / (1 - beta1^t).
//! Trainable tensors only: buffers are averaged.
//!
//! Reddi et al., "Adaptive Federated Optimization", ICLR 2021.

use crate::memory::Memory;
use crate::rules::{Guide, Recipe, ServerRule, Settings, Spec, Step};
use crate::settings::Param;
use crate::strategy::adaptive::{self, Adaptive};
use std::sync::Arc;

pub(super) const SPEC: Spec = Spec {
    guide: Guide {
        formula: "m = beta1 m + (1 - beta1) Δ,   v = beta2 v + (1 - beta2) Δ²,   w = w_t + lr m / (√v + tau)",
        choose: "for faster training with the same clients: +4.7 and +6.1 points over `fedavg` after 100 rounds at alpha 0.1 and 0.5 (embedded data, `results/methods`); with a tuned `lr` more",
        avoid: "without tuning `lr`: too large a value moves every coordinate by about `lr` per round, however small the clients' changes",
        cost: "as `fedavg`; the server keeps two more vectors as long as the model",
    },
    params: &[
        adaptive::lr(0.01),
        adaptive::beta1(0.9),
        adaptive::BETA2,
        adaptive::TAU,
        Param::flag(
            "bias_correction",
            false,
            "whether moments are bias-corrected as in Kingma and Ba; not in the paper",
        ),
    ],
    lacks: adaptive::LACKS,
    ..Spec::new("fedadam", "the server applies Adam to the clients' mean change", adaptive::PAPER, build)
};

fn build(settings: &Settings) -> Recipe {
    let adam = Adam {
        moments: Adaptive::of(settings),
        beta2: settings.number("beta2"),
        bias_correction: settings.flag("bias_correction"),
    };
    Recipe { server: Some(Arc::new(adam)), ..Recipe::default() }
}

#[derive(Debug)]
struct Adam {
    moments: Adaptive,
    beta2: f64,
    bias_correction: bool,
}

impl ServerRule for Adam {
    fn step(&self, step: &Step<'_>, memory: &mut Memory) -> Vec<f32> {
        let (beta1, beta2) = (self.moments.beta1, self.beta2);
        let t = memory.u64("t").and_then(|t| t.first().copied()).unwrap_or(0) + 1;
        memory.put("t", vec![t]);
        let lr = if self.bias_correction {
            self.moments.lr * (1.0 - beta2.powf(t as f64)).sqrt() / (1.0 - beta1.powf(t as f64))
        } else {
            self.moments.lr
        };
        let moments = Adaptive { lr, ..self.moments };
        moments.step(step, memory, |v, d| beta2 * v + (1.0 - beta2) * d * d)
    }
}
