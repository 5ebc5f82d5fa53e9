//! Inner products of the clients' changes, from which the distances between all their combinations follow.
//!
//! ```text
//! x_k = w_k - w_t,   G_ij = ⟨x_i, x_j⟩                     trainable tensors
//! ‖x_i - x_j‖²        = G_ii + G_jj - 2 G_ij
//! ‖Σ b_i x_i - x_k‖²  = b'Gb - 2 (Gb)_k + G_kk
//! ```
//!
//! Products of changes rather than squared distances of models: a liar at 1e30 enters a robust combination with a weight
//! of about 1e-30, and then every term of b'Gb is as large as those of honest clients. Differences of squared distances
//! would be rounding errors of 1e60. All values of an update are finite f32, so no product overflows f64.

use crate::model::Params;
use crate::round::{Accepted, ReadFailure, UpdatePart};

/// Values of all points that are multiplied at once: those of 100 points fit into a core's cache.
const PIECE: usize = 256;
/// Sums that are taken side by side, so that they can share a vector register; their number decides the bits.
const LANES: usize = 8;

/// The inner products of several points, with the origin at the last global model.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Products {
    points: usize,
    /// G, row by row.
    values: Vec<f64>,
}

impl Products {
    /// The products of the accepted clients' changes, and of further changes of the trainable tensors behind them.
    pub(crate) fn new(
        base: &Params,
        accepted: &mut Accepted<'_>,
        further: &[&[f32]],
    ) -> Result<Self, ReadFailure> {
        let base = base.trainable();
        let points = accepted.reports().len() + further.len();
        let mut sums = vec![0.0; points * points];
        let mut changes = vec![Vec::with_capacity(PIECE); points];
        accepted.blocks(UpdatePart::Model, 0..base.len(), |start, blocks| {
            let block_len = blocks.first().map_or(0, Vec::len);
            for from in (0..block_len).step_by(PIECE) {
                let piece = from..block_len.min(from + PIECE);
                let place = start + piece.start..start + piece.end;
                let (clients, others) = changes.split_at_mut(blocks.len());
                for (change, block) in clients.iter_mut().zip(blocks) {
                    change.clear();
                    let pairs = block[piece.clone()].iter().zip(&base[place.clone()]);
                    change.extend(pairs.map(|(&x, &w)| f64::from(x) - f64::from(w)));
                }
                for (change, further) in others.iter_mut().zip(further) {
                    change.clear();
                    change.extend(further[place.clone()].iter().map(|&x| f64::from(x)));
                }
                for i in 0..points {
                    for j in 0..=i {
                        sums[i * points + j] += product(&changes[i], &changes[j]);
                    }
                }
            }
        })?;
        for i in 0..points {
            for j in 0..i {
                sums[j * points + i] = sums[i * points + j];
            }
        }
        Ok(Self { points, values: sums })
    }

    /// ‖x_i - x_j‖².
    pub(crate) fn squared_distance(&self, i: usize, j: usize) -> f64 {
        // Rounding may make the distance of near points slightly negative.
        (self.row(i)[i] + self.row(j)[j] - 2.0 * self.row(i)[j]).max(0.0)
    }

    /// ‖Σ b_i x_i - x_k‖ of every point k.
    pub(crate) fn distances(&self, b: &[f64]) -> Vec<f64> {
        let along: Vec<f64> = (0..self.points).map(|k| sum_of_products(self.row(k), b)).collect();
        let square = sum_of_products(&along, b);
        let distance = |k: usize| (square - 2.0 * along[k] + self.row(k)[k]).max(0.0).sqrt();
        (0..self.points).map(distance).collect()
    }

    /// ‖Σ b_i x_i‖.
    pub(crate) fn norm(&self, b: &[f64]) -> f64 {
        let square: f64 = (0..self.points).map(|k| b[k] * sum_of_products(self.row(k), b)).sum();
        square.max(0.0).sqrt()
    }

    /// ⟨x_i, x_j⟩.
    pub(crate) fn product(&self, i: usize, j: usize) -> f64 {
        self.row(i)[j]
    }

    /// The cosine of the angle between two changes; 0 if one of them is 0.
    pub(crate) fn cosine(&self, i: usize, j: usize) -> f64 {
        let norms = (self.row(i)[i] * self.row(j)[j]).sqrt();
        if norms > 0.0 { self.row(i)[j] / norms } else { 0.0 }
    }

    fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.points..(i + 1) * self.points]
    }
}

fn sum_of_products(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// ⟨a, b⟩, the same bits for ⟨b, a⟩.
fn product(a: &[f64], b: &[f64]) -> f64 {
    let mut lanes = [0.0; LANES];
    let (a_lanes, a_rest) = a.as_chunks::<LANES>();
    let (b_lanes, b_rest) = b.as_chunks::<LANES>();
    for (a, b) in a_lanes.iter().zip(b_lanes) {
        for lane in 0..LANES {
            lanes[lane] += a[lane] * b[lane];
        }
    }
    lanes.iter().sum::<f64>() + sum_of_products(a_rest, b_rest)
}
