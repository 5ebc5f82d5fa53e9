//! FedLC: logits calibrated by the client's own label counts.
//!
//! ```text
//! o[c] = -tau max(h_k[c], 1e-8)^(-1/4)       added to the logits while training
//! ```
//!
//! tau is not stated in the paper; 0.5 is what public implementations use.
//!
//! Zhang et al., "Federated Learning with Label Distribution Skew via Logits Calibration", ICML 2022.

use crate::labels::Reference;
use crate::rules::{Guide, Loss, Property, Recipe, Settings, Spec};
use crate::settings::{Param, Range};
use std::sync::Arc;

pub(super) const SPEC: Spec = Spec {
    guide: Guide {
        formula: "loss = cross-entropy of  logits - tau h_k^(-1/4)",
        choose: "to compare with `balanced`, whose idea is similar",
        avoid: "where classes are absent at clients: their logits are lowered by 100 tau",
        cost: "as `fedavg`",
    },
    params: &[Param::number(
        "tau",
        0.5,
        Range::NOT_NEGATIVE,
        "strength of the calibration: how far the logits of rare classes are lowered",
    )],
    lacks: &[(Property::TrainsPlainly, "its loss is not plain cross-entropy unless labels are balanced")],
    ..Spec::new(
        "fedlc",
        "each client's logits are calibrated by its own label counts; no additional data leave the client",
        "Zhang et al., Federated Learning with Label Distribution Skew via Logits Calibration, ICML 2022",
        build,
    )
};

fn build(settings: &Settings) -> Recipe {
    let tau = settings.number("tau");
    Recipe { loss: Some(Arc::new(Calibrated { tau })), ..Recipe::default() }
}

/// The count used for a class without samples.
const MISSING: f64 = 1e-8;

#[derive(Debug)]
struct Calibrated {
    tau: f64,
}

impl Loss for Calibrated {
    fn offsets(&self, counts: &[u64], _: &Reference) -> Vec<f64> {
        counts.iter().map(|&h| -self.tau * (h as f64).max(MISSING).powf(-0.25)).collect()
    }
}
