//! The step that FedAdagrad, FedAdam and FedYogi share. They differ in how v follows the squared change.
//!
//! ```text
//! D = Σ s_k w_k - w_t                   a model difference: w moves along it, not against it
//! m = beta1 m + (1 - beta1) D           m starts at 0
//! v = the method's own                  v starts at tau²
//! w = w_t + lr m / (sqrt(v) + tau)
//! ```
//!
//! Without bias correction. Trainable tensors only: a server rule never sees buffers, which are averaged.
//!
//! Reddi et al., "Adaptive Federated Optimization", ICLR 2021, algorithm 2.

use crate::memory::Memory;
use crate::rules::{Property, Settings, Step};
use crate::settings::{Param, Range};

pub(super) const PAPER: &str = "Reddi et al., Adaptive Federated Optimization, ICLR 2021";

/// What no method with this step has.
pub(super) const LACKS: &[(Property, &str)] = &[
    (
        Property::AgreesOnEqualClients,
        "the server's step is scaled per parameter, it is not the clients' mean",
    ),
    (
        Property::StaysBetweenTheClients,
        "the server's step is scaled per parameter, it is not the clients' mean",
    ),
];

/// The server's learning rate, with the method's default.
pub(super) const fn lr(default: f64) -> Param {
    Param::number("lr", default, Range::POSITIVE, "learning rate of the server")
}

/// The decay of m, with the method's default.
pub(super) const fn beta1(default: f64) -> Param {
    Param::number("beta1", default, Range::BELOW_ONE, "decay rate of the first moment")
}

/// The decay of v.
pub(super) const BETA2: Param =
    Param::number("beta2", 0.99, Range::BELOW_ONE, "decay rate of the second moment");

/// The adaptivity.
pub(super) const TAU: Param = Param::number(
    "tau",
    0.001,
    Range::POSITIVE,
    "adaptivity: the smaller, the more adaptive the step; the second moment starts at its square",
);

/// What all three have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Adaptive {
    pub(super) lr: f64,
    pub(super) beta1: f64,
    pub(super) tau: f64,
}

impl Adaptive {
    pub(super) fn of(settings: &Settings) -> Self {
        let [lr, beta1, tau] = ["lr", "beta1", "tau"].map(|name| settings.number(name));
        Self { lr, beta1, tau }
    }

    /// The next model; `second` is v after a change D, from the v before.
    pub(super) fn step(
        &self,
        &Step { base, aggregate, .. }: &Step<'_>,
        memory: &mut Memory,
        second: impl Fn(f64, f64) -> f64,
    ) -> Vec<f32> {
        let Self { lr, beta1, tau } = *self;
        let remembered =
            |name, start| memory.f64(name).map_or_else(|| vec![start; base.len()], <[f64]>::to_vec);
        let (mut m, mut v) = (remembered("m", 0.0), remembered("v", tau * tau));
        let mut next = Vec::with_capacity(base.len());
        for (((&w, mean), m), v) in base.iter().zip(aggregate).zip(&mut m).zip(&mut v) {
            let d = mean - f64::from(w);
            *m = beta1 * *m + (1.0 - beta1) * d;
            *v = second(*v, d);
            next.push((f64::from(w) + lr * *m / (v.sqrt() + tau)) as f32);
        }
        memory.put("m", m);
        memory.put("v", v);
        next
    }
}
