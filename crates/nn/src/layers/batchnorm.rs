//! Batch normalisation per channel, as PyTorch's (eps 1e-5, momentum 0.1):
//!
//! ```text
//! training:    m, v = mean and biased variance over the batch's samples and pixels;   k = their number
//!              running mean     = 0.9 running mean     + 0.1 m
//!              running variance = 0.9 running variance + 0.1 v k / (k - 1)
//!              with constants, m and v are shifted by them before they normalise: see `normaliser.rs`
//! evaluation:  m, v = running mean and variance; so in training while they are frozen, and they stay
//! h = (x - m) / sqrt(v + eps);   y = scale h + shift,  then perhaps + a shortcut, then perhaps a ReLU
//!
//! dscale = Σ dy h;   dshift = Σ dy;   dx = scale / sqrt(v + eps) * (dy - Σ dy / k - g Σ dy h / k)
//! g = (x - the batch's own mean) / sqrt(v + eps), which is h without constants; 0 if the variance is at its floor
//! with frozen statistics, which no input changes: dx = scale / sqrt(v + eps) dy
//! ```
//!
//! With a single value per channel (k = 1) the unbiased variance is undefined, and the running variance stays as it is.

mod backward;
mod moments;
#[cfg(test)]
mod tests;

use super::normaliser::Normaliser;
use super::{Buffers, Layer, Mode};
use crate::kernels::aligned::Aligned;
use crate::kernels::isa::Work;
use crate::kernels::vector::Vector;
use crate::map::{Map, Port, Write};
use backward::Backward;
use fedtvd_core::train::Frozen;
use moments::Moments;
use std::ops::Range;

const EPSILON: f64 = 1e-5;

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
    /// Whether the running statistics normalise in training too.
    pub(crate) fixed: bool,
    /// What normalises each channel.
    pub(crate) normalisers: Vec<Normaliser>,
}

impl BatchNorm {
    /// A batch norm from one port to another, before its first batch.
    pub(crate) fn new([input, output]: [Port; 2], added: Option<Port>, relu: bool, tensors: Tensors) -> Self {
        let batch = vec![(0.0, 1.0); input.map.shape[0]];
        let normalisers = batch.iter().copied().map(Normaliser::of).collect();
        Self { input, output, added, relu, tensors, batch, count: 0, fixed: false, normalisers }
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
        let statistics = [&self.tensors.mean, &self.tensors.variance];
        let frozen = |frozen: &Frozen| statistics.into_iter().all(|tensor| frozen.covers(tensor));
        self.fixed = matches!(mode, Mode::Training { frozen: Some(tensors), .. } if frozen(tensors));
        if let (Mode::Training { norm, .. }, false) = (mode, self.fixed) {
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
        if self.fixed {
            return;
        }
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
        let used = |normaliser: &Normaliser| (normaliser.mean, normaliser.variance);
        for (channel, &batch) in self.batch.iter().enumerate() {
            let (mean, variance) = if self.fixed { used(&self.normalisers[channel]) } else { batch };
            let [of_mean, of_variance] = self.places(channel);
            sums[of_mean] += mean;
            sums[of_variance] += variance;
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
