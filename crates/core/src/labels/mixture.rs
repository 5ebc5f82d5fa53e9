//! The weights of clients whose labels together come nearest to the reference.
//!
//! ```text
//! minimise  f(s) = 1/2 Σ_c |Σ_k s_k P_k[c] - Q[c]| + rho |s - u|²      over s >= 0, Σ s = 1
//!
//! 1/2 |x| = max of y x over -1/2 <= y <= 1/2, so the dual problem is to maximise, over y in that box,
//!           d(y) = min over s of  Σ_c y_c (Σ_k s_k P_k[c] - Q[c]) + rho |s - u|²
//!           s(y) = projection of u - P y / (2 rho) onto the simplex,   ∇d(y) = Σ_k s_k(y) P_k - Q
//! ```
//!
//! f is strictly convex, so there is one solution. Accelerated projected gradient ascent on d (Nesterov 1983; restarted where
//! it stops ascending, O'Donoghue and Candès 2015) has one unknown per class, whatever the number of clients. Every y
//! bounds the optimum from below and every s from above, so the gap f(s) - d(y) certifies how good a solution is. It
//! depends on nothing but its input: plain sums in a fixed order.

use crate::labels::Reference;

/// The gap at which the search ends. Weights are then within sqrt(gap / rho) of the solution.
const GAP: f64 = 1e-10;
/// Steps after which the search ends with the best weights found.
const STEPS: usize = 20_000;

/// Weights and how near they are to the best ones.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mixture {
    /// The weights; they sum to 1.
    pub(crate) weights: Vec<f64>,
    /// Upper bound on f(weights) - f(best weights).
    pub(crate) gap: f64,
}

/// One problem: label distributions P, preferred weights u, and how much it costs to leave them.
pub(crate) struct Problem<'a> {
    pub(crate) distributions: &'a [Vec<f64>],
    pub(crate) reference: &'a Reference,
    pub(crate) preferred: &'a [f64],
    pub(crate) rho: f64,
}

impl Problem<'_> {
    /// The best weights, up to their gap. There is at least one client.
    pub(crate) fn solve(&self) -> Mixture {
        let classes = self.reference.classes();
        let step = 1.0 / self.lipschitz();
        let (mut y, mut ahead, mut momentum) = (vec![0.0; classes], vec![0.0; classes], 1.0f64);
        let mut best = Mixture { weights: self.preferred.to_vec(), gap: f64::INFINITY };
        let (mut least, mut greatest) = (f64::INFINITY, f64::NEG_INFINITY);
        for _ in 0..STEPS {
            let s = self.response(&ahead);
            let slope = self.excess(&s);
            let next: Vec<f64> =
                ahead.iter().zip(&slope).map(|(y, slope)| (y + step * slope).clamp(-0.5, 0.5)).collect();
            let (value, bound) = (self.value(&s, &slope), self.bound(&ahead, &s, &slope));
            greatest = greatest.max(bound);
            if value < least {
                least = value;
                best.weights = s;
            }
            best.gap = least - greatest;
            if best.gap <= GAP {
                break;
            }
            let forward: f64 =
                slope.iter().zip(next.iter().zip(&y)).map(|(g, (new, old))| g * (new - old)).sum();
            let t = if forward < 0.0 { 1.0 } else { 0.5 * (1.0 + (1.0 + 4.0 * momentum * momentum).sqrt()) };
            let beta = if forward < 0.0 { 0.0 } else { (momentum - 1.0) / t };
            ahead = next.iter().zip(&y).map(|(new, old)| new + beta * (new - old)).collect();
            (y, momentum) = (next, t);
        }
        best
    }

    /// A bound on how fast the gradient of d changes: |P|² / (2 rho), and |P|² is at most the greatest sum of a column times
    /// that of a row, which is 1.
    fn lipschitz(&self) -> f64 {
        let column = |c: usize| self.distributions.iter().map(|p| p[c]).sum::<f64>();
        (0..self.reference.classes()).map(column).fold(0.0, f64::max) / (2.0 * self.rho)
    }

    /// s(y).
    fn response(&self, y: &[f64]) -> Vec<f64> {
        let cost = |p: &Vec<f64>| p.iter().zip(y).map(|(p, y)| p * y).sum::<f64>();
        let point = self.preferred.iter().zip(self.distributions);
        on_simplex(&point.map(|(u, p)| u - cost(p) / (2.0 * self.rho)).collect::<Vec<_>>())
    }

    /// Σ_k s_k P_k - Q.
    fn excess(&self, s: &[f64]) -> Vec<f64> {
        let mut excess: Vec<f64> = self.reference.shares().iter().map(|q| -q).collect();
        for (s, p) in s.iter().zip(self.distributions) {
            excess.iter_mut().zip(p).for_each(|(sum, p)| *sum += s * p);
        }
        excess
    }

    /// rho |s - u|².
    fn penalty(&self, s: &[f64]) -> f64 {
        self.rho * s.iter().zip(self.preferred).map(|(s, u)| (s - u).powi(2)).sum::<f64>()
    }

    /// f(s).
    fn value(&self, s: &[f64], excess: &[f64]) -> f64 {
        0.5 * excess.iter().map(|x| x.abs()).sum::<f64>() + self.penalty(s)
    }

    /// d(y), with s = s(y), if y is in the box; the point ahead of the last one may not be.
    fn bound(&self, y: &[f64], s: &[f64], excess: &[f64]) -> f64 {
        if y.iter().any(|y| y.abs() > 0.5) {
            return f64::NEG_INFINITY;
        }
        y.iter().zip(excess).map(|(y, x)| y * x).sum::<f64>() + self.penalty(s)
    }
}

/// The nearest point with non-negative coordinates that sum to 1: max(x - θ, 0).
fn on_simplex(x: &[f64]) -> Vec<f64> {
    let mut sorted = x.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let (mut sum, mut theta) = (0.0, 0.0);
    for (place, value) in sorted.iter().enumerate() {
        sum += value;
        let level = (sum - 1.0) / (place + 1) as f64;
        if *value > level {
            theta = level;
        }
    }
    x.iter().map(|x| (x - theta).max(0.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn solve(distributions: &[Vec<f64>], q: &Reference, rho: f64) -> Mixture {
        let preferred = vec![1.0 / distributions.len() as f64; distributions.len()];
        Problem { distributions, reference: q, preferred: &preferred, rho }.solve()
    }

    fn normalised(counts: Vec<u32>) -> Vec<f64> {
        let total: u32 = counts.iter().sum();
        counts.iter().map(|&count| f64::from(count) / f64::from(total)).collect()
    }

    #[test]
    fn the_nearest_point_of_the_simplex_is_found() {
        assert_eq!(on_simplex(&[0.2, 0.3, 0.5]), [0.2, 0.3, 0.5]);
        assert_eq!(on_simplex(&[1.0, 1.0]), [0.5, 0.5]);
        assert_eq!(on_simplex(&[2.0, 0.0, -3.0]), [1.0, 0.0, 0.0]);
    }

    #[test]
    fn two_clients_that_complete_each_other_share_the_weight_equally() {
        // Two clients know class 0 only, one knows class 1 only. With s = (x, x, 1 - 2x) and u = 1/3 the distance is
        // |2x - 1/2| and the penalty rho (2 (x - 1/3)² + (2/3 - 2x)²): at rho = 1/10 the kink x = 1/4 is the least.
        let p = [vec![1.0, 0.0], vec![1.0, 0.0], vec![0.0, 1.0]];
        let Mixture { weights, gap } = solve(&p, &Reference::uniform(2), 0.1);
        assert!(gap <= GAP, "{gap}");
        for (got, want) in weights.iter().zip([0.25, 0.25, 0.5]) {
            assert!((got - want).abs() < 1e-4, "{weights:?}");
        }
    }

    #[test]
    fn a_high_rho_keeps_the_preferred_weights() {
        let p = [vec![1.0, 0.0], vec![0.0, 1.0], vec![0.0, 1.0]];
        let weights = solve(&p, &Reference::uniform(2), 1e6).weights;
        assert!(weights.iter().all(|s| (s - 1.0 / 3.0).abs() < 1e-6), "{weights:?}");
    }

    proptest! {
        #[test]
        fn the_gap_is_certified_and_no_other_weights_are_better(
            counts in prop::collection::vec(prop::collection::vec(0u32..50, 5).prop_filter("samples", |c| c.iter().sum::<u32>() > 0), 1..40),
            other in prop::collection::vec(0.0f64..1.0, 40),
            rho in prop::sample::select(vec![0.01, 0.1, 1.0, 10.0]),
        ) {
            let p: Vec<Vec<f64>> = counts.into_iter().map(normalised).collect();
            let q = Reference::uniform(5);
            let preferred = vec![1.0 / p.len() as f64; p.len()];
            let problem = Problem { distributions: &p, reference: &q, preferred: &preferred, rho };
            let Mixture { weights, gap } = problem.solve();
            // Far below what weights are printed with.
            prop_assert!((-1e-12..=1e-8).contains(&gap), "{gap}");
            prop_assert!(weights.iter().all(|s| *s >= 0.0));
            prop_assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            let value = |s: &[f64]| problem.value(s, &problem.excess(s));
            let sum: f64 = other[..p.len()].iter().sum::<f64>().max(1e-9);
            let other: Vec<f64> = other[..p.len()].iter().map(|x| x / sum).collect();
            prop_assert!(value(&weights) <= value(&preferred) + 1e-8);
            prop_assert!(value(&weights) <= value(&other) + 1e-8);
        }
    }
}
