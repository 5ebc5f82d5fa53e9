//! Coordinate-wise median of the clients' models.
//!
//! ```text
//! m = the value at which the ascending cumulative weight passes 1/2;
//!     where it equals 1/2 (within 1e-12), the mean of that value and the next one of positive weight
//! ```
//!
//! With the uniform weights that it suggests this is the ordinary median. Buffers are treated like trainable tensors.
//!
//! Yin et al., "Byzantine-Robust Distributed Learning: Towards Optimal Statistical Rates", ICML 2018.

use crate::memory::Memory;
use crate::model::Params;
use crate::round::{Accepted, ReadFailure, UpdatePart};
use crate::rules::{Combine, Combined, Guide, Property, Recipe, Spec};
use std::sync::Arc;

pub(super) const SPEC: Spec = Spec {
    guide: Guide {
        formula: "per parameter: the value at which the cumulative weight passes 1/2",
        choose: "where up to a few clients may send anything, and clients are alike",
        avoid: "under label skew: honest clients differ so much that the median loses what few of them know; and with weights that clients claim (by size or labels) without strategy.mode = hardened",
        cost: "as `fedavg`; the server sorts K values per parameter",
    },
    suggests: Some("uniform"),
    lacks: &[(Property::AveragesBuffers, "they are combined by the median, like trainable tensors")],
    ..Spec::new(
        "median",
        "the coordinate-wise median of the clients' models; a single outlier cannot move it far",
        "Yin et al., Byzantine-Robust Distributed Learning: Towards Optimal Statistical Rates, ICML 2018",
        |_| Recipe { combine: Some(Arc::new(Median)), ..Recipe::default() },
    )
};

#[derive(Debug)]
struct Median;

impl Combine for Median {
    fn combine(
        &self,
        base: &Params,
        accepted: &mut Accepted<'_>,
        weights: &[f64],
        _: &mut Memory,
    ) -> Result<Combined, ReadFailure> {
        let values = base.values.len();
        let mut next = Vec::with_capacity(values);
        let mut places = vec![0.0; weights.len()];
        let mut column = Vec::with_capacity(weights.len());
        accepted.blocks(UpdatePart::Model, 0..values, |_, blocks| {
            for place in 0..blocks[0].len() {
                column.clear();
                let entries = blocks.iter().zip(weights).enumerate();
                column.extend(entries.map(|(client, (block, &weight))| Entry {
                    value: block[place],
                    weight,
                    client,
                }));
                let middle = middle(&mut column);
                next.push(
                    middle.iter().map(|entry| f64::from(entry.value)).sum::<f64>() / middle.len() as f64,
                );
                middle.iter().for_each(|entry| places[entry.client] += 1.0 / middle.len() as f64);
            }
        })?;
        let counted = places.iter().map(|places| places / values as f64).collect();
        Ok(Combined { values: next, counted })
    }
}

/// One client's value of a parameter.
#[derive(Clone, Copy, Debug)]
struct Entry {
    value: f32,
    weight: f64,
    client: usize,
}

/// The entries whose mean is the weighted median: one, or two where the cumulative weight equals 1/2. The weights sum to 1.
fn middle(entries: &mut Vec<Entry>) -> &[Entry] {
    entries.retain(|entry| entry.weight > 0.0);
    entries.sort_by(|a, b| a.value.total_cmp(&b.value));
    let (last, mut below) = (entries.len() - 1, 0.0);
    for place in 0..last {
        below += entries[place].weight;
        if (below - 0.5f64).abs() <= 1e-12 {
            return &entries[place..place + 2];
        }
        if below >= 0.5 {
            return &entries[place..=place];
        }
    }
    &entries[last..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn median(values: &[f32], weights: &[f64]) -> f64 {
        let entry = |(client, (&value, &weight))| Entry { value, weight, client };
        let mut entries: Vec<Entry> = values.iter().zip(weights).enumerate().map(entry).collect();
        let middle = middle(&mut entries);
        middle.iter().map(|entry| f64::from(entry.value)).sum::<f64>() / middle.len() as f64
    }

    #[test]
    fn equal_weights_give_the_ordinary_median() {
        assert_eq!(median(&[3.0, 1.0, 2.0], &[1.0 / 3.0; 3]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0], &[0.25; 4]), 2.5);
        assert_eq!(median(&[5.0], &[1.0]), 5.0);
        // Ten weights of 0.1 sum to 0.5 only within rounding.
        assert_eq!(median(&[0., 1., 2., 3., 4., 5., 6., 7., 8., 9.], &[0.1; 10]), 4.5);
    }

    #[test]
    fn weights_move_the_median_and_zero_weights_do_not_count() {
        assert_eq!(median(&[1.0, 2.0, 3.0], &[0.6, 0.3, 0.1]), 1.0);
        assert_eq!(median(&[1.0, 2.0, 3.0], &[0.5, 0.0, 0.5]), 2.0);
        assert_eq!(median(&[-0.0, 9.0, 7.0], &[0.0, 0.4, 0.6]), 7.0);
    }

    #[test]
    fn a_parameter_is_taken_from_the_client_in_the_middle_or_from_two() {
        let clients = |values: [f32; 4], weights: [f64; 4]| {
            let entry = |(client, (&value, &weight))| Entry { value, weight, client };
            let mut entries: Vec<Entry> = values.iter().zip(&weights).enumerate().map(entry).collect();
            middle(&mut entries).iter().map(|entry| entry.client).collect::<Vec<_>>()
        };
        assert_eq!(clients([4.0, 1.0, 3.0, 2.0], [0.25; 4]), [3, 2]);
        assert_eq!(clients([4.0, 1.0, 3.0, 2.0], [0.1, 0.2, 0.6, 0.1]), [2]);
    }
}
