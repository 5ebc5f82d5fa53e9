//! Mean and variance of a batch.

use crate::kernels::isa::Work;
use crate::kernels::sums::Sums;
use crate::kernels::vector::Vector;
use crate::map::Map;

/// Sums of a line that are taken side by side, because each addition has to wait for the one before it in its chain.
pub(super) const CHAINS: usize = 4;

/// The sum of all chains.
#[inline(always)]
pub(super) fn together<V: Vector>(chains: [V; CHAINS]) -> V {
    chains[0].plus(chains[1]).plus(chains[2].plus(chains[3]))
}

/// Mean and biased variance per channel, in one pass: sums of x - o and (x - o)², o being a first value,
/// which is near enough to the mean for the difference of squares to be exact enough.
pub(super) struct Moments<'a> {
    pub(super) x: &'a [f32],
    pub(super) map: Map,
    pub(super) samples: usize,
    pub(super) moments: &'a mut [(f64, f64)],
}

impl Work for Moments<'_> {
    #[inline(always)]
    fn run<V: Vector>(self) {
        let map = self.map;
        for (channel, moments) in self.moments.iter_mut().enumerate() {
            let origin = self.x[map.line(0, channel, 0).start];
            let (mut sum, mut square) = (0.0, 0.0);
            for group in 0..self.samples.div_ceil(V::LANES) {
                let lanes = V::LANES.min(self.samples - group * V::LANES);
                let (mut sums, mut squares) = (Sums::default(), Sums::default());
                for line in 0..map.shape[1] {
                    let (mut s, mut q) = ([V::splat(0.0); CHAINS], [V::splat(0.0); CHAINS]);
                    let line = &self.x[map.line(group, channel, line)];
                    let mut parts = line.chunks_exact(CHAINS * V::LANES);
                    for part in parts.by_ref() {
                        for (n, x) in part.chunks_exact(V::LANES).enumerate() {
                            let x = V::of(x).less(V::splat(origin));
                            s[n] = s[n].plus(x);
                            q[n] = q[n].plus_product(x, x);
                        }
                    }
                    for x in parts.remainder().chunks_exact(V::LANES) {
                        let x = V::of(x).less(V::splat(origin));
                        s[0] = s[0].plus(x);
                        q[0] = q[0].plus_product(x, x);
                    }
                    sums.add(together(s));
                    squares.add(together(q));
                }
                sum += sums.total(lanes);
                square += squares.total(lanes);
            }
            let count = (self.samples * map.shape[1] * map.shape[2]) as f64;
            let mean = sum / count;
            *moments = (f64::from(origin) + mean, (square / count - mean * mean).max(0.0));
        }
    }
}
