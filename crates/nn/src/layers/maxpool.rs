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
        // Loops of a known length have no counters, which take longer than what they count here.
        match self.pool.size {
            2 => self.windows::<V>(2),
            3 => self.windows::<V>(3),
            size => self.windows::<V>(size),
        }
    }
}

impl Forward<'_> {
    #[inline(always)]
    fn windows<V: Vector>(self, size: usize) {
        let (pool, map, out) = (self.pool, self.pool.input.map, self.pool.output.map);
        let [channels, height, width] = out.shape;
        for (group, channel) in (0..self.groups).flat_map(|g| (0..channels).map(move |c| (g, c))) {
            for i in 0..height {
                let to = &mut self.y[out.line(group, channel, i)];
                for (j, to) in to.chunks_exact_mut(V::LANES).enumerate().take(width) {
                    let first = pool.first(group, channel, i, j);
                    let mut largest = V::of(&self.x[first..]);
                    for u in 0..size {
                        let from = &self.x[first + u * map.row()..][..size * V::LANES];
                        for v in 0..size {
                            largest = largest.max(V::of(&from[v * V::LANES..]));
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
        match self.pool.size {
            2 => self.windows::<V>(2),
            3 => self.windows::<V>(3),
            size => self.windows::<V>(size),
        }
    }
}

impl Backward<'_> {
    #[inline(always)]
    fn windows<V: Vector>(self, size: usize) {
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
                    for u in 0..size {
                        let from = &self.x[first + u * map.row()..][..size * V::LANES];
                        let to = &mut self.dx[first + u * map.row()..][..size * V::LANES];
                        for v in 0..size {
                            let at = v * V::LANES;
                            let part = left.where_equal(V::of(&from[at..]), y);
                            left = left.less(part);
                            let sum = if tiles { part } else { V::of(&to[at..]).plus_product(part, one) };
                            sum.put(&mut to[at..]);
                        }
                    }
                }
            }
        }
    }
}
