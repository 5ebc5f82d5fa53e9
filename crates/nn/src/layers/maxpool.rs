//! Largest value of each window:
//!
//! ```text
//! y[i, j] = max_{u,v} x[i s + u, j s + v]
//! dx gets dy at the window's first largest value, as in PyTorch
//! ```
//!
//! After a ReLU, windows without a positive value pass nothing back, which is the ReLU's backward pass too.

use super::windows::Windows;
use super::{Buffers, Layer, Mode, disjoint};
use crate::kernels::isa::Work;
use crate::kernels::vector::Vector;
use crate::map::Write;

/// A max pooling bound to its buffers; see the module.
pub(crate) struct MaxPool {
    pub(crate) windows: Windows,
    /// Whether a ReLU came before and leaves its backward pass to this one.
    pub(crate) masks: bool,
}

impl Layer for MaxPool {
    fn forward(&mut self, buffers: &mut Buffers, _: &[f32], _: &mut Mode<'_>) {
        let (pool, isa, groups) = (&self.windows, buffers.isa, buffers.groups());
        let [x, y] = disjoint(&mut buffers.values, [pool.input.value, pool.output.value]);
        isa.run(Forward { pool, x, y, groups });
    }

    fn backward(&mut self, buffers: &mut Buffers, _: &[f32], _: &mut [f32]) {
        let (pool, isa, groups) = (&self.windows, buffers.isa, buffers.groups());
        if pool.input.write == Write::Skip {
            return;
        }
        let (x, y) = (&buffers.values[pool.input.value], &buffers.values[pool.output.value]);
        let [dx, dy] = disjoint(&mut buffers.gradients, [pool.input.gradient, pool.output.gradient]);
        isa.run(Backward { pool, masks: self.masks, x, y, dx, dy, groups });
    }
}

struct Forward<'a> {
    pool: &'a Windows,
    x: &'a [f32],
    y: &'a mut [f32],
    groups: usize,
}

impl Work for Forward<'_> {
    #[inline(always)]
    fn run<V: Vector>(self) {
        let (pool, map, out) = (self.pool, self.pool.input.map, self.pool.output.map);
        let [channels, height, width] = out.shape;
        for (group, channel) in (0..self.groups).flat_map(|g| (0..channels).map(move |c| (g, c))) {
            for i in 0..height {
                let to = &mut self.y[out.line(group, channel, i)];
                for (j, to) in to.chunks_exact_mut(V::LANES).enumerate().take(width) {
                    let first = pool.first(group, channel, i, j);
                    let mut largest = V::of(&self.x[first..]);
                    for u in 0..pool.size {
                        let from = &self.x[first + u * map.row()..][..pool.size * V::LANES];
                        for x in from.chunks_exact(V::LANES) {
                            largest = largest.max(V::of(x));
                        }
                    }
                    largest.put(to);
                }
            }
        }
    }
}

struct Backward<'a> {
    pool: &'a Windows,
    masks: bool,
    x: &'a [f32],
    y: &'a [f32],
    dx: &'a mut [f32],
    dy: &'a [f32],
    groups: usize,
}

impl Work for Backward<'_> {
    #[inline(always)]
    fn run<V: Vector>(self) {
        let (pool, map, out) = (self.pool, self.pool.input.map, self.pool.output.map);
        let [channels, height, width] = out.shape;
        // Windows that tile the input write every pixel of theirs; others need zeros to add to.
        let tiles = pool.size == pool.stride && pool.input.write == Write::Set;
        let covered = tiles && height * pool.stride == map.shape[1] && width * pool.stride == map.shape[2];
        if pool.input.write == Write::Set && !covered {
            self.dx[..self.groups * map.group()].fill(0.0);
        }
        let (zero, one) = (V::splat(0.0), V::splat(1.0));
        for (group, channel) in (0..self.groups).flat_map(|g| (0..channels).map(move |c| (g, c))) {
            for i in 0..height {
                let line = out.line(group, channel, i);
                let (ys, dys) = (&self.y[line.clone()], &self.dy[line]);
                for (j, (y, dy)) in ys.chunks_exact(V::LANES).zip(dys.chunks_exact(V::LANES)).enumerate() {
                    let first = pool.first(group, channel, i, j);
                    let (y, mut left) = (V::of(y), V::of(dy));
                    if self.masks {
                        // After a ReLU the largest value is positive or zero.
                        left = left.less(left.where_equal(y, zero));
                    }
                    for u in 0..pool.size {
                        let from = &self.x[first + u * map.row()..][..pool.size * V::LANES];
                        let to = &mut self.dx[first + u * map.row()..][..pool.size * V::LANES];
                        for (x, dx) in from.chunks_exact(V::LANES).zip(to.chunks_exact_mut(V::LANES)) {
                            let part = left.where_equal(V::of(x), y);
                            left = left.less(part);
                            let sum = if tiles { part } else { V::of(dx).plus_product(part, one) };
                            sum.put(dx);
                        }
                    }
                }
            }
        }
    }
}
