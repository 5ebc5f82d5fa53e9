//! Uniform averaging: every client has the same weight. The baseline that the FedTVD paper lacks.
//!
//! ```text
//! s_k = 1 / K
//! ```

use crate::labels::{Ask, Reference};
use crate::memory::Memory;
use crate::round::Profile;
use crate::rules::{Guide, Recipe, Shares, Spec, Weighting};
use crate::strategy::fedavg::size_shares;
use std::sync::Arc;

pub(super) const SPEC: Spec = Spec {
    guide: Guide {
        formula: "s_k = 1 / K",
        choose: "as the baseline of every weighting by labels, and under label skew, where it is at least as good as `fedtvd`",
        avoid: "where many clients have a handful of samples each: their noisy updates count like all others",
        cost: "as `fedavg`",
    },
    ..Spec::new(
        "uniform",
        "the unweighted mean: every client has the same weight, whatever its size and labels",
        "the ablation that the FedTVD paper lacks; as in Li et al., On the Convergence of FedAvg on Non-IID Data, ICLR 2020",
        |_| Recipe { weighting: Some(Arc::new(Uniform)), ..Recipe::default() },
    )
};

#[derive(Debug)]
struct Uniform;

impl Weighting for Uniform {
    fn asks(&self) -> Ask {
        Ask::Nothing
    }

    fn shares(&self, profiles: &[&Profile], _: &Reference, _: &mut Memory) -> Shares {
        let weight = vec![1.0 / profiles.len() as f64; profiles.len()];
        Shares { quality: None, size: size_shares(profiles), weight }
    }
}
