//! Holm's correction of p-values for multiple comparisons; it controls the family-wise error rate.

/// Corrected p-values, in the order of the input: the i-th smallest of m times m - i + 1, made monotone, at most 1
/// (Holm 1979, "A simple sequentially rejective multiple test procedure").
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
    let mut adjusted = vec![0.0; p.len()];
    let mut floor = 0.0_f64;
    for (place, index) in order.into_iter().enumerate() {
        floor = floor.max((p.len() - place) as f64 * p[index]).min(1.0);
        adjusted[index] = floor;
    }
    adjusted
}
