//! Largest value of each window:
//!
//! ```text
//! y[i, j] = max_{u,v} x[i s + u, j s + v]
//! dx gets dy at the window's first largest value, as in PyTorch
//! ```
//!
//! After a ReLU, windows without a positive value pass nothing back, which is the ReLU's backward pass too.

use super::{Buffers, Layer, Mode, disjoint};
use crate::map::{Port, Write};

/// A max pooling bound to its buffers; see the module.
pub(crate) struct MaxPool {
    pub(crate) input: Port,
    pub(crate) output: Port,
    pub(crate) size: usize,
    pub(crate) stride: usize,
    /// Whether a ReLU came before and leaves its backward pass to this one.
    pub(crate) masks: bool,
}

impl Layer for MaxPool {
    fn forward(&mut self, buffers: &mut Buffers, _: &[f32], _: &mut Mode<'_>) {
        let (isa, groups) = (buffers.isa, buffers.groups());
        let [x, y] = disjoint(&mut buffers.values, [self.input.value, self.output.value]);
        isa.wide(|| match self.output.map.lanes {
            8 => forward::<8>(self, x, y, groups),
            _ => forward::<16>(self, x, y, groups),
        });
    }

    fn backward(&mut self, buffers: &mut Buffers, _: &[f32], _: &mut [f32]) {
        if self.input.write == Write::Skip {
            return;
        }
        let (isa, groups) = (buffers.isa, buffers.groups());
        let (x, y) = (&buffers.values[self.input.value], &buffers.values[self.output.value]);
        let [dx, dy] = disjoint(&mut buffers.gradients, [self.input.gradient, self.output.gradient]);
        isa.wide(|| match self.output.map.lanes {
            8 => backward::<8>(self, x, y, dx, dy, groups),
            _ => backward::<16>(self, x, y, dx, dy, groups),
        });
    }
}

impl MaxPool {
    /// Group, channel, row and column of every output.
    #[inline(always)]
    fn each_output(&self, groups: usize, mut visit: impl FnMut(usize, usize, usize, usize)) {
        let [channels, height, width] = self.output.map.shape;
        for group in 0..groups {
            for channel in 0..channels {
                for i in 0..height {
                    for j in 0..width {
                        visit(group, channel, i, j);
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn forward<const L: usize>(pool: &MaxPool, x: &[f32], y: &mut [f32], groups: usize) {
    let map = pool.input.map;
    pool.each_output(groups, |group, channel, i, j| {
        let first = map.at(group, channel, (i * pool.stride) as isize, (j * pool.stride) as isize);
        let mut largest = [f32::NEG_INFINITY; L];
        for u in 0..pool.size {
            for v in 0..pool.size {
                let from = &x[first + u * map.row() + v * L..][..L];
                for lane in 0..L {
                    // Written so that NaN wins and stays.
                    largest[lane] = if from[lane] <= largest[lane] { largest[lane] } else { from[lane] };
                }
            }
        }
        y[pool.output.map.at(group, channel, i as isize, j as isize)..][..L].copy_from_slice(&largest);
    });
}

#[inline(always)]
fn backward<const L: usize>(pool: &MaxPool, x: &[f32], y: &[f32], dx: &mut [f32], dy: &[f32], groups: usize) {
    let map = pool.input.map;
    // Windows that tile the input write every pixel of theirs; others need zeros to add to.
    let tiles = pool.size == pool.stride && pool.input.write == Write::Set;
    if pool.input.write == Write::Set {
        let covered = |out: usize, size: usize| tiles && out * pool.stride == size;
        if !covered(pool.output.map.shape[1], map.shape[1])
            || !covered(pool.output.map.shape[2], map.shape[2])
        {
            dx[..groups * map.group()].fill(0.0);
        }
    }
    pool.each_output(groups, |group, channel, i, j| {
        let first = map.at(group, channel, (i * pool.stride) as isize, (j * pool.stride) as isize);
        let out = pool.output.map.at(group, channel, i as isize, j as isize);
        let (mut y_now, mut left) = ([0.0; L], [0.0; L]);
        y_now.copy_from_slice(&y[out..][..L]);
        left.copy_from_slice(&dy[out..][..L]);
        if pool.masks {
            for lane in 0..L {
                left[lane] = if y_now[lane] > 0.0 { left[lane] } else { 0.0 };
            }
        }
        for u in 0..pool.size {
            for v in 0..pool.size {
                let at = first + u * map.row() + v * L;
                let (from, to) = (&x[at..][..L], &mut dx[at..][..L]);
                for lane in 0..L {
                    let here = from[lane] == y_now[lane];
                    let part = if here { left[lane] } else { 0.0 };
                    left[lane] = if here { 0.0 } else { left[lane] };
                    to[lane] = if tiles { part } else { to[lane] + part };
                }
            }
        }
    });
}
