//! Mean of each window:
//!
//! ```text
//! y[i, j] = Σ_{u,v} x[i s + u, j s + v] / size²
//! dx[i s + u, j s + v] += dy[i, j] / size²
//! ```

use super::windows::Windows;
use super::{Buffers, Layer, Mode, disjoint};
use crate::kernels::isa::Work;
use crate::kernels::vector::Vector;
use crate::map::Write;

/// An average pooling bound to its buffers; see the module.
pub(crate) struct AveragePool(pub(crate) Windows);

impl Layer for AveragePool {
    fn forward(&mut self, buffers: &mut Buffers, _: &[f32], _: &mut Mode<'_>) {
        let (isa, groups) = (buffers.isa, buffers.groups());
        let [x, y] = disjoint(&mut buffers.values, [self.0.input.value, self.0.output.value]);
        isa.run(Forward { pool: &self.0, x, y, groups });
    }

    fn backward(&mut self, buffers: &mut Buffers, _: &[f32], _: &mut [f32]) {
        let (isa, groups) = (buffers.isa, buffers.groups());
        let [dx, dy] = disjoint(&mut buffers.gradients, [self.0.input.gradient, self.0.output.gradient]);
        match self.0.input.write {
            Write::Skip => return,
            Write::Set => dx[..groups * self.0.input.map.group()].fill(0.0),
            Write::Add => {}
        }
        isa.run(Backward { pool: &self.0, dx, dy, groups });
    }
}

/// The weight of each pixel of a window.
fn share(pool: &Windows) -> f32 {
    1.0 / (pool.size * pool.size) as f32
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
        let (one, share) = (V::splat(1.0), V::splat(share(pool)));
        for (group, channel, i) in out.lines(self.groups) {
            let to = &mut self.y[out.line(group, channel, i)];
            for (j, y) in to.chunks_exact_mut(V::LANES).enumerate() {
                let first = pool.first(group, channel, i, j);
                let mut sum = V::splat(0.0);
                for u in 0..pool.size {
                    let from = &self.x[first + u * map.row()..][..pool.size * V::LANES];
                    for x in from.chunks_exact(V::LANES) {
                        sum = sum.plus_product(V::of(x), one);
                    }
                }
                V::splat(0.0).plus_product(sum, share).put(y);
            }
        }
    }
}

struct Backward<'a> {
    pool: &'a Windows,
    dx: &'a mut [f32],
    dy: &'a [f32],
    groups: usize,
}

impl Work for Backward<'_> {
    #[inline(always)]
    fn run<V: Vector>(self) {
        let (pool, map, out) = (self.pool, self.pool.input.map, self.pool.output.map);
        let share = V::splat(share(pool));
        for (group, channel, i) in out.lines(self.groups) {
            let from = &self.dy[out.line(group, channel, i)];
            for (j, dy) in from.chunks_exact(V::LANES).enumerate() {
                let (first, dy) = (pool.first(group, channel, i, j), V::of(dy));
                for u in 0..pool.size {
                    let to = &mut self.dx[first + u * map.row()..][..pool.size * V::LANES];
                    for dx in to.chunks_exact_mut(V::LANES) {
                        V::of(dx).plus_product(dy, share).put(dx);
                    }
                }
            }
        }
    }
}
