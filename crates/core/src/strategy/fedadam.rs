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
use crate::rules::{Guide, Property, Recipe, ServerRule, Settings, Spec, Step};
use crate::settings::{Param, Range};
use std::sync::Arc;

pub(super) const SPEC: Spec = Spec {
    guide: Guide {
        formula: "m = beta1 m + (1 - beta1) Δ,   v = beta2 v + (1 - beta2) Δ²,   w = w_t + lr m / (√v + tau)",
        choose: "where layers or coordinates change at very different speeds; with a tuned `lr`",
        avoid: "without tuning `lr`: too large a value moves every coordinate by about `lr` per round, whatever the clients say",
        cost: "as `fedavg`; the server keeps two more vectors as long as the model",
    },
    params: &[
        Param::number("lr", 0.01, Range::POSITIVE, "learning rate of the server"),
        Param::number("beta1", 0.9, Range::BELOW_ONE, "decay rate of the first moment"),
        Param::number("beta2", 0.99, Range::BELOW_ONE, "decay rate of the second moment"),
        Param::number(
            "tau",
            0.001,
            Range::POSITIVE,
            "adaptivity: the smaller, the more adaptive the step; the second moment starts at its square",
        ),
        Param::flag(
            "bias_correction",
            false,
            "whether moments are bias-corrected as in Kingma and Ba; not in the paper",
        ),
    ],
    lacks: &[
        (Property::AgreesOnEqualClients, "the server's step is Adam's, not the clients' mean"),
        (Property::StaysBetweenTheClients, "the server's step is Adam's, not the clients' mean"),
    ],
    ..Spec::new(
        "fedadam",
        "the server applies Adam to the clients' mean change",
        "Reddi et al., Adaptive Federated Optimization, ICLR 2021",
        build,
    )
};

fn build(settings: &Settings) -> Recipe {
    let adam = Adam {
        lr: settings.number("lr"),
        beta1: settings.number("beta1"),
        beta2: settings.number("beta2"),
        tau: settings.number("tau"),
        bias_correction: settings.flag("bias_correction"),
    };
    Recipe { server: Some(Arc::new(adam)), ..Recipe::default() }
}

#[derive(Debug)]
struct Adam {
    lr: f64,
    beta1: f64,
    beta2: f64,
    tau: f64,
    bias_correction: bool,
}

impl ServerRule for Adam {
    fn step(&self, &Step { base, aggregate, .. }: &Step<'_>, memory: &mut Memory) -> Vec<f32> {
        let Self { beta1, beta2, tau, .. } = *self;
        let remembered =
            |name, start| memory.f64(name).map_or_else(|| vec![start; base.len()], <[f64]>::to_vec);
        let (mut m, mut v) = (remembered("m", 0.0), remembered("v", tau * tau));
        let t = memory.u64("t").and_then(|t| t.first().copied()).unwrap_or(0) + 1;
        let lr = if self.bias_correction {
            self.lr * (1.0 - beta2.powf(t as f64)).sqrt() / (1.0 - beta1.powf(t as f64))
        } else {
            self.lr
        };
        let mut next = Vec::with_capacity(base.len());
        for (((&w, mean), m), v) in base.iter().zip(aggregate).zip(&mut m).zip(&mut v) {
            let d = mean - f64::from(w);
            *m = beta1 * *m + (1.0 - beta1) * d;
            *v = beta2 * *v + (1.0 - beta2) * d * d;
            next.push((f64::from(w) + lr * *m / (v.sqrt() + tau)) as f32);
        }
        memory.put("m", m);
        memory.put("v", v);
        memory.put("t", vec![t]);
        next
    }
}
