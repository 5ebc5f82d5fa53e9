//! Batch normalisation per channel, as PyTorch's (eps 1e-5, momentum 0.1):
//!
//! ```text
//! training:    m, v = mean and biased variance over the batch's samples and pixels;   k = their number
//!              running mean     = 0.9 running mean     + 0.1 m
//!              running variance = 0.9 running variance + 0.1 v k / (k - 1)
//!              with constants, m and v are shifted by them before they normalise: see `normaliser.rs`
//! evaluation:  m, v = running mean and variance
//! h = (x - m) / sqrt(v + eps);   y = scale h + shift,  then perhaps + a shortcut, then perhaps a ReLU
//!
//! dscale = Σ dy h;   dshift = Σ dy;   dx = scale / sqrt(v + eps) * (dy - Σ dy / k - g Σ dy h / k)
//! g = (x - the batch's own mean) / sqrt(v + eps), which is h without constants; 0 if the variance is at its floor
//! ```
//!
//! With a single value per channel (k = 1) the unbiased variance is undefined, and the running variance stays as it is.

use super::normaliser::Normaliser;
use super::{Buffers, Layer, Mode};
use crate::kernels::aligned::Aligned;
use crate::kernels::isa::Work;
use crate::kernels::sums::Sums;
use crate::kernels::vector::Vector;
use crate::map::{Map, Port, Write};
use std::ops::Range;

const EPSILON: f64 = 1e-5;

/// Sums of a line that are taken side by side, because each addition has to wait for the one before it in its chain.
const CHAINS: usize = 4;

/// The sum of all chains.
#[inline(always)]
fn together<V: Vector>(chains: [V; CHAINS]) -> V {
    chains[0].plus(chains[1]).plus(chains[2].plus(chains[3]))
}

const MOMENTUM: f64 = 0.1;

/// Where a batch norm's tensors lie in the flat parameters.
pub(crate) struct Tensors {
    pub(crate) scale: Range<usize>,
    pub(crate) shift: Range<usize>,
    pub(crate) mean: Range<usize>,
    pub(crate) variance: Range<usize>,
    /// Where the buffers of all layers begin.
    pub(crate) buffers: usize,
}

/// A batch norm bound to its buffers; see the module.
pub(crate) struct BatchNorm {
    pub(crate) input: Port,
    pub(crate) output: Port,
    /// What is added after it.
    pub(crate) added: Option<Port>,
    pub(crate) relu: bool,
    pub(crate) tensors: Tensors,
    /// The last training batch's mean and biased variance per channel, and values per channel.
    pub(crate) batch: Vec<(f64, f64)>,
    pub(crate) count: usize,
    /// What normalises each channel.
    pub(crate) normalisers: Vec<Normaliser>,
}

impl BatchNorm {
    /// A batch norm from one port to another, before its first batch.
    pub(crate) fn new([input, output]: [Port; 2], added: Option<Port>, relu: bool, tensors: Tensors) -> Self {
        let batch = vec![(0.0, 1.0); input.map.shape[0]];
        let normalisers = batch.iter().copied().map(Normaliser::of).collect();
        Self { input, output, added, relu, tensors, batch, count: 0, normalisers }
    }

    /// Bytes of its tables.
    pub(crate) fn bytes(input: &Map) -> u128 {
        (size_of::<(f64, f64)>() + size_of::<Normaliser>()) as u128 * input.shape[0] as u128
    }

    /// The places of a channel's mean and variance among the buffers.
    fn places(&self, channel: usize) -> [usize; 2] {
        [&self.tensors.mean, &self.tensors.variance]
            .map(|tensor| tensor.start + channel - self.tensors.buffers)
    }
}

impl Layer for BatchNorm {
    fn forward(&mut self, buffers: &mut Buffers, params: &[f32], mode: &mut Mode<'_>) {
        let (isa, groups, samples) = (buffers.isa, buffers.groups(), buffers.samples);
        let map = self.input.map;
        if let Mode::Training { norm, .. } = mode {
            self.count = samples * map.shape[1] * map.shape[2];
            let x = &buffers.values[self.input.value];
            isa.run(Moments { x, map, samples, moments: &mut self.batch });
            for channel in 0..self.batch.len() {
                let (batch, places) = (self.batch[channel], self.places(channel));
                self.normalisers[channel] = match norm {
                    None => Normaliser::of(batch),
                    Some(norm) => Normaliser::shifted(batch, norm, places),
                };
            }
        } else {
            let running =
                params[self.tensors.mean.clone()].iter().zip(&params[self.tensors.variance.clone()]);
            for (normaliser, (&mean, &variance)) in self.normalisers.iter_mut().zip(running) {
                *normaliser = Normaliser::of((f64::from(mean), f64::from(variance)));
            }
        }
        let mut y = std::mem::take(&mut buffers.values[self.output.value]);
        isa.run(Forward {
            norm: self,
            x: &buffers.values[self.input.value],
            added: self.added.map(|port| &*buffers.values[port.value]),
            y: &mut y,
            params,
            groups,
        });
        buffers.values[self.output.value] = y;
    }

    fn backward(&mut self, buffers: &mut Buffers, params: &[f32], gradient: &mut [f32]) {
        let (isa, samples) = (buffers.isa, buffers.samples);
        let mut dy = std::mem::take(&mut buffers.gradients[self.output.gradient]);
        // A skipped gradient has no buffer; the empty slice is never accessed.
        let mut taken = |port: Option<Port>| match port {
            Some(port) if port.write != Write::Skip => std::mem::take(&mut buffers.gradients[port.gradient]),
            _ => Aligned::default(),
        };
        let (mut dx, mut dadded) = (taken(Some(self.input)), taken(self.added));
        isa.run(Backward {
            norm: self,
            x: &buffers.values[self.input.value],
            y: &buffers.values[self.output.value],
            dy: &mut dy,
            dx: &mut dx,
            dadded: &mut dadded,
            params,
            gradient,
            samples,
        });
        buffers.gradients[self.output.gradient] = dy;
        for (port, buffer) in [(Some(self.input), dx), (self.added, dadded)] {
            if let Some(port) = port.filter(|port| port.write != Write::Skip) {
                buffers.gradients[port.gradient] = buffer;
            }
        }
    }

    fn remember(&self, params: &mut [f32]) {
        let unbiased = self.count as f64 / (self.count as f64 - 1.0);
        for (channel, &(mean, variance)) in self.batch.iter().enumerate() {
            let running = &mut params[self.tensors.mean.start + channel];
            *running = ((1.0 - MOMENTUM) * f64::from(*running) + MOMENTUM * mean) as f32;
            if self.count > 1 {
                let running = &mut params[self.tensors.variance.start + channel];
                *running = ((1.0 - MOMENTUM) * f64::from(*running) + MOMENTUM * variance * unbiased) as f32;
            }
        }
    }

    fn add_statistics(&self, sums: &mut [f64]) {
        for (channel, &(mean, variance)) in self.batch.iter().enumerate() {
            let [of_mean, of_variance] = self.places(channel);
            sums[of_mean] += mean;
            sums[of_variance] += variance;
        }
    }
}

/// Mean and biased variance per channel, in one pass: sums of x - o and (x - o)², o being a first value,
/// which is near enough to the mean for the difference of squares to be exact enough.
struct Moments<'a> {
    x: &'a [f32],
    map: Map,
    samples: usize,
    moments: &'a mut [(f64, f64)],
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

struct Forward<'a> {
    norm: &'a BatchNorm,
    x: &'a [f32],
    added: Option<&'a [f32]>,
    y: &'a mut [f32],
    params: &'a [f32],
    groups: usize,
}

impl Work for Forward<'_> {
    #[inline(always)]
    fn run<V: Vector>(self) {
        let norm = self.norm;
        let (map, out) = (norm.input.map, norm.output.map);
        let one = V::splat(1.0);
        for (group, channel, line) in map.lines(self.groups) {
            let Normaliser { mean, variance, .. } = norm.normalisers[channel];
            let factor =
                f64::from(self.params[norm.tensors.scale.start + channel]) / (variance + EPSILON).sqrt();
            let shift = f64::from(self.params[norm.tensors.shift.start + channel]) - mean * factor;
            let (factor, shift) = (V::splat(factor as f32), V::splat(shift as f32));
            let x = self.x[map.line(group, channel, line)].chunks_exact(V::LANES);
            let y = self.y[out.line(group, channel, line)].chunks_exact_mut(V::LANES);
            let normed = |x: &[f32]| shift.plus_product(V::of(x), factor);
            let ended = |y: V| if norm.relu { V::splat(0.0).max(y) } else { y };
            match (self.added, norm.added) {
                (Some(added), Some(port)) => {
                    let added = added[port.map.line(group, channel, line)].chunks_exact(V::LANES);
                    for ((x, y), added) in x.zip(y).zip(added) {
                        ended(normed(x).plus_product(V::of(added), one)).put(y);
                    }
                }
                _ => x.zip(y).for_each(|(x, y)| ended(normed(x)).put(y)),
            }
        }
    }
}

struct Backward<'a> {
    norm: &'a BatchNorm,
    x: &'a [f32],
    y: &'a [f32],
    dy: &'a mut [f32],
    dx: &'a mut [f32],
    dadded: &'a mut [f32],
    params: &'a [f32],
    gradient: &'a mut [f32],
    samples: usize,
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
        let slope = if floored { 0.0 } else { -factor * dscale / count / root };
        let slope = V::splat(slope as f32);
        let level = (-factor * dshift / count) as f32;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::isa::Isa;
    use fedtvd_core::stream::{Purpose, Stream};
    use serde_json::Value;

    #[test]
    fn forward_backward_and_running_statistics_are_the_golden_ones() {
        let golden: Value =
            serde_json::from_str(include_str!("../../tests/golden/batchnorm_layer.json")).unwrap();
        let number = |name: &str| golden[name].as_f64().unwrap();
        let list = |name: &str| -> Vec<f64> {
            golden[name].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
        };
        for isa in Isa::available() {
            let lanes = isa.lanes();
            let map = Map { shape: [1, 1, 1], border: 0, lanes };
            let port = |buffer| Port { value: buffer, gradient: buffer, map, write: Write::Set };
            let padded = |values: Vec<f64>| {
                let mut buffer = Aligned::zeros(lanes);
                buffer.iter_mut().zip(values).for_each(|(place, value)| *place = value as f32);
                buffer
            };
            let mut buffers = Buffers {
                isa,
                samples: 4,
                values: vec![padded(list("x")), Aligned::zeros(lanes)],
                gradients: vec![Aligned::zeros(lanes), padded(list("dy"))],
                scratch: Aligned::default(),
            };
            let mut params = vec![number("gamma") as f32, number("beta") as f32, 0.0, 1.0];
            let tensors = Tensors { scale: 0..1, shift: 1..2, mean: 2..3, variance: 3..4, buffers: 2 };
            let (input, output) = (port(0), port(1));
            let mut norm = BatchNorm::new([input, output], None, false, tensors);
            let mut stream = Stream::at(1, Purpose::Dropout, 0, 0);
            norm.forward(&mut buffers, &params, &mut Mode::Training { dropout: &mut stream, norm: None });
            let mut gradient = [0.0; 2];
            norm.backward(&mut buffers, &params, &mut gradient);
            norm.remember(&mut params);
            let close =
                |found: f32, right: f64| assert!((f64::from(found) - right).abs() < 2e-6, "{found} {right}");
            buffers.values[1].iter().zip(list("y")).for_each(|(y, right)| close(*y, right));
            buffers.gradients[0].iter().zip(list("dx")).for_each(|(dx, right)| close(*dx, right));
            close(gradient[0], number("dgamma"));
            close(gradient[1], number("dbeta"));
            close(params[2], number("running_mean_after(momentum0.1,from0)"));
            close(params[3], number("running_var_after(momentum0.1,from1,UNBIASED)"));
            assert!(buffers.gradients[0][4..].iter().all(|dx| *dx == 0.0), "lanes without a sample");
        }
    }
}
