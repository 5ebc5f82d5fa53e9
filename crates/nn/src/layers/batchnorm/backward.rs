//! Gradients of a batch norm, channel by channel.

use super::moments::{CHAINS, together};
use super::{BatchNorm, EPSILON};
use crate::kernels::isa::Work;
use crate::kernels::vector::Vector;
use crate::layers::normaliser::Normaliser;
use crate::map::Write;

pub(super) struct Backward<'a> {
    pub(super) norm: &'a BatchNorm,
    pub(super) x: &'a [f32],
    pub(super) y: &'a [f32],
    pub(super) dy: &'a mut [f32],
    pub(super) dx: &'a mut [f32],
    pub(super) dadded: &'a mut [f32],
    pub(super) params: &'a [f32],
    pub(super) gradient: &'a mut [f32],
    pub(super) samples: usize,
}

impl Work for Backward<'_> {
    #[inline(always)]
    fn run<V: Vector>(mut self) {
        for channel in 0..self.norm.input.map.shape[0] {
            let (dshift, dscale) = self.sums::<V>(channel);
            self.gradient[self.norm.tensors.shift.start + channel] = dshift as f32;
            self.gradient[self.norm.tensors.scale.start + channel] = dscale as f32;
            if self.norm.input.write != Write::Skip {
                self.input_gradient::<V>(channel, dshift, dscale);
            }
        }
    }
}

/// dy after the backward pass of a ReLU, if there is one, which stays in its place.
#[inline(always)]
fn masked<V: Vector>(place: &mut [f32], y: &[f32], relu: bool) -> V {
    let mut dy = V::of(place);
    if relu {
        dy = dy.less(dy.where_equal(V::of(y), V::splat(0.0)));
        dy.put(place);
    }
    dy
}

impl Backward<'_> {
    /// Σ dy and Σ dy h of a channel, after applying the ReLU's backward pass to dy and passing dy on to the shortcut.
    #[inline(always)]
    fn sums<V: Vector>(&mut self, channel: usize) -> (f64, f64) {
        let norm = self.norm;
        let (map, out) = (norm.input.map, norm.output.map);
        let Normaliser { mean, variance, .. } = norm.normalisers[channel];
        let (mean, one) = (V::splat(mean as f32), V::splat(1.0));
        let (mut total, mut along) = (0.0, 0.0);
        for group in 0..self.samples.div_ceil(V::LANES) {
            for line in 0..map.shape[1] {
                let place = out.line(group, channel, line);
                let (mut s, mut a) = ([V::splat(0.0); CHAINS], [V::splat(0.0); CHAINS]);
                let mut xs = self.x[map.line(group, channel, line)].chunks_exact(CHAINS * V::LANES);
                let mut ys = self.y[place.clone()].chunks_exact(CHAINS * V::LANES);
                let mut dys = self.dy[place.clone()].chunks_exact_mut(CHAINS * V::LANES);
                for ((x, y), dy) in xs.by_ref().zip(ys.by_ref()).zip(dys.by_ref()) {
                    for n in 0..CHAINS {
                        let at = n * V::LANES..(n + 1) * V::LANES;
                        let dy = masked::<V>(&mut dy[at.clone()], &y[at.clone()], norm.relu);
                        s[n] = s[n].plus(dy);
                        a[n] = a[n].plus_product(dy, V::of(&x[at]).less(mean));
                    }
                }
                let rest = xs.remainder().chunks_exact(V::LANES).zip(ys.remainder().chunks_exact(V::LANES));
                for ((x, y), dy) in rest.zip(dys.into_remainder().chunks_exact_mut(V::LANES)) {
                    let dy = masked::<V>(dy, y, norm.relu);
                    s[0] = s[0].plus(dy);
                    a[0] = a[0].plus_product(dy, V::of(x).less(mean));
                }
                total += f64::from(together(s).sum());
                along += f64::from(together(a).sum());
                if let Some(port) = norm.added.filter(|port| port.write != Write::Skip) {
                    let to = self.dadded[port.map.line(group, channel, line)].chunks_exact_mut(V::LANES);
                    for (to, dy) in to.zip(self.dy[place].chunks_exact(V::LANES)) {
                        match port.write {
                            Write::Add => V::of(to).plus_product(V::of(dy), one).put(to),
                            _ => V::of(dy).put(to),
                        }
                    }
                }
            }
        }
        (total, along / (variance + EPSILON).sqrt())
    }

    #[inline(always)]
    fn input_gradient<V: Vector>(&mut self, channel: usize, dshift: f64, dscale: f64) {
        let norm = self.norm;
        let (map, out) = (norm.input.map, norm.output.map);
        let (mean, _) = norm.batch[channel];
        let Normaliser { variance, floored, .. } = norm.normalisers[channel];
        let (root, count) = ((variance + EPSILON).sqrt(), norm.count as f64);
        // dx = f (dy - Σ dy / k) - g (x - m)
        let factor = f64::from(self.params[norm.tensors.scale.start + channel]) / root;
        let slope = if floored || norm.fixed { 0.0 } else { -factor * dscale / count / root };
        let slope = V::splat(slope as f32);
        let level = if norm.fixed { 0.0 } else { (-factor * dshift / count) as f32 };
        let (factor, mean, one) = (V::splat(factor as f32), V::splat(mean as f32), V::splat(1.0));
        for group in 0..self.samples.div_ceil(V::LANES) {
            // Lanes without a sample stay zero.
            let lanes = V::LANES.min(self.samples - group * V::LANES);
            let mut real = [0f32; 16];
            real[..lanes].fill(1.0);
            let real = V::of(&real);
            for line in 0..map.shape[1] {
                let place = map.line(group, channel, line);
                let x = self.x[place.clone()].chunks_exact(V::LANES);
                let dy = self.dy[out.line(group, channel, line)].chunks_exact(V::LANES);
                for ((x, dy), dx) in x.zip(dy).zip(self.dx[place].chunks_exact_mut(V::LANES)) {
                    let full = V::splat(level)
                        .plus_product(V::of(dy), factor)
                        .plus_product(V::of(x).less(mean), slope)
                        .where_equal(real, one);
                    match norm.input.write {
                        Write::Add => V::of(dx).plus_product(full, one).put(dx),
                        _ => full.put(dx),
                    }
                }
            }
        }
    }
}
