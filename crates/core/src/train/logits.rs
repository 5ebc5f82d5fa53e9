//! What the logits of one sample say: its most probable class, and the probability of each class.

/// The class of the largest logit; the lowest of equal ones.
pub fn prediction(logits: &[f32]) -> u32 {
    (1..logits.len()).fold(0, |best, class| if logits[class] > logits[best] { class } else { best }) as u32
}

/// The softmax of the logits.
pub fn probabilities(logits: &[f32]) -> Vec<f64> {
    let largest = logits.iter().map(|&logit| f64::from(logit)).fold(f64::NEG_INFINITY, f64::max);
    let parts: Vec<f64> = logits.iter().map(|&logit| (f64::from(logit) - largest).exp()).collect();
    let sum: f64 = parts.iter().sum();
    parts.iter().map(|part| part / sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_logits_go_to_the_lowest_class() {
        assert_eq!((prediction(&[1.0, 2.0, 2.0]), prediction(&[0.0; 3])), (1, 0));
    }

    #[test]
    fn probabilities_are_the_softmax_of_logits_of_any_size() {
        let logits = [1000.0, 1000.0 + std::f32::consts::LN_2];
        let found = probabilities(&logits);
        // The difference of two f32 near 1000 is ln 2 to 1e-4.
        assert!(
            (found[0] - 1.0 / 3.0).abs() < 1e-4 && (found[0] + found[1] - 1.0).abs() < 1e-15,
            "{found:?}"
        );
    }
}
