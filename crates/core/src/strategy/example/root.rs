//! Root: large clients get larger weights, but not in proportion.
//!
//! ```text
//! s_k = sqrt(n_k) / Σ sqrt(n_j)
//! ```

use crate::labels::{Ask, Reference};
use crate::memory::Memory;
use crate::round::Profile;
use crate::rules::{Guide, Recipe, Shares, Spec, Weighting};
use crate::strategy::fedavg::size_shares;
use std::sync::Arc;

pub(super) const SPEC: Spec = Spec {
    guide: Guide {
        formula: "s_k = sqrt(n_k) / Σ sqrt(n_j)",
        choose: "as a compromise between equal weights and weights by size",
        avoid: "where all clients have the same size: it is `uniform` then",
        cost: "as `fedavg`",
    },
    ..Spec::new(
        "root",
        "clients are weighted by the square root of their size",
        "no paper: an example of how a method is added",
        |_| Recipe { weighting: Some(Arc::new(Root)), ..Recipe::default() },
    )
};

#[derive(Debug)]
struct Root;

impl Weighting for Root {
    fn asks(&self) -> Ask {
        Ask::Nothing
    }

    fn shares(&self, profiles: &[&Profile], _: &Reference, _: &mut Memory) -> Shares {
        let roots: Vec<f64> = profiles.iter().map(|profile| (profile.size as f64).sqrt()).collect();
        let sum: f64 = roots.iter().sum();
        let weight = roots.iter().map(|root| root / sum).collect();
        Shares { quality: None, size: size_shares(profiles), weight }
    }
}
