//! Joint weights: clients are weighted together, so that the labels of the whole round come near the reference.
//!
//! ```text
//! s = argmin over the simplex of  TVD(Σ s_k P_k, Q) + rho |s - u|²      u = 1/K, or n_k/Σn
//! ```
//!
//! Two skewed clients can complete each other, which a distance per client cannot see: FedTVD lowers the weights of both.
//! The larger rho, the nearer the weights to u. The server needs each client's label counts. How the weights are found is
//! in `labels/mixture.rs`.
//!
//! This project's own.

use crate::labels::mixture::Problem;
use crate::labels::{Ask, Reference, Statistic};
use crate::memory::Memory;
use crate::round::Profile;
use crate::rules::{Guide, Recipe, Settings, Shares, Spec, Weighting};
use crate::settings::{Param, Range};
use crate::strategy::fedavg::size_shares;
use std::sync::Arc;

pub(super) const SPEC: Spec = Spec {
    guide: Guide {
        formula: "s = argmin over the simplex of  TVD(Σ s_k P_k, Q) + rho |s - u|²,   u = 1/K, or n_k / Σ n",
        choose: "where few skewed clients take part in each round and can complete each other's labels",
        avoid: "where label counts must not leave the clients, and where clients lie about them: a false histogram buys weight (hardened mode caps it)",
        cost: "as `fedavg`, and label counts once",
    },
    params: &[
        Param::number(
            "rho",
            3.0,
            Range::closed(0.01, 1e6),
            "cost of unequal weights: the larger, the nearer to equal weights",
        ),
        Param::flag("size", false, "prefer weights by size, n_k / Σ n, in place of equal ones"),
    ],
    ..Spec::new(
        "joint",
        "the round's clients are weighted together, so that their labels combined come near the reference; sends label counts",
        "this project: min TVD(Σ s_k P_k, Q) + rho |s - u|², a weighting beyond the FedTVD paper",
        |settings| Recipe { weighting: Some(Arc::new(Joint::new(settings))), ..Recipe::default() },
    )
};

#[derive(Debug)]
struct Joint {
    rho: f64,
    size: bool,
}

impl Joint {
    fn new(settings: &Settings) -> Self {
        Self { rho: settings.number("rho"), size: settings.flag("size") }
    }
}

impl Weighting for Joint {
    fn asks(&self) -> Ask {
        Ask::Histogram
    }

    fn shares(&self, profiles: &[&Profile], reference: &Reference, _: &mut Memory) -> Shares {
        let size = size_shares(profiles);
        let equal = vec![1.0 / profiles.len() as f64; profiles.len()];
        let distributions: Vec<Vec<f64>> = profiles.iter().map(|profile| distribution(profile)).collect();
        let preferred = if self.size { &size } else { &equal };
        let problem = Problem { distributions: &distributions, reference, preferred, rho: self.rho };
        let weight = problem.solve().weights;
        Shares { quality: Some(weight.clone()), size, weight }
    }
}

/// P_k, from the label counts that the client reported at enrolment.
///
/// # Panics
/// Panics if it reported another statistic, which enrolment refuses.
pub(super) fn distribution(profile: &Profile) -> Vec<f64> {
    let Statistic::Histogram(counts) = &profile.statistic else {
        panic!("client {} was enrolled without the label counts that its strategy asks for", profile.client)
    };
    // Counts sum to the claimed size, which hardened mode may have lowered since.
    let total: f64 = counts.iter().map(|&count| count as f64).sum();
    counts.iter().map(|&count| count as f64 / total).collect()
}
