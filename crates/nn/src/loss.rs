//! Softmax cross-entropy with offsets to the logits, class weights w and label smoothing s, over C classes:
//!
//! ```text
//! z = logits + offsets,   l_c = ln Σ_j exp z_j - z_c,   d l_c / d logits = softmax(z) - onehot(c)
//! loss of a sample = (1 - s) w_y l_y + s/C Σ_c w_c l_c                 (without smoothing: w_y l_y)
//! loss of a batch  = Σ loss / Σ w_y, and 0 if all of its weights are 0
//! ```
//!
//! That is `torch.nn.CrossEntropyLoss(weight=w, label_smoothing=s)`.

use crate::map::Map;

/// What the loss depends on besides logits and labels.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Terms<'a> {
    /// One number per class.
    pub(crate) offsets: Option<&'a [f32]>,
    /// One number per class.
    pub(crate) weights: Option<&'a [f32]>,
    /// Label smoothing.
    pub(crate) smoothing: f64,
}

/// Sum of the losses of a batch's samples; the gradient of the batch's loss goes to `gradient` if there is one.
///
/// Lanes beyond the last sample get a gradient of zero.
pub(crate) fn cross_entropy(
    logits: &[f32],
    map: &Map,
    labels: &[u32],
    terms: Terms<'_>,
    mut gradient: Option<&mut [f32]>,
) -> f64 {
    let Terms { offsets, weights, smoothing } = terms;
    let classes = map.shape[0];
    let mut total = 0.0;
    let weight = |label: u32| weights.map_or(1.0, |weights| f64::from(weights[label as usize]));
    let spread = smoothing / classes as f64;
    let all: f64 = if smoothing == 0.0 { 0.0 } else { (0..classes).map(|class| weight(class as u32)).sum() };
    let whole: f64 = labels.iter().map(|&label| weight(label)).sum();
    let share = if whole == 0.0 { 0.0 } else { 1.0 / whole };
    if let Some(gradient) = gradient.as_deref_mut() {
        gradient[..labels.len().div_ceil(map.lanes) * map.group()].fill(0.0);
    }
    for (n, &label) in labels.iter().enumerate() {
        let at = |class: usize| (n / map.lanes * classes + class) * map.lanes + n % map.lanes;
        let z = |class: usize| {
            f64::from(logits[at(class)]) + offsets.map_or(0.0, |offsets| f64::from(offsets[class]))
        };
        // A maximum that is NaN if any value is.
        let largest = (0..classes).map(z).fold(f64::NEG_INFINITY, |m, z| if z <= m { m } else { z });
        let sum: f64 = (0..classes).map(|class| (z(class) - largest).exp()).sum();
        let loss = |class: usize| weight(class as u32) * (sum.ln() + largest - z(class));
        if smoothing == 0.0 {
            total += loss(label as usize);
        } else if whole > 0.0 {
            total += (1.0 - smoothing) * loss(label as usize) + spread * (0..classes).map(loss).sum::<f64>();
        }
        if let Some(gradient) = gradient.as_deref_mut() {
            for class in 0..classes {
                let hit = f64::from(u8::from(class == label as usize));
                let p = (z(class) - largest).exp() / sum;
                gradient[at(class)] = if smoothing == 0.0 {
                    ((p - hit) * (weight(label) * share)) as f32
                } else {
                    let own = (1.0 - smoothing) * weight(label) * (p - hit);
                    ((own + spread * (all * p - weight(class as u32))) * share) as f32
                };
            }
        }
    }
    total
}

/// The class of the largest sum of logit and offset of sample `n`; the lowest of equal ones.
pub(crate) fn prediction(logits: &[f32], map: &Map, n: usize, offsets: Option<&[f32]>) -> usize {
    let logit = |class: usize| {
        logits[(n / map.lanes * map.shape[0] + class) * map.lanes + n % map.lanes]
            + offsets.map_or(0.0, |offsets| offsets[class])
    };
    (1..map.shape[0]).fold(0, |best, class| if logit(class) > logit(best) { class } else { best })
}

/// The logits of sample `n`, class by class.
pub(crate) fn sample_logits(logits: &[f32], map: &Map, n: usize) -> impl Iterator<Item = f32> {
    let (first, lanes) = (n / map.lanes * map.shape[0] * map.lanes + n % map.lanes, map.lanes);
    (0..map.shape[0]).map(move |class| logits[first + class * lanes])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn numbers(value: &Value) -> Vec<f64> {
        match value {
            Value::Array(items) => items.iter().flat_map(numbers).collect(),
            other => vec![other.as_f64().unwrap()],
        }
    }

    #[test]
    fn loss_and_gradient_are_those_of_the_balanced_loss() {
        let golden: Value = serde_json::from_str(include_str!("../tests/golden/balanced_loss.json")).unwrap();
        let map = Map { shape: [4, 1, 1], border: 0, lanes: 8 };
        let mut logits = vec![0.0; 4 * 8];
        for (place, z) in numbers(&golden["logits"]).into_iter().enumerate() {
            logits[place % 4 * 8 + place / 4] = z as f32;
        }
        let labels: Vec<u32> = numbers(&golden["labels"]).into_iter().map(|label| label as u32).collect();
        for name in [
            "plain",
            "balanced_uniform",
            "balanced_tau_half",
            "balanced_prior",
            "balanced_floor_1e-2",
            "fedlc_half",
        ] {
            let case = &golden[name];
            let offsets: Vec<f32> = numbers(&case["offsets"]).into_iter().map(|o| o as f32).collect();
            let mut gradient = vec![9.0; 4 * 8];
            let loss = cross_entropy(
                &logits,
                &map,
                &labels,
                Terms { offsets: Some(&offsets), ..Terms::default() },
                Some(&mut gradient),
            ) / 3.0;
            let right = case["loss"].as_f64().unwrap();
            // Offsets and gradients are f32 here.
            assert!((loss - right).abs() < 1e-6 * right, "{name}: {loss} {right}");
            for (place, right) in numbers(&case["gradient"]).into_iter().enumerate() {
                let found = f64::from(gradient[place % 4 * 8 + place / 4]);
                assert!((found - right).abs() < 1e-6 * right.abs() + 1e-9, "{name}: {found} {right}");
            }
            let empty: f32 = gradient.chunks(8).flat_map(|lanes| &lanes[3..]).map(|g| g.abs()).sum();
            assert_eq!(empty, 0.0, "lanes without a sample");
        }
    }

    #[test]
    fn class_weights_and_label_smoothing_are_those_of_pytorch() {
        // `make_class_weights.py` beside it computed it.
        let golden: Value = serde_json::from_str(include_str!("../tests/golden/class_weights.json")).unwrap();
        let map = Map { shape: [4, 1, 1], border: 0, lanes: 8 };
        let mut logits = vec![0.0; 4 * 8];
        for (place, z) in numbers(&golden["logits"]).into_iter().enumerate() {
            logits[place % 4 * 8 + place / 4] = z as f32;
        }
        let labels: Vec<u32> = numbers(&golden["labels"]).into_iter().map(|label| label as u32).collect();
        for (name, case) in golden["cases"].as_object().unwrap() {
            let [offsets, weights] = ["offsets", "weights"]
                .map(|key| numbers(&case[key]).into_iter().map(|x| x as f32).collect::<Vec<f32>>());
            let mut gradient = vec![9.0; 4 * 8];
            let smoothing = case["smoothing"].as_f64().unwrap();
            let terms = Terms { offsets: Some(&offsets), weights: Some(&weights), smoothing };
            let sum = cross_entropy(&logits, &map, &labels, terms, Some(&mut gradient));
            let right = case["sum"].as_f64().unwrap();
            // All inputs are exact in f32, and sums are in f64.
            assert!((sum - right).abs() < 1e-13 * right, "{name}: {sum} {right}");
            for (place, right) in numbers(&case["gradient"]).into_iter().enumerate() {
                let found = f64::from(gradient[place % 4 * 8 + place / 4]);
                assert!((found - right).abs() <= 1e-7 * right.abs(), "{name}: {found} {right}");
            }
        }
    }

    #[test]
    fn a_batch_without_weight_has_no_loss_and_no_gradient() {
        let map = Map { shape: [2, 1, 1], border: 0, lanes: 8 };
        let mut gradient = vec![9.0; 16];
        for smoothing in [0.0, 0.1] {
            let terms = Terms { offsets: None, weights: Some(&[3.0, 0.0]), smoothing };
            let loss = cross_entropy(&[0.5; 16], &map, &[1, 1], terms, Some(&mut gradient));
            assert_eq!((loss, &gradient), (0.0, &vec![0.0; 16]));
        }
    }

    #[test]
    fn equal_logits_go_to_the_lowest_class() {
        let map = Map { shape: [3, 1, 1], border: 0, lanes: 8 };
        let mut logits = vec![0.0; 24];
        logits[8] = 2.0;
        logits[16] = 2.0;
        assert_eq!((prediction(&logits, &map, 0, None), prediction(&logits, &map, 1, None)), (1, 0));
    }
}
