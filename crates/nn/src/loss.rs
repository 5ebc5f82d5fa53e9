//! Softmax cross-entropy with offsets to the logits:
//!
//! ```text
//! z = logits + offsets,   loss = ln Σ_c exp z_c - z_y,   d loss / d logits = softmax(z) - onehot(y)
//! ```

use crate::map::Map;

/// Sum of the batch's losses; the gradient of their mean goes to `gradient` if there is one.
///
/// Lanes beyond the last sample get a gradient of zero.
pub(crate) fn cross_entropy(
    logits: &[f32],
    map: &Map,
    labels: &[u32],
    offsets: Option<&[f32]>,
    mut gradient: Option<&mut [f32]>,
) -> f64 {
    let classes = map.shape[0];
    let mut total = 0.0;
    let share = 1.0 / labels.len() as f64;
    if let Some(gradient) = gradient.as_deref_mut() {
        gradient[..labels.len().div_ceil(map.lanes) * map.group()].fill(0.0);
    }
    for (n, &label) in labels.iter().enumerate() {
        let at = |class: usize| (n / map.lanes * classes + class) * map.lanes + n % map.lanes;
        let z = |class: usize| {
            f64::from(logits[at(class)]) + offsets.map_or(0.0, |offsets| f64::from(offsets[class]))
        };
        // A maximum that NaN cannot hide from.
        let largest = (0..classes).map(z).fold(f64::NEG_INFINITY, |m, z| if z <= m { m } else { z });
        let sum: f64 = (0..classes).map(|class| (z(class) - largest).exp()).sum();
        total += sum.ln() + largest - z(label as usize);
        if let Some(gradient) = gradient.as_deref_mut() {
            for class in 0..classes {
                let hit = f64::from(u8::from(class == label as usize));
                gradient[at(class)] = (((z(class) - largest).exp() / sum - hit) * share) as f32;
            }
        }
    }
    total
}

/// The class of the largest logit of sample `n`; the lowest of equal ones.
pub(crate) fn prediction(logits: &[f32], map: &Map, n: usize) -> usize {
    let logit = |class: usize| logits[(n / map.lanes * map.shape[0] + class) * map.lanes + n % map.lanes];
    (1..map.shape[0]).fold(0, |best, class| if logit(class) > logit(best) { class } else { best })
}
