//! Which algorithm each pass of a convolution uses: a fixed rule, so that bits never depend on a machine's load.

use super::conv::Window;
use crate::kernels::winograd::{Scheme, convolution, gradient, input_gradient};
use crate::map::{Map, Write};

/// Input and output channels from which on the transforms of tiles cost less than the products that they save, of 3x3 and
/// of 5x5 kernels. Measured: 8 to 8 channels of 3x3 save a fifth of the time with AVX2 and a little with AVX-512, 6 to 6
/// nothing; 6 to 16 of 5x5 take a step of lenet from 0.53 to 0.42 ms with AVX2, and gain nothing with AVX-512.
fn fewest(kernel: usize, lanes: usize) -> usize {
    match (kernel, lanes) {
        (5, 8) => 6,
        _ => 8,
    }
}

/// The same for the gradient of the weights, whose lanes are channels: with fewer, most of a register is empty.
const FEWEST_OF_WEIGHTS: usize = 16;

/// Pairs of channels from which on F(4x4, 3x3) computes the gradient of the weights faster than F(2x2, 3x3), whose rounding
/// error is a third. Measured: no difference for 16 to 16 and 32 to 32 channels, a fourth of the time for 32 to 64.
const LARGE_TILES_OF_WEIGHTS: usize = 2048;

/// The Winograd algorithm of each pass; none for direct convolution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Algorithms {
    pub(crate) forward: Option<Scheme>,
    pub(crate) input_gradient: Option<Scheme>,
    pub(crate) weight_gradient: Option<Scheme>,
}

impl Algorithms {
    /// Those of a convolution between these maps.
    pub(crate) fn of(input: &Map, output: &Map, window: Window, write: Write) -> Self {
        if window.stride != 1 {
            return Self::default();
        }
        let [inputs, outputs] = [input.shape[0], output.shape[0]];
        let enough = inputs.min(outputs) >= fewest(window.kernel[0], input.lanes);
        // Larger tiles would be mostly outside of the map.
        let small = output.shape[1].min(output.shape[2]) < 3;
        let scheme = |small: bool| match window.kernel {
            [3, 3] if small => Some(Scheme::Two3),
            [3, 3] => Some(Scheme::Four3),
            [5, 5] => Some(Scheme::Two5),
            _ => None,
        };
        let of_weights = scheme(small || inputs * outputs < LARGE_TILES_OF_WEIGHTS);
        Self {
            forward: scheme(small).filter(|_| enough),
            input_gradient: scheme(small).filter(|_| write != Write::Skip && enough),
            weight_gradient: of_weights.filter(|_| inputs.min(outputs) >= FEWEST_OF_WEIGHTS),
        }
    }

    /// Whether the output or the gradient of the weights is computed directly.
    pub(crate) fn has_direct_output(&self) -> bool {
        self.forward.is_none() || self.weight_gradient.is_none()
    }

    /// Numbers of working memory that the passes need.
    pub(crate) fn scratch(&self, input: &Map, output: &Map, samples: usize) -> usize {
        let forward = self.forward.map_or(0, |scheme| convolution::scratch(scheme, input, output, samples));
        let back =
            self.input_gradient.map_or(0, |scheme| input_gradient::scratch(scheme, output, input, samples));
        let weights =
            self.weight_gradient.map_or(0, |scheme| gradient::scratch(scheme, input, output, samples));
        forward.max(back).max(weights)
    }
}
