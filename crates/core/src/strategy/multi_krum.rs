//! Multi-Krum: the mean of the clients that are nearest to their neighbours.
//!
//! ```text
//! score_k as in Krum;   S = the m clients of the lowest scores
//! w = Σ_S s_k w_k / Σ_S s_k
//! ```
//!
//! m = select K, rounded down, between 1 and K - f; select = 0 is m = K - f, all but as many clients as are assumed to
//! lie. With fewer than five clients nobody could be left out, so a round with fewer changes nothing. Buffers are averaged
//! over S, too.
//!
//! Blanchard, El Mhamdi, Guerraoui, Stainer, "Machine Learning with Adversaries: Byzantine Tolerant Gradient Descent",
//! NeurIPS 2017.

use crate::memory::Memory;
use crate::model::Params;
use crate::round::products::Products;
use crate::round::{Accepted, ReadFailure, UpdatePart};
use crate::rules::{Combine, Combined, Guide, Property, Recipe, Spec};
use crate::settings::{Param, Range};
use crate::strategy::krum;
use std::sync::Arc;

pub(super) const SPEC: Spec = Spec {
    guide: Guide {
        formula: "the weighted mean of the K - f updates with the least Krum scores",
        choose: "against up to f liars whose updates are far from the others', with at least five clients per round: with fewer, a round changes nothing",
        avoid: "under label skew, where honest updates are far from each other too, and against small consistent lies (ALIE); weights count among the selected clients only, not in their selection",
        cost: "as `fedavg`; the server computes K² distances",
    },
    params: &[
        krum::BYZANTINE,
        Param::number(
            "select",
            0.0,
            Range::UNIT,
            "fraction of a round's clients that is averaged, at most all but the liars; 0 is all but the liars",
        ),
    ],
    suggests: Some("uniform"),
    lacks: &[(Property::AveragesBuffers, "only those of the selected clients are averaged")],
    ..Spec::new(
        "multi-krum",
        "the mean of the clients that are nearest to their neighbours; as many as may lie are left out",
        krum::PAPER,
        |settings| Recipe {
            combine: Some(Arc::new(MultiKrum {
                liars: settings.number("byzantine"),
                select: settings.number("select"),
            })),
            ..Recipe::default()
        },
    )
};

#[derive(Debug)]
struct MultiKrum {
    liars: f64,
    select: f64,
}

impl Combine for MultiKrum {
    fn least_clients(&self) -> usize {
        krum::least_clients(self.liars)
    }

    fn combine(
        &self,
        base: &Params,
        accepted: &mut Accepted<'_>,
        weights: &[f64],
        _: &mut Memory,
    ) -> Result<Combined, ReadFailure> {
        let candidates = krum::candidates(weights);
        let liars = krum::liars(self.liars, candidates.len());
        let products = Products::new(base, accepted, &[])?;
        let ranked = krum::ranked(&products, &candidates, liars);
        let selected = &ranked[..self.selected(candidates.len(), liars)];
        let sum: f64 = selected.iter().map(|&k| weights[k]).sum();
        let mut counted = vec![0.0; weights.len()];
        selected.iter().for_each(|&k| counted[k] = weights[k] / sum);
        let values = accepted.weighted_sum(UpdatePart::Model, 0..base.values.len(), &counted)?;
        Ok(Combined { values, counted })
    }
}

impl MultiKrum {
    /// m: the number of clients that are averaged.
    fn selected(&self, clients: usize, liars: usize) -> usize {
        let most = clients - liars;
        match self.select {
            0.0 => most,
            // 0.29 · 100 is 28.999999999999996.
            select => ((select * clients as f64 + 1e-9) as usize).clamp(1, most),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_clients_are_averaged_as_select_says_or_all_but_the_liars() {
        let selected = |select, clients| {
            let rule = MultiKrum { liars: 0.2, select };
            rule.selected(clients, krum::liars(0.2, clients))
        };
        for (select, clients, expected) in [
            (0.0, 10, 8),
            (0.5, 10, 5),
            (0.29, 100, 29),
            (1.0, 10, 8),
            (0.01, 10, 1),
            (0.0, 2, 2),
            (0.0, 1, 1),
        ] {
            assert_eq!(selected(select, clients), expected, "{select} of {clients}");
        }
    }
}
