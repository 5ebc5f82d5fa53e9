//! Model parameters: one flat vector and the layout that names its parts.

use crate::model::{Layout, Role};
use crate::stream::{Key, Purpose};
use std::sync::Arc;

/// Flat f32 parameters, trainable ones first, buffers last.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// The position of each tensor.
    pub layout: Arc<Layout>,
    /// The values, in the order of the layout.
    pub values: Vec<f32>,
}

impl Params {
    /// All zeros.
    pub fn zeros(layout: Arc<Layout>) -> Self {
        Self { values: vec![0.0; layout.len()], layout }
    }

    /// PyTorch's initial distributions: weights and biases uniform within 1/sqrt(fan in), norms 1 and 0,
    /// running mean 0 and variance 1. Every tensor draws from its own stream. A model that is not a network gets its initial
    /// values from its backend; here they are 0.
    pub fn initial(layout: Arc<Layout>, seed: u64) -> Self {
        Self::initial_of(layout, seed, 0)
    }

    /// The initial model of a branch; each has numbers of its own.
    pub fn initial_of(layout: Arc<Layout>, seed: u64, branch: u32) -> Self {
        let mut params = Self::zeros(layout);
        let mut bound = 0.0;
        for (number, tensor) in params.layout.tensors().iter().enumerate() {
            let values = &mut params.values[tensor.range()];
            match tensor.role {
                // A bias follows its weight in the layout and has the weight's bound.
                Role::Weight | Role::Bias => {
                    if tensor.role == Role::Weight {
                        let fan_in: usize = tensor.shape[1..].iter().product();
                        bound = 1.0 / (fan_in as f64).sqrt();
                    }
                    let mut stream = Key::of(seed).at(Purpose::Init, branch, number as u32).stream(0);
                    values.fill_with(|| ((2.0 * stream.unit() - 1.0) * bound) as f32);
                }
                Role::Scale | Role::RunningVariance => values.fill(1.0),
                Role::Shift | Role::RunningMean | Role::Other | Role::Buffer => values.fill(0.0),
            }
        }
        params
    }

    /// The trainable values, which gradients, proximal terms, control variates and server optimisers act on.
    pub fn trainable(&self) -> &[f32] {
        &self.values[..self.layout.trainable()]
    }

    /// The trainable values, mutably.
    pub fn trainable_mut(&mut self) -> &mut [f32] {
        &mut self.values[..self.layout.trainable()]
    }

    /// The values of the tensor of this name.
    pub fn tensor(&self, name: &str) -> Option<&[f32]> {
        Some(&self.values[self.layout.range(name)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Layer, Network};

    fn layout() -> Arc<Layout> {
        let layers = vec![
            Layer::Conv { name: "conv".into(), out: 8, kernel: [5, 5], stride: 1, pad: 0, bias: true },
            Layer::BatchNorm { name: "bn".into() },
            Layer::GlobalPool,
            Layer::Linear { name: "fc".into(), out: 3 },
        ];
        Arc::new(Layout::of(&Network { input: [1, 8, 8], classes: 3, layers }).unwrap())
    }

    #[test]
    fn weights_and_biases_fill_the_range_of_one_over_root_fan_in() {
        let params = Params::initial(layout(), 1);
        for (name, bound) in [("conv.weight", 0.2), ("conv.bias", 0.2), ("fc.weight", 8f32.sqrt().recip())] {
            let largest = params.tensor(name).unwrap().iter().fold(0f32, |m, x| m.max(x.abs()));
            // The largest of eight uniform draws is below 0.5 of the bound with probability 0.004.
            assert!(largest <= bound && largest > 0.5 * bound, "{name}: {largest} of {bound}");
        }
        assert_eq!(params.tensor("bn.weight").unwrap(), [1.0; 8]);
        assert_eq!(params.tensor("bn.running_mean").unwrap(), [0.0; 8]);
        assert_eq!(params.tensor("bn.running_var").unwrap(), [1.0; 8]);
    }

    #[test]
    fn the_seed_determines_the_model() {
        assert_eq!(Params::initial(layout(), 4), Params::initial(layout(), 4));
        assert_ne!(Params::initial(layout(), 4), Params::initial(layout(), 5));
    }
}
