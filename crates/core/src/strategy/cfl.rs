//! CFL: one model, whose clients part in two once their common model stands still while their own changes do not.
//!
//! ```text
//! Δ_k = w_k - w_c,   g = Σ s_k Δ_k,   m = max ‖Δ_k‖          over the clients of cluster c, trainable tensors
//! if ‖g‖ <= eps1 and m >= eps2, in a round after `warmup` with more than two clients:
//!   (c1, c2) = argmin over bipartitions of the greatest cosine α of two clients' Δ of different parts
//!   the cluster parts if gamma_max < sqrt((1 - α) / 2); both parts start from w_c
//! else w_c = w_c + g
//! ```
//!
//! The best bipartition is single linkage stopped at two parts: pairs in descending order of their cosine join their clients' parts
//! until two are left. The cosines know no weights; g does, and so does the test with eps1. In a round in which a cluster parts, its
//! updates count for nothing else. Only the round's clients part; the others, and clients that join later, train the model that
//! the cluster had then, and follow the branch to whose clients' Δ their own has the larger mean cosine, one parting per round
//! (`round/branches.rs`). The paper asks all clients in each round.
//!
//! eps2 is read off the norms of a run without partings (`norm` in rounds.jsonl), and eps1 is about a tenth of it. `complete_linkage` is the
//! rule of the authors' code, which joins the two parts whose least similar clients are most similar.
//!
//! Sattler, Müller, Samek, "Clustered Federated Learning: Model-Agnostic Distributed Multitask Optimization Under Privacy Constraints",
//! IEEE TNNLS 2021 (arXiv 1910.01991).

use crate::round::ReadFailure;
use crate::round::products::Products;
use crate::rules::{BranchRound, Grouping, Guide, Recipe, Rule, Settings, Spec, Split};
use crate::settings::{Param, Range};
use std::sync::Arc;

pub(super) const SPEC: Spec = Spec {
    guide: Guide {
        formula: "a cluster parts by the cosines of its clients' changes once ‖Σ s_k Δ_k‖ <= eps1 and max ‖Δ_k‖ >= eps2",
        choose: "where clients fall into groups that contradict each other, their number is unknown, and all of them answer each round",
        avoid: "with few clients per round: only they part, and the others must find their branch; or where clients differ by degrees",
        cost: "the bytes of `fedavg`; the server computes K² cosines in rounds in which a cluster stands still, and keeps all models",
    },
    params: &[
        Param::number(
            "eps1",
            0.4,
            Range::NOT_NEGATIVE,
            "a cluster stands still if the norm of its mean change is at most this",
        ),
        Param::number(
            "eps2",
            1.6,
            Range::NOT_NEGATIVE,
            "its clients do not stand still if the largest norm of their changes is at least this",
        ),
        Param::whole("warmup", 20, (0, 1_000_000), "rounds before the first parting"),
        Param::number(
            "gamma_max",
            0.0,
            Range::UNIT,
            "greatest distance of a client's gradient from its group's, relative to it; 0 for no limit",
        ),
        Param::flag(
            "complete_linkage",
            false,
            "part by complete linkage, as the authors' code, instead of single linkage, as the paper",
        ),
    ],
    keeps: &[(Rule::Sharing, "clients are compared by their changes of the whole model")],
    ..Spec::new(
        "cfl",
        "clients part in two, again and again, where their changes of a model that stands still contradict each other",
        "Sattler et al., Clustered Federated Learning: Model-Agnostic Distributed Multitask Optimization Under Privacy Constraints, IEEE TNNLS 2021",
        build,
    )
};

fn build(settings: &Settings) -> Recipe {
    let cfl = Cfl {
        eps: [settings.number("eps1"), settings.number("eps2")],
        warmup: settings.whole("warmup"),
        gamma_max: settings.number("gamma_max"),
        linkage: if settings.flag("complete_linkage") { Linkage::Complete } else { Linkage::Single },
    };
    Recipe { grouping: Some(Arc::new(cfl)), ..Recipe::default() }
}

#[derive(Debug)]
struct Cfl {
    eps: [f64; 2],
    warmup: u64,
    gamma_max: f64,
    linkage: Linkage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Linkage {
    Single,
    Complete,
}

impl Grouping for Cfl {
    fn models(&self) -> usize {
        1
    }

    fn clients_choose(&self) -> bool {
        false
    }

    fn split(&self, round: &mut BranchRound<'_, '_>) -> Result<Option<Split>, ReadFailure> {
        let [eps1, eps2] = self.eps;
        let greatest = round.norms.iter().copied().fold(0.0, f64::max);
        if round.norms.len() <= 2 || u64::from(round.round) <= self.warmup || greatest < eps2 {
            return Ok(None);
        }
        // A mean has computed the norm of g already.
        if round.accepted.drift().is_some_and(|drift| drift.along > eps1) {
            return Ok(None);
        }
        let products = Products::new(round.base, round.accepted, &[])?;
        if products.norm(round.weights) > eps1 {
            return Ok(None);
        }
        let split = bipartition(round.norms.len(), self.linkage, |i, j| products.cosine(i, j));
        let parts = self.gamma_max < ((1.0 - split.similarity) / 2.0).max(0.0).sqrt();
        Ok(parts.then_some(split))
    }
}

/// The two parts of at least two clients with these similarities.
fn bipartition(clients: usize, linkage: Linkage, similarity: impl Fn(usize, usize) -> f64) -> Split {
    let mut parts: Vec<Vec<usize>> = (0..clients).map(|client| vec![client]).collect();
    let linked = |a: &[usize], b: &[usize]| {
        let pairs = a.iter().flat_map(|&i| b.iter().map(move |&j| (i, j)));
        let similarities = pairs.map(|(i, j)| similarity(i, j));
        match linkage {
            Linkage::Single => similarities.fold(f64::NEG_INFINITY, f64::max),
            Linkage::Complete => similarities.fold(f64::INFINITY, f64::min),
        }
    };
    while parts.len() > 2 {
        // Of equally similar parts the first ones.
        let mut nearest = (f64::NEG_INFINITY, [0, 1]);
        for j in 1..parts.len() {
            for i in 0..j {
                let found = linked(&parts[i], &parts[j]);
                if found > nearest.0 {
                    nearest = (found, [i, j]);
                }
            }
        }
        let (_, [i, j]) = nearest;
        let other = parts.remove(j);
        parts[i].extend(other);
    }
    for part in &mut parts {
        part.sort_unstable();
    }
    parts.sort_unstable();
    let [one, other] = <[Vec<usize>; 2]>::try_from(parts).expect("two parts are left");
    let across = one.iter().flat_map(|&i| other.iter().map(move |&j| (i, j)));
    let similarity = across.map(|(i, j)| similarity(i, j)).fold(f64::NEG_INFINITY, f64::max);
    Split { parts: [one, other], similarity }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cosines of directions at these angles.
    fn at_angles(degrees: &[f64], linkage: Linkage) -> Split {
        bipartition(degrees.len(), linkage, |i, j| (degrees[i] - degrees[j]).to_radians().cos())
    }

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-12, "{a} {b}");
    }

    /// Golden `cfl.json`, made by `gen_golden_3.py` with numpy: `linkage_difference_example` and `second_example`.
    #[test]
    fn single_and_complete_linkage_part_the_golden_angles_as_numpy_does() {
        let angles = [0.0, 20.0, 40.0, 60.0, 80.0, 105.0];
        let single = at_angles(&angles, Linkage::Single);
        assert_eq!(single.parts, [vec![0, 1, 2, 3, 4], vec![5]]);
        close(single.similarity, 0.90630778703665);
        let complete = at_angles(&angles, Linkage::Complete);
        assert_eq!(complete.parts, [vec![0, 1, 2, 3], vec![4, 5]]);
        close(complete.similarity, 0.9396926207859084);
        for linkage in [Linkage::Single, Linkage::Complete] {
            let found = at_angles(&[0.0, 25.0, 50.0, 75.0, 140.0, 150.0], linkage);
            assert_eq!(found.parts, [vec![0, 1, 2, 3], vec![4, 5]]);
            close(found.similarity, 0.42261826174069966);
        }
    }

    #[test]
    fn single_linkage_has_the_least_greatest_similarity_of_all_bipartitions() {
        for seed in 0..40u32 {
            let n = 3 + (seed as usize % 6);
            let values: Vec<f64> =
                (0..n * n).map(|i| f64::from((i as u32 * 7919 + seed * 104_729) % 1009)).collect();
            let similarity = |i: usize, j: usize| values[i.min(j) * n + i.max(j)];
            let across = |mask: usize| {
                let pairs = (0..n).flat_map(|i| (0..i).map(move |j| (i, j)));
                let across = pairs.filter(|(i, j)| (mask >> i & 1) != (mask >> j & 1));
                across.map(|(i, j)| similarity(i, j)).fold(f64::NEG_INFINITY, f64::max)
            };
            let best = (1..1 << (n - 1)).map(across).fold(f64::INFINITY, f64::min);
            assert_eq!(bipartition(n, Linkage::Single, similarity).similarity, best, "{seed}");
        }
    }
}
