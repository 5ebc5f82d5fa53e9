//! The layers of a sequential network, as matching needs them: which numbers belong to which unit.

use crate::matching::Rows;
use crate::model::{Layer, LayerKind, Layout, Network, Role};
use std::ops::Range;
use thiserror::Error;

/// The layers with parameters, each of which reads the units of the one before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// The layers, from input to logits.
    pub layers: Vec<ChainLayer>,
}

/// A convolution or a linear layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainLayer {
    /// Its weights in the flat parameters, unit by unit.
    pub weights: Range<usize>,
    /// Its biases, one per unit, if it has biases.
    pub biases: Option<Range<usize>>,
    /// Number of units.
    pub units: usize,
    /// Number of weights with which each unit reads one unit of the layer below, or one channel of the input.
    pub block: usize,
}

/// Why the units of a network cannot be matched.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ChainError {
    /// A layer that ties units together, or that has numbers which matching does not know.
    #[error(
        "layer {at} is a {layer} layer; only networks of convolutions and linear layers, one after the other, can be matched"
    )]
    Layer {
        /// Its position, counted from 1.
        at: usize,
        /// Its kind.
        layer: &'static str,
    },
    /// Tensors that do not follow one another.
    #[error("tensor {0} does not belong to a chain of convolutions and linear layers")]
    Tensor(String),
    /// A model that is not made of layers.
    #[error("the model {0} is not made of layers that are known here")]
    NoLayers(String),
    /// Nothing to match.
    #[error("the network has no hidden layer, so there is nothing to match")]
    NoHiddenLayer,
}

impl Chain {
    /// The layers of this network; fails if its units cannot be matched.
    pub fn of_network(network: &Network) -> Result<Self, ChainError> {
        let tied = |layer: &Layer| {
            matches!(layer, Layer::Residual { .. } | Layer::BatchNorm { .. } | Layer::GroupNorm { .. })
        };
        if let Some(place) = network.layers.iter().position(tied) {
            return Err(ChainError::Layer { at: place + 1, layer: network.layers[place].word() });
        }
        let layout = Layout::of(network).map_err(|error| ChainError::Tensor(error.to_string()))?;
        Self::of(&layout)
    }

    /// The layers of a network with this layout, which is sequential: see [`Chain::of_network`].
    pub fn of(layout: &Layout) -> Result<Self, ChainError> {
        let mut layers: Vec<ChainLayer> = Vec::new();
        for tensor in layout.tensors() {
            let misfit = || ChainError::Tensor(tensor.name.clone());
            match (tensor.kind, tensor.role, tensor.shape.as_slice()) {
                (LayerKind::Conv | LayerKind::Linear, Role::Weight, &[units, channels, ref kernel @ ..]) => {
                    let inputs = channels * kernel.iter().product::<usize>();
                    let below = layers.last().map_or(channels, |below| below.units);
                    if units == 0 || below == 0 || !inputs.is_multiple_of(below) {
                        return Err(misfit());
                    }
                    let block = inputs / below;
                    layers.push(ChainLayer { weights: tensor.range(), biases: None, units, block });
                }
                (LayerKind::Conv | LayerKind::Linear, Role::Bias, &[units]) => match layers.last_mut() {
                    Some(layer) if layer.units == units && layer.biases.is_none() => {
                        layer.biases = Some(tensor.range());
                    }
                    _ => return Err(misfit()),
                },
                _ => return Err(misfit()),
            }
        }
        if layers.len() < 2 { Err(ChainError::NoHiddenLayer) } else { Ok(Self { layers }) }
    }
}

impl ChainLayer {
    /// Number of incoming weights of a unit.
    pub(crate) fn inputs(&self) -> usize {
        self.weights.len() / self.units
    }

    /// Number of units below, or of channels of the input.
    pub(crate) fn channels(&self) -> usize {
        self.inputs() / self.block
    }

    /// Some rows of this layer in a model's values, with the weights from some of the units below.
    pub(crate) fn picked(&self, values: &[f32], units: &[usize], below: &[usize]) -> Rows {
        let mut picked = Vec::with_capacity(units.len() * (below.len() * self.block + 1));
        for &unit in units {
            let row = &values[self.weights.start + unit * self.inputs()..][..self.inputs()];
            below.iter().for_each(|&below| picked.extend(&row[below * self.block..][..self.block]));
            picked.extend(self.biases.iter().map(|biases| values[biases.start + unit]));
        }
        Rows::new(below.len() * self.block + usize::from(self.biases.is_some()), picked)
    }

    /// Writes rows that were picked back to their places.
    pub(crate) fn put_at(&self, rows: &Rows, units: &[usize], below: &[usize], values: &mut [f32]) {
        for (&unit, row) in units.iter().zip(rows.iter()) {
            let (weights, bias) = row.split_at(below.len() * self.block);
            let start = self.weights.start + unit * self.inputs();
            for (&below, weights) in below.iter().zip(weights.chunks_exact(self.block)) {
                values[start + below * self.block..][..self.block].copy_from_slice(weights);
            }
            if let (Some(biases), [bias]) = (&self.biases, bias) {
                values[biases.start + unit] = *bias;
            }
        }
    }

    /// The rows of this layer in a model's values.
    pub fn rows(&self, values: &[f32]) -> Rows {
        let weights = &values[self.weights.clone()];
        let inputs = weights.len() / self.units;
        let Some(biases) = &self.biases else { return Rows::new(inputs, weights.to_vec()) };
        let rows = weights.chunks_exact(inputs).zip(&values[biases.clone()]);
        Rows::new(
            inputs + 1,
            rows.flat_map(|(weights, bias)| weights.iter().chain([bias]).copied()).collect(),
        )
    }

    /// Writes rows into a model's values.
    ///
    /// # Panics
    /// Panics if they are not as many and as long as this layer's.
    pub fn put(&self, rows: &Rows, values: &mut [f32]) {
        let inputs = self.weights.len() / self.units;
        let columns = inputs + usize::from(self.biases.is_some());
        assert_eq!((rows.len(), rows.columns()), (self.units, columns), "the rows are those of this layer");
        for (unit, row) in rows.iter().enumerate() {
            let (weights, bias) = row.split_at(inputs);
            values[self.weights.start + unit * inputs..][..inputs].copy_from_slice(weights);
            if let (Some(biases), [bias]) = (&self.biases, bias) {
                values[biases.start + unit] = *bias;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(middle: Vec<Layer>) -> Network {
        let conv = |name: &str, out, bias| Layer::Conv {
            name: name.into(),
            out,
            kernel: [3, 2],
            stride: 1,
            pad: 1,
            bias,
        };
        let mut layers = vec![conv("conv1", 5, true), Layer::Relu, conv("conv2", 4, false)];
        layers.extend(middle);
        layers.extend([Layer::Flatten, Layer::Linear { name: "fc1".into(), out: 7 }, Layer::Relu]);
        layers.push(Layer::Linear { name: "fc2".into(), out: 3 });
        Network { input: [2, 4, 4], classes: 3, layers }
    }

    #[test]
    fn a_block_is_a_kernel_a_feature_map_or_one_weight() {
        let chain = Chain::of_network(&network(vec![])).unwrap();
        // Each convolution pads its input by one on every side: 4x4, 4x5, 4x6.
        let sizes: Vec<_> = chain.layers.iter().map(|layer| (layer.units, layer.block)).collect();
        assert_eq!(sizes, [(5, 6), (4, 6), (7, 24), (3, 1)]);
        assert_eq!(chain.layers[1].biases, None);
    }

    #[test]
    fn rows_that_are_written_back_change_nothing() {
        let layout = Layout::of(&network(vec![])).unwrap();
        let chain = Chain::of(&layout).unwrap();
        let values: Vec<f32> = (0..layout.len()).map(|i| i as f32).collect();
        let mut copy = vec![0.0; values.len()];
        for layer in &chain.layers {
            layer.put(&layer.rows(&values), &mut copy);
        }
        assert_eq!(copy, values);
        // The second unit of the first layer: weights 12 to 23, and the second bias, behind 5 x 12 weights.
        let row: Vec<f32> = (12..24).chain([61]).map(|i| i as f32).collect();
        assert_eq!(chain.layers[0].rows(&values).row(1), row);
    }

    #[test]
    fn networks_whose_units_are_tied_are_refused() {
        let residual = Layer::Residual { body: vec![Layer::Relu], shortcut: vec![] };
        let norm = Layer::BatchNorm { name: "bn".into() };
        for (layer, word) in [(residual, "residual"), (norm.clone(), "batchnorm")] {
            let error = Chain::of_network(&network(vec![layer])).unwrap_err();
            assert_eq!(error, ChainError::Layer { at: 4, layer: word });
        }
        let layout = Layout::of(&network(vec![norm])).unwrap();
        assert_eq!(Chain::of(&layout), Err(ChainError::Tensor("bn.weight".into())));
    }

    #[test]
    fn a_network_without_hidden_layers_is_refused() {
        let layers = vec![Layer::Flatten, Layer::Linear { name: "fc".into(), out: 3 }];
        let network = Network { input: [1, 2, 2], classes: 3, layers };
        assert_eq!(Chain::of_network(&network), Err(ChainError::NoHiddenLayer));
        assert_eq!(Chain::of(&Layout::vector(4)), Err(ChainError::Tensor("vector".into())));
    }
}
