//! FedTVD as in its authors' public code, whose rule differs from the paper's.
//!
//! ```text
//! d'_k = 1/2 Σ_c |h_k[c] / (n_k + 1) - Q[c]|     (the shares do not sum to one)
//! a_k  = softmax(1 / d'_k)
//! s_k  = lambda a_k + (1 - lambda) n_k / Σ_j n_j
//! ```
//!
//! A balanced client has d' = 1/(2(n + 1)), hence the logit 2(n + 1): it gets nearly all the weight.
//!
//! nclabteam/FedEasy, commit 6c4c2f9, `mak/strategies/fedtvd_strategy.py` and `mak/clients/fedtvd_client.py`.

use crate::labels::{Ask, Reference, Statistic};
use crate::memory::Memory;
use crate::round::Profile;
use crate::rules::{Guide, Recipe, Settings, Shares, Spec, Weighting};
use crate::strategy::fedavg::{mixed, size_shares};
use crate::strategy::fedtvd::{LAMBDA, softmax};
use std::sync::Arc;

pub(super) const SPEC: Spec = Spec {
    guide: Guide {
        formula: "d'_k = 1/2 Σ_c |h_k[c] / (n_k + 1) - Q[c]|,   a = softmax(1 / d'),   s = lambda a + (1 - lambda) n / Σ n",
        choose: "to reproduce what the authors' public code computes",
        avoid: "otherwise: one balanced client takes nearly all of the quality share",
        cost: "as `fedavg`, and one number per client once",
    },
    params: &[LAMBDA],
    ..Spec::new(
        "fedtvd-released",
        "FedTVD as in its authors' public code: softmax(1/TVD'), which gives the most balanced client nearly all the weight",
        "public code of the FedTVD authors (nclabteam/FedEasy, commit 6c4c2f9), not the paper's formula",
        build,
    )
};

fn build(settings: &Settings) -> Recipe {
    let lambda = settings.number("lambda");
    Recipe { weighting: Some(Arc::new(Released { lambda })), ..Recipe::default() }
}

#[derive(Debug)]
struct Released {
    lambda: f64,
}

impl Weighting for Released {
    fn asks(&self) -> Ask {
        Ask::Released
    }

    fn shares(&self, profiles: &[&Profile], _: &Reference, _: &mut Memory) -> Shares {
        let logits: Vec<f64> = profiles.iter().map(|profile| 1.0 / distance(profile)).collect();
        mixed(self.lambda, softmax(&logits), size_shares(profiles))
    }
}

/// The d' that a client reported at enrolment.
///
/// # Panics
/// Panics if it reported another statistic, which enrolment refuses.
fn distance(profile: &Profile) -> f64 {
    match profile.statistic {
        Statistic::Released(distance) => distance,
        _ => panic!("client {} was enrolled without the distance that its strategy asks for", profile.client),
    }
}
