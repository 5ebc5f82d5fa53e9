//! Which algorithm each pass of a convolution uses: a fixed rule, so that bits never depend on a machine's load.

use super::conv::Window;
use crate::kernels::winograd::{Scheme, convolution, gradient};
use crate::map::{Map, Write};

/// Input and output channels from which on the transforms of tiles cost less than the products that they save. Measured:
/// 8 to 8 channels save a third of the time with AVX2 and a little with AVX-512, 6 to 6 nothing.
const FEWEST: usize = 8;

/// The same for the gradient of the weights, whose lanes are channels: with fewer, most of a register is empty.
const FEWEST_OF_WEIGHTS: usize = 16;

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
        let fewest = input.shape[0].min(output.shape[0]);
        let scheme = |to: &Map| match window.kernel {
            [3, 3] if to.shape[1].min(to.shape[2]) < 3 => Some(Scheme::Two3),
            [3, 3] => Some(Scheme::Four3),
            [5, 5] => Some(Scheme::Two5),
            _ => None,
        };
        Self {
            forward: scheme(output).filter(|_| fewest >= FEWEST),
            input_gradient: scheme(input).filter(|_| write != Write::Skip && fewest >= FEWEST),
            weight_gradient: scheme(output).filter(|_| fewest >= FEWEST_OF_WEIGHTS),
        }
    }

    /// Whether the output or the gradient of the weights is computed directly.
    pub(crate) fn has_direct_output(&self) -> bool {
        self.forward.is_none() || self.weight_gradient.is_none()
    }

    /// Numbers of working memory that the passes need.
    pub(crate) fn scratch(&self, input: &Map, output: &Map, groups: usize) -> usize {
        let forward = self.forward.map_or(0, |scheme| convolution::scratch(scheme, input, output, groups));
        let back =
            self.input_gradient.map_or(0, |scheme| convolution::scratch(scheme, output, input, groups));
        let weights =
            self.weight_gradient.map_or(0, |scheme| gradient::scratch(scheme, input, output, groups));
        forward.max(back).max(weights)
    }
}
