//! FedDkw: clients whose labels are close to those of all clients seen so far get larger weights.
//!
//! ```text
//! seen[k] = P_k for the round's clients;  D = mean of seen             (remembered over rounds)
//! kl_k    = KL(P_k || D) = Σ_{P_k[c] > 0} P_k[c] ln(P_k[c] / D[c])
//! pi_k    = (1 / max(kl_k, floor)) / Σ_j (1 / max(kl_j, floor))
//! s_k     = lambda pi_k + (1 - lambda) n_k / Σ_j n_j                  lambda = 1: FedDkw
//! ```
//!
//! D is updated before the weights of the same round. A client counts as seen once one of its updates is accepted.
//!
//! "FedDkw: Federated Learning with Dynamic Kullback-Leibler-divergence Weight", ACM 2023, 10.1145/3594779.

use crate::labels::{Ask, Reference, Statistic, size};
use crate::memory::Memory;
use crate::round::Profile;
use crate::rules::{Guide, Recipe, Settings, Shares, Spec, Weighting};
use crate::settings::{Param, Range};
use crate::strategy::fedavg::{mixed, size_shares};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) const SPEC: Spec = Spec {
    guide: Guide {
        formula: "a_k = (1 / KL_k) / Σ 1 / KL,   KL_k = KL(P_k ‖ mean of the label distributions seen so far)",
        choose: "to compare with the paper's related work",
        avoid: "where label counts must not leave the clients",
        cost: "as `fedavg`, and label counts once; the server keeps one distribution per client seen",
    },
    params: &[
        Param::number(
            "lambda",
            1.0,
            Range::UNIT,
            "share of label similarity in the weights: 0 is size alone; FedDkw uses 1",
        ),
        Param::number(
            "floor",
            1e-8,
            Range::POSITIVE,
            "smallest KL divergence, so that no client gets all the weight",
        ),
    ],
    ..Spec::new(
        "feddkw",
        "clients whose labels resemble those of all clients seen so far get larger weights, by 1/KL divergence; sends label counts",
        "FedDkw: Federated Learning with Dynamic Kullback-Leibler-divergence Weight, ACM 2023, 10.1145/3594779",
        build,
    )
};

fn build(settings: &Settings) -> Recipe {
    let (lambda, floor) = (settings.number("lambda"), settings.number("floor"));
    Recipe { weighting: Some(Arc::new(Dkw { lambda, floor })), ..Recipe::default() }
}

#[derive(Debug)]
struct Dkw {
    lambda: f64,
    floor: f64,
}

impl Weighting for Dkw {
    fn asks(&self) -> Ask {
        Ask::Histogram
    }

    fn shares(&self, profiles: &[&Profile], _: &Reference, memory: &mut Memory) -> Shares {
        let own: Vec<Vec<f64>> = profiles.iter().map(|profile| distribution(profile)).collect();
        let mut seen = recall(memory, own[0].len());
        seen.extend(profiles.iter().map(|profile| u64::from(profile.client)).zip(own.iter().cloned()));
        let d = mean(&seen);
        remember(memory, &seen);
        let floored: Vec<f64> = own.iter().map(|p| kl(p, &d).max(self.floor)).collect();
        // 1/kl relative to the largest, so that a tiny floor cannot overflow.
        let least = floored.iter().copied().fold(f64::INFINITY, f64::min);
        let inverse: Vec<f64> = floored.iter().map(|kl| least / kl).collect();
        let sum: f64 = inverse.iter().sum();
        mixed(self.lambda, inverse.iter().map(|x| x / sum).collect(), size_shares(profiles))
    }
}

fn kl(p: &[f64], d: &[f64]) -> f64 {
    p.iter().zip(d).filter(|(p, _)| **p > 0.0).map(|(p, d)| p * (p / d).ln()).sum()
}

fn mean(seen: &BTreeMap<u64, Vec<f64>>) -> Vec<f64> {
    let mut sum = vec![0.0; seen.values().next().map_or(0, Vec::len)];
    for p in seen.values() {
        for (sum, p) in sum.iter_mut().zip(p) {
            *sum += p;
        }
    }
    sum.into_iter().map(|sum| sum / seen.len() as f64).collect()
}

fn recall(memory: &Memory, classes: usize) -> BTreeMap<u64, Vec<f64>> {
    let clients = memory.u64("clients").unwrap_or_default();
    let rows = memory.f64("distributions").unwrap_or_default().chunks(classes);
    clients.iter().copied().zip(rows.map(<[f64]>::to_vec)).collect()
}

fn remember(memory: &mut Memory, seen: &BTreeMap<u64, Vec<f64>>) {
    memory.put("clients", seen.keys().copied().collect::<Vec<_>>());
    memory.put("distributions", seen.values().flatten().copied().collect::<Vec<_>>());
}

/// P_k, from the counts that the client reported at enrolment.
///
/// # Panics
/// Panics if it reported another statistic, which enrolment refuses.
fn distribution(profile: &Profile) -> Vec<f64> {
    match &profile.statistic {
        // Not the profile's size, which hardened mode caps.
        Statistic::Histogram(counts) => counts.iter().map(|&h| h as f64 / size(counts) as f64).collect(),
        _ => panic!("client {} was enrolled without the counts that its strategy asks for", profile.client),
    }
}
