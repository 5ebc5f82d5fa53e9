//! Balanced loss: a client that knows its own label distribution trains towards the posterior under Q.
//!
//! ```text
//! o[c] = tau ln( max(P_k[c], floor) / max(Q[c], floor) )
//! loss = -z[y] + ln Σ_c exp z[c],   z = f(x) + o      while training; predictions use f alone
//! ```
//!
//! If all clients share p(x|y), the minimiser at tau = 1 is the posterior under Q, the same for every client: this
//! removes the cause of the skew that FedTVD down-weights. No additional data leave the client.
//!
//! Ren et al., "Balanced Meta-Softmax", NeurIPS 2020; Menon et al., "Long-tail learning via logit adjustment", ICLR 2021.

use crate::labels::{Reference, size};
use crate::rules::{Guide, Loss, Property, Recipe, Settings, Spec};
use crate::settings::{Param, Range};
use std::sync::Arc;

pub(super) const SPEC: Spec = Spec {
    guide: Guide {
        formula: "loss = cross-entropy of  logits + tau ln(P_k / Q)",
        choose: "first of all under label skew: it gained 1.5 points over `uniform` at the end and 12 early (Fashion-MNIST, alpha 0.1, `results/skew`), and nothing more leaves the clients",
        avoid: "where clients' labels are alike: it then changes nothing",
        cost: "as `fedavg`",
    },
    params: &[
        Param::number(
            "tau",
            1.0,
            Range::NOT_NEGATIVE,
            "strength of the logit adjustment: 0 is plain cross-entropy, 1 the full adjustment",
        ),
        Param::number(
            "floor",
            1e-4,
            Range::above(0.0, 1.0),
            "lower bound on label shares, for classes that a client lacks",
        ),
    ],
    lacks: &[(Property::TrainsPlainly, "its loss is not plain cross-entropy unless labels are balanced")],
    ..Spec::new(
        "balanced",
        "each client's loss is adjusted for its own label distribution; no additional data leave the client",
        "balanced softmax (Ren et al., NeurIPS 2020; Menon et al., ICLR 2021) as a client's loss",
        build,
    )
};

fn build(settings: &Settings) -> Recipe {
    let (tau, floor) = (settings.number("tau"), settings.number("floor"));
    Recipe { loss: Some(Arc::new(Balanced { tau, floor })), ..Recipe::default() }
}

#[derive(Debug)]
struct Balanced {
    tau: f64,
    floor: f64,
}

impl Loss for Balanced {
    fn offsets(&self, counts: &[u64], reference: &Reference) -> Vec<f64> {
        log_ratios(counts, reference, self.tau, self.floor)
    }
}

/// tau ln( max(P_k\[c\], floor) / max(Q\[c\], floor) ) of each class c.
pub(super) fn log_ratios(counts: &[u64], reference: &Reference, tau: f64, floor: f64) -> Vec<f64> {
    let n = size(counts) as f64;
    let pairs = counts.iter().zip(reference.shares());
    pairs.map(|(&h, q)| tau * ((h as f64 / n).max(floor) / q.max(floor)).ln()).collect()
}
