//! FedNova: updates are normalised by each client's total step size, its reach.
//!
//! ```text
//! w_t - w_k = lr Σ_j a_kj g_kj,   r_k = lr ‖a_k‖₁                 the reach, reported by the client
//! w = w_t - r_eff Σ s_k (w_t - w_k) / r_k,   r_eff = Σ s_k r_k     trainable tensors
//! ```
//!
//! The reach is exact under momentum, Nesterov, proximal terms and schedules, because it is computed by stepping with
//! a constant gradient of one. Buffers are averaged plainly: normalisation can make a running variance negative.
//!
//! Wang et al., "Tackling the Objective Inconsistency Problem in Heterogeneous Federated Optimization", NeurIPS 2020.

use crate::memory::Memory;
use crate::model::Params;
use crate::round::{Accepted, ReadFailure, Report, UpdatePart};
use crate::rules::{Combine, Combined, Guide, Property, Recipe, Spec};
use std::sync::Arc;

pub(super) const SPEC: Spec = Spec {
    guide: Guide {
        formula: "w = w_t - r_eff Σ s_k (w_t - w_k) / r_k,   r_eff = Σ s_k r_k",
        choose: "where clients make very different numbers of steps",
        avoid: "where small clients are noisy: their changes are scaled up; at alpha 0.1 its results depend most on the seed",
        cost: "as `fedavg`",
    },
    lacks: &[(Property::StaysBetweenTheClients, "clients with few steps are scaled up to the mean reach")],
    ..Spec::new(
        "fednova",
        "each update is normalised by its client's total step size, so that clients with more steps do not bias the mean",
        "Wang et al., Tackling the Objective Inconsistency Problem in Heterogeneous Federated Optimization, NeurIPS 2020",
        |_| Recipe { combine: Some(Arc::new(Normalised)), ..Recipe::default() },
    )
};

#[derive(Debug)]
struct Normalised;

impl Combine for Normalised {
    fn combine(
        &self,
        base: &Params,
        accepted: &mut Accepted<'_>,
        weights: &[f64],
        _: &mut Memory,
    ) -> Result<Combined, ReadFailure> {
        let (trainable, all) = (base.layout.trainable(), base.layout.len());
        let reaches: Vec<f64> = accepted.reports().iter().map(|report| report.reach).collect();
        let greatest = accepted.greatest_reach();
        let effective: f64 = weights.iter().zip(&reaches).map(|(s, r)| s * r.min(greatest)).sum();
        // w_t - r_eff Σ s_k (w_t - w_k) / r_k  =  w_t (1 - Σ f_k) + Σ f_k w_k  with  f_k = s_k r_eff / r_k
        let factors: Vec<f64> = weights.iter().zip(&reaches).map(|(s, r)| s * effective / r).collect();
        let rest = 1.0 - factors.iter().sum::<f64>();
        let mut next = accepted.weighted_sum(UpdatePart::Model, 0..trainable, &factors)?;
        for (next, &w) in next.iter_mut().zip(base.trainable()) {
            *next += rest * f64::from(w);
        }
        next.extend(accepted.weighted_sum(UpdatePart::Model, trainable..all, weights)?);
        Ok(Combined { values: next, counted: weights.to_vec() })
    }

    fn amplification(&self, report: &Report) -> f64 {
        1.0 / report.reach
    }

    fn needs_sgd(&self) -> Option<&'static str> {
        Some("it divides each client's change by its total step size, which is a mean gradient only with SGD")
    }
}
