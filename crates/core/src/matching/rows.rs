//! The weights of one layer, unit by unit.

/// A matrix with one row per unit: its incoming weights, then its bias if the layer has one.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    columns: usize,
    values: Vec<f32>,
}

impl Rows {
    /// A matrix from its values, row after row.
    ///
    /// # Panics
    /// Panics if the values are not whole rows.
    pub fn new(columns: usize, values: Vec<f32>) -> Self {
        assert!(columns > 0 && values.len().is_multiple_of(columns), "the values are whole rows");
        Self { columns, values }
    }

    /// Number of values in a row.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.values.len() / self.columns
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// One row.
    pub fn row(&self, unit: usize) -> &[f32] {
        &self.values[unit * self.columns..][..self.columns]
    }

    /// All rows in order.
    pub fn iter(&self) -> impl Iterator<Item = &[f32]> {
        self.values.chunks_exact(self.columns)
    }

    /// The same units reading from `atoms` atoms instead of the units below: each input moves to the atom that its unit is
    /// assigned to, inputs from other atoms have weight 0, biases stay. A unit below is read by `block` consecutive weights:
    /// 1 in a linear layer, the kernel's size in a convolution, height times width in a linear layer after one.
    ///
    /// # Panics
    /// Panics if there are more inputs assigned than a row has, or if one is assigned to an atom that does not exist.
    pub fn with_inputs(&self, assigned: &[usize], atoms: usize, block: usize) -> Self {
        let biases = self.columns - assigned.len() * block;
        let columns = atoms * block + biases;
        let mut values = vec![0.0; self.len() * columns];
        for (new, old) in values.chunks_exact_mut(columns).zip(self.iter()) {
            let (weights, bias) = old.split_at(old.len() - biases);
            for (weights, &atom) in weights.chunks_exact(block).zip(assigned) {
                new[atom * block..][..block].copy_from_slice(weights);
            }
            new[columns - biases..].copy_from_slice(bias);
        }
        Self { columns, values }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // The expected numbers of these two are those of fedma_matching.json, computed with numpy.
    #[test]
    fn the_inputs_of_a_linear_layer_follow_the_units_below() {
        let rows = Rows::new(2, vec![10.0, 20.0, 30.0, 40.0]);
        assert_eq!(rows.with_inputs(&[1, 0], 2, 1), Rows::new(2, vec![20.0, 10.0, 40.0, 30.0]));
    }

    #[test]
    fn the_kernels_of_a_convolution_move_as_blocks_and_new_channels_have_weight_zero() {
        let rows = Rows::new(8, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        let moved = vec![5.0, 6.0, 7.0, 8.0, 0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 4.0];
        assert_eq!(rows.with_inputs(&[2, 0], 3, 4), Rows::new(12, moved));
    }

    #[test]
    fn a_bias_stays_behind_the_weights() {
        let rows = Rows::new(3, vec![1.0, 2.0, 9.0]);
        assert_eq!(rows.with_inputs(&[2, 0], 3, 1), Rows::new(4, vec![2.0, 0.0, 1.0, 9.0]));
    }
}
