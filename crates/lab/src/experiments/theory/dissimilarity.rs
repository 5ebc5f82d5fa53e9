//! δ²: how much the clients' gradients dissent from that of the whole, which the paper says its weights reduce.
//!
//! ```text
//! ∇F = Σ p_k ∇F_k,  p_k = n_k/Σn
//! δ²(q) = Σ q_k ‖∇F_k − ∇F‖²
//! ```
//!
//! The paper defines FedAvg's with q = 1/K and FedTVD's with q = s, so that at λ = 0, where the methods are the same,
//! the two differ; with q = p they agree there.

/// δ² of the same gradients with three weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dissent {
    /// With 1/K: what the paper calls FedAvg's.
    pub even: f64,
    /// With p: FedAvg's with its own weights.
    pub size: f64,
    /// With s: FedTVD's.
    pub weighted: f64,
}

impl Dissent {
    /// Of some clients' gradients, with their sizes and FedTVD's weights.
    pub fn of(gradients: &[&[f64]], sizes: &[u64], weights: &[f64]) -> Self {
        let total = sizes.iter().sum::<u64>() as f64;
        let shares: Vec<f64> = sizes.iter().map(|&n| n as f64 / total).collect();
        let length = gradients.first().map_or(0, |gradient| gradient.len());
        let mut whole = vec![0.0; length];
        for (gradient, p) in gradients.iter().zip(&shares) {
            whole.iter_mut().zip(*gradient).for_each(|(sum, g)| *sum += p * g);
        }
        let distance = |gradient: &&[f64]| {
            gradient.iter().zip(&whole).map(|(g, whole)| (g - whole).powi(2)).sum::<f64>()
        };
        let distances: Vec<f64> = gradients.iter().map(distance).collect();
        let with = |q: &[f64]| q.iter().zip(&distances).map(|(q, d)| q * d).sum();
        let even = vec![1.0 / gradients.len().max(1) as f64; gradients.len()];
        Self { even: with(&even), size: with(&shares), weighted: with(weights) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_balanced_outlier_makes_the_papers_claim_false() {
        // Three clients of equal size; the balanced one pulls the other way and gets more weight than 1/3.
        let gradients: [&[f64]; 3] = [&[2.0], &[-1.0], &[-1.0]];
        let dissent = Dissent::of(&gradients, &[10, 10, 10], &[0.4, 0.3, 0.3]);
        // The mean is 0: δ² is (4 + 1 + 1)/3 = 2, and 1.6 + 0.6 = 2.2.
        assert!((dissent.even - 2.0).abs() < 1e-12 && (dissent.size - 2.0).abs() < 1e-12);
        assert!((dissent.weighted - 2.2).abs() < 1e-12);
    }

    #[test]
    fn all_three_are_those_of_the_golden_file() {
        // Computed in Python from the paper's definitions, for claims that hold and claims that do not.
        let golden = include_str!("../../../tests/golden/delta_claim_counterexample.json");
        let golden: serde_json::Value = serde_json::from_str(golden).unwrap();
        let cases: Vec<&serde_json::Value> =
            golden.as_object().unwrap().values().filter_map(|value| value.as_array()).flatten().collect();
        assert_eq!(cases.len(), 10);
        for case in cases {
            let list = |name: &str| -> Vec<f64> {
                case[name].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
            };
            let gradients: Vec<[f64; 1]> = list("grads").into_iter().map(|gradient| [gradient]).collect();
            let gradients: Vec<&[f64]> = gradients.iter().map(<[f64; 1]>::as_slice).collect();
            let sizes: Vec<u64> = list("n").into_iter().map(|n| n as u64).collect();
            let dissent = Dissent::of(&gradients, &sizes, &list("s"));
            for (own, name) in [
                (dissent.even, "delta_avg_paper_uniform"),
                (dissent.size, "delta_avg_size_weighted"),
                (dissent.weighted, "delta_tvd_paper"),
            ] {
                let expected = case[name].as_f64().unwrap();
                // Sums of three f64 terms below 20, in another order.
                assert!((own - expected).abs() < 1e-12, "{name}: {own} instead of {expected}");
            }
        }
    }

    #[test]
    fn the_two_definitions_differ_where_the_methods_are_the_same() {
        let gradients: [&[f64]; 2] = [&[0.0], &[4.0]];
        let shares = [0.75, 0.25];
        let dissent = Dissent::of(&gradients, &[30, 10], &shares);
        // The mean is 1, distances are 1 and 9.
        assert_eq!((dissent.even, dissent.size, dissent.weighted), (5.0, 3.0, 3.0));
    }
}
