//! The gradient of a convolution's bias.

use crate::kernels::isa::Work;
use crate::kernels::vector::Vector;
use crate::map::Map;

/// db[o] = Σ over pixels and samples of dy[o].
pub(super) struct BiasGradient<'a> {
    pub(super) dy: &'a [f32],
    pub(super) map: Map,
    pub(super) groups: usize,
    pub(super) gradient: &'a mut [f32],
}

impl Work for BiasGradient<'_> {
    #[inline(always)]
    fn run<V: Vector>(self) {
        for (channel, gradient) in self.gradient.iter_mut().enumerate() {
            let mut sums = [0.0; 16];
            for group in 0..self.groups {
                for line in 0..self.map.shape[1] {
                    for register in self.dy[self.map.line(group, channel, line)].chunks_exact(V::LANES) {
                        for (sum, dy) in sums[..V::LANES].iter_mut().zip(register) {
                            *sum += dy;
                        }
                    }
                }
            }
            *gradient = sums.iter().sum::<f32>();
        }
    }
}
