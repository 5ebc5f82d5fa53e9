//! Group normalisation (eps 1e-5): every sample by itself, over the pixels of a group of channels.
//!
//! ```text
//! m, v = mean and biased variance of the group;   k = values in the group;   r = 1 / sqrt(v + eps)
//! h = (x - m) r;   y = scale[c] h + shift[c],  then perhaps + a shortcut, then perhaps a ReLU
//!
//! dscale[c] = Σ dy h;   dshift[c] = Σ dy;   e = scale[c] dy;   dx = r (e - Σ e / k - h Σ e h / k)
//! ```
//!
//! Samples are lanes, so all statistics are registers, and lanes without a sample stay zero by themselves.

use super::relu::mask;
use super::sum::pass_on;
use super::{Buffers, Layer, Mode};
use crate::kernels::aligned::Aligned;
use crate::kernels::isa::Work;
use crate::kernels::sums::Sums;
use crate::kernels::vector::Vector;
use crate::map::{Port, Write};
use std::ops::Range;

const EPSILON: f64 = 1e-5;

/// A group norm bound to its buffers; see the module.
pub(crate) struct GroupNorm {
    pub(crate) input: Port,
    pub(crate) output: Port,
    /// What is added after it.
    pub(crate) added: Option<Port>,
    pub(crate) relu: bool,
    pub(crate) scale: Range<usize>,
    pub(crate) shift: Range<usize>,
    /// Channels per group.
    pub(crate) channels: usize,
    /// m and r, registers after registers, per lane group and channel group.
    pub(crate) moments: Vec<f32>,
}

impl Layer for GroupNorm {
    fn forward(&mut self, buffers: &mut Buffers, params: &[f32], _: &mut Mode<'_>) {
        let (isa, groups) = (buffers.isa, buffers.groups());
        let mut y = std::mem::take(&mut buffers.values[self.output.value]);
        let mut moments = std::mem::take(&mut self.moments);
        isa.run(Forward {
            norm: self,
            x: &buffers.values[self.input.value],
            added: self.added.map(|port| (port, &*buffers.values[port.value])),
            y: &mut y,
            moments: &mut moments,
            params,
            groups,
        });
        self.moments = moments;
        buffers.values[self.output.value] = y;
    }

    fn backward(&mut self, buffers: &mut Buffers, params: &[f32], gradient: &mut [f32]) {
        let (isa, groups) = (buffers.isa, buffers.groups());
        gradient[self.scale.clone()].fill(0.0);
        gradient[self.shift.clone()].fill(0.0);
        if self.relu {
            mask(buffers, &self.output);
        }
        if let Some(port) = &self.added {
            pass_on(buffers, &self.output, port);
        }
        let dy = std::mem::take(&mut buffers.gradients[self.output.gradient]);
        let mut dx = match self.input.write {
            Write::Skip => Aligned::default(),
            _ => std::mem::take(&mut buffers.gradients[self.input.gradient]),
        };
        let x = &buffers.values[self.input.value];
        isa.run(Backward { norm: self, x, dy: &dy, dx: &mut dx, params, gradient, groups });
        buffers.gradients[self.output.gradient] = dy;
        if self.input.write != Write::Skip {
            buffers.gradients[self.input.gradient] = dx;
        }
    }
}

impl GroupNorm {
    /// Values per sample and group.
    fn count(&self) -> f64 {
        (self.channels * self.input.map.shape[1] * self.input.map.shape[2]) as f64
    }
}

struct Forward<'a> {
    norm: &'a GroupNorm,
    x: &'a [f32],
    added: Option<(Port, &'a [f32])>,
    y: &'a mut [f32],
    moments: &'a mut [f32],
    params: &'a [f32],
    groups: usize,
}

impl Work for Forward<'_> {
    #[inline(always)]
    fn run<V: Vector>(mut self) {
        let parts = self.norm.input.map.shape[0] / self.norm.channels;
        for group in 0..self.groups {
            for part in 0..parts {
                let (mean, root) = self.statistics::<V>(group, part);
                let place = (group * parts + part) * 2 * V::LANES;
                mean.put(&mut self.moments[place..]);
                root.put(&mut self.moments[place + V::LANES..]);
                self.normalise(group, part, mean, root);
            }
        }
    }
}

impl Forward<'_> {
    /// m and r of a part of the channels.
    #[inline(always)]
    fn statistics<V: Vector>(&self, group: usize, part: usize) -> (V, V) {
        let (map, channels, count) = (self.norm.input.map, self.norm.channels, self.norm.count());
        let lines =
            || (0..channels * map.shape[1]).map(|l| (part * channels + l / map.shape[1], l % map.shape[1]));
        let one = V::splat(1.0);
        let mut sum = Sums::default();
        for (channel, line) in lines() {
            let mut s = V::splat(0.0);
            for x in self.x[map.line(group, channel, line)].chunks_exact(V::LANES) {
                s = s.plus_product(V::of(x), one);
            }
            sum.add(s);
        }
        let mean: V = sum.register(|sum| sum / count);
        let mut square = Sums::default();
        for (channel, line) in lines() {
            let mut s = V::splat(0.0);
            for x in self.x[map.line(group, channel, line)].chunks_exact(V::LANES) {
                let x = V::of(x).less(mean);
                s = s.plus_product(x, x);
            }
            square.add(s);
        }
        (mean, square.register(|square| 1.0 / (square / count + EPSILON).sqrt()))
    }

    #[inline(always)]
    fn normalise<V: Vector>(&mut self, group: usize, part: usize, mean: V, root: V) {
        let norm = self.norm;
        let (map, out, one) = (norm.input.map, norm.output.map, V::splat(1.0));
        for channel in part * norm.channels..(part + 1) * norm.channels {
            let scale = V::splat(self.params[norm.scale.start + channel]);
            let factor = V::splat(0.0).plus_product(scale, root);
            let shift = V::splat(self.params[norm.shift.start + channel]);
            for line in 0..map.shape[1] {
                let x = self.x[map.line(group, channel, line)].chunks_exact(V::LANES);
                let y = self.y[out.line(group, channel, line)].chunks_exact_mut(V::LANES);
                for (pixel, (x, to)) in x.zip(y).enumerate() {
                    let mut y = shift.plus_product(V::of(x).less(mean), factor);
                    if let Some((port, added)) = self.added {
                        let at = port.map.line(group, channel, line).start + pixel * V::LANES;
                        y = y.plus_product(V::of(&added[at..]), one);
                    }
                    if norm.relu { V::splat(0.0).max(y) } else { y }.put(to);
                }
            }
        }
    }
}

struct Backward<'a> {
    norm: &'a GroupNorm,
    x: &'a [f32],
    dy: &'a [f32],
    dx: &'a mut [f32],
    params: &'a [f32],
    gradient: &'a mut [f32],
    groups: usize,
}

impl Work for Backward<'_> {
    #[inline(always)]
    fn run<V: Vector>(mut self) {
        let parts = self.norm.input.map.shape[0] / self.norm.channels;
        for group in 0..self.groups {
            for part in 0..parts {
                let place = (group * parts + part) * 2 * V::LANES;
                let mean = V::of(&self.norm.moments[place..]);
                let root = V::of(&self.norm.moments[place + V::LANES..]);
                let (level, slope) = self.sums(group, part, mean, root);
                if self.norm.input.write != Write::Skip {
                    self.input_gradient(group, part, mean, root, level, slope);
                }
            }
        }
    }
}

impl Backward<'_> {
    /// Σ e / k and Σ e (x - m) / k of a part of the channels; adds to the gradients of scale and shift on the way.
    #[inline(always)]
    fn sums<V: Vector>(&mut self, group: usize, part: usize, mean: V, root: V) -> (V, V) {
        let norm = self.norm;
        let (map, out, one) = (norm.input.map, norm.output.map, V::splat(1.0));
        let (mut level, mut slope) = (Sums::default(), Sums::default());
        for channel in part * norm.channels..(part + 1) * norm.channels {
            let (mut total, mut along) = (Sums::default(), Sums::default());
            for line in 0..map.shape[1] {
                let x = self.x[map.line(group, channel, line)].chunks_exact(V::LANES);
                let dy = self.dy[out.line(group, channel, line)].chunks_exact(V::LANES);
                let (mut t, mut a) = (V::splat(0.0), V::splat(0.0));
                for (x, dy) in x.zip(dy) {
                    t = t.plus_product(V::of(dy), one);
                    a = a.plus_product(V::of(dy), V::of(x).less(mean));
                }
                total.add(t);
                along.add(a);
            }
            let scale = f64::from(self.params[norm.scale.start + channel]);
            level.add_scaled(&total, scale);
            slope.add_scaled(&along, scale);
            let along = V::splat(0.0).plus_product(along.register(|along| along), root);
            self.gradient[norm.shift.start + channel] += total.total(V::LANES) as f32;
            self.gradient[norm.scale.start + channel] += along.sum();
        }
        let count = norm.count();
        (level.register(|level| level / count), slope.register(|slope| slope / count))
    }

    #[inline(always)]
    fn input_gradient<V: Vector>(&mut self, group: usize, part: usize, mean: V, root: V, level: V, slope: V) {
        let norm = self.norm;
        let (map, out, one, zero) = (norm.input.map, norm.output.map, V::splat(1.0), V::splat(0.0));
        let times = |a: V, b: V| zero.plus_product(a, b);
        // dx = scale r dy - r level - r³ slope (x - m)
        let level = zero.less(times(level, root));
        let slope = zero.less(times(times(slope, root), times(root, root)));
        for channel in part * norm.channels..(part + 1) * norm.channels {
            let factor = times(V::splat(self.params[norm.scale.start + channel]), root);
            for line in 0..map.shape[1] {
                let place = map.line(group, channel, line);
                let x = self.x[place.clone()].chunks_exact(V::LANES);
                let dy = self.dy[out.line(group, channel, line)].chunks_exact(V::LANES);
                for ((x, dy), dx) in x.zip(dy).zip(self.dx[place].chunks_exact_mut(V::LANES)) {
                    let full = level.plus_product(V::of(dy), factor).plus_product(V::of(x).less(mean), slope);
                    match norm.input.write {
                        Write::Add => V::of(dx).plus_product(full, one).put(dx),
                        _ => full.put(dx),
                    }
                }
            }
        }
    }
}
