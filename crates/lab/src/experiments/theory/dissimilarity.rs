//! δ², the gradient dissimilarity: how far the clients' gradients are from the global gradient. The paper claims that its
//! weights reduce it.
//!
//! ```text
//! ∇F = Σ p_k ∇F_k,  p_k = n_k/Σn
//! δ²(q) = Σ q_k ‖∇F_k − ∇F‖²
//! ```
//!
//! The paper uses q = 1/K (K clients) for FedAvg and q = s, the aggregation weights, for FedTVD. At λ = 0 the methods
//! are the same, but these two values differ; with q = p for FedAvg they agree.

/// δ² of the same gradients with three sets of weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dissimilarity {
    /// With 1/K, which the paper uses for FedAvg.
    pub even: f64,
    /// With p, the weights of FedAvg.
    pub size: f64,
    /// With s, the weights of FedTVD.
    pub weighted: f64,
}

impl Dissimilarity {
    /// From the clients' gradients, sizes and FedTVD weights.
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
        // Three clients of equal size; the balanced one has the opposite gradient and a weight above 1/3.
        let gradients: [&[f64]; 3] = [&[2.0], &[-1.0], &[-1.0]];
        let dissimilarity = Dissimilarity::of(&gradients, &[10, 10, 10], &[0.4, 0.3, 0.3]);
        // The mean is 0: δ² is (4 + 1 + 1)/3 = 2, and 1.6 + 0.6 = 2.2.
        assert!((dissimilarity.even - 2.0).abs() < 1e-12 && (dissimilarity.size - 2.0).abs() < 1e-12);
        assert!((dissimilarity.weighted - 2.2).abs() < 1e-12);
    }

    #[test]
    fn all_three_are_those_of_the_golden_file() {
        // Computed in Python from the paper's definitions; the claim holds in some cases and fails in others.
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
            let dissimilarity = Dissimilarity::of(&gradients, &sizes, &list("s"));
            for (own, name) in [
                (dissimilarity.even, "delta_avg_paper_uniform"),
                (dissimilarity.size, "delta_avg_size_weighted"),
                (dissimilarity.weighted, "delta_tvd_paper"),
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
        let dissimilarity = Dissimilarity::of(&gradients, &[30, 10], &shares);
        // The mean is 1, distances are 1 and 9.
        assert_eq!((dissimilarity.even, dissimilarity.size, dissimilarity.weighted), (5.0, 3.0, 3.0));
    }
}
