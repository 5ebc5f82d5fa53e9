//! 2-d convolution with zero padding:
//!
//! ```text
//! y[o, i, j]     = bias[o] + Σ_{c,u,v} w[o, c, u, v] * x[c, i s + u - pad, j s + v - pad]
//! dw[o, c, u, v] = Σ_{i,j} dy[o, i, j] * x[c, i s + u - pad, j s + v - pad]
//! dx[c, m, n]    = Σ_{o,u,v} w[o, c, u, v] * dy[o, (m + pad - u) / s, (n + pad - v) / s]   where s divides both
//! ```
//!
//! The last sum is a product per phase (m mod s, n mod s): within a phase the same taps apply everywhere. Passes for which
//! `algorithm` chooses Winograd's algorithm have no tables.

mod bias;
mod tables;

use super::algorithm::Algorithms;
use super::relu::mask;
use super::{Buffers, Layer, Mode, disjoint};
use crate::kernels::product::{Product, Start, Table};
use crate::kernels::weights::WeightGradient;
use crate::kernels::winograd::convolution::Convolution;
use crate::kernels::winograd::gradient;
use crate::kernels::winograd::input_gradient::InputGradient;
use crate::map::{Map, Port, Write};
use bias::BiasGradient;
use std::ops::Range;
use tables::{phases, places, taps};

/// Sizes of a convolution.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) kernel: [usize; 2],
    pub(crate) stride: usize,
    pub(crate) pad: usize,
}

impl Window {
    /// Border that `dx` needs around `dy`, so that every tap finds a number.
    pub(crate) fn gradient_border(&self, input: [usize; 2], output: [usize; 2]) -> usize {
        let need = |axis: usize| {
            let before = (self.kernel[axis] - 1).saturating_sub(self.pad).div_ceil(self.stride);
            let after = ((input[axis] - 1 + self.pad) / self.stride).saturating_sub(output[axis] - 1);
            before.max(after)
        };
        need(0).max(need(1))
    }
}

/// A convolution bound to its buffers; see the module.
pub(crate) struct Conv {
    input: Port,
    output: Port,
    weight: Range<usize>,
    bias: Option<Range<usize>>,
    relu: bool,
    masks: bool,
    window: Window,
    algorithms: Algorithms,
    /// Of y and dw, if one of them is computed directly.
    table: Table,
    /// Of dx, phase by phase.
    phases: Vec<Table>,
}

impl Conv {
    /// Bytes of the tables of a convolution between these maps. `write` says how dx is written.
    pub(crate) fn bytes(input: &Map, output: &Map, window: Window, write: Write, groups: usize) -> u128 {
        let algorithms = Algorithms::of(input, output, window, write);
        let [groups, stride, high, wide] =
            [groups, window.stride, window.kernel[0], window.kernel[1]].map(|count| count as u128);
        let [[channels, height, width], [outputs, rows, columns]] =
            [input.shape, output.shape].map(|shape| shape.map(|side| side as u128));
        let forward = match algorithms.has_direct_output() {
            true => Table::bytes(channels * high * wide, groups * rows * columns),
            false => 0,
        };
        if write == Write::Skip || algorithms.input_gradient.is_some() {
            return forward;
        }
        // Every tap and every pixel is in one phase; a phase is a table and two allocations.
        let phases = stride.min(height) * stride.min(width);
        let tables = phases * (size_of::<Table>() as u128 + 32);
        forward + Table::bytes(outputs * high * wide, groups * height * width) + tables
    }

    /// Binds a convolution; `relu` follows it, and `masks` says that its own backward pass includes the ReLU's.
    pub(crate) fn new(
        input: Port,
        output: Port,
        window: Window,
        weight: Range<usize>,
        bias: Option<Range<usize>>,
        (relu, masks): (bool, bool),
        groups: usize,
    ) -> Self {
        let algorithms = Algorithms::of(&input.map, &output.map, window, input.write);
        let phases = match input.write {
            Write::Skip => vec![],
            _ if algorithms.input_gradient.is_some() => vec![],
            _ => phases(&input.map, &output.map, window, groups),
        };
        let table = match algorithms.has_direct_output() {
            true => Table::new(taps(&input.map, window), places(&input.map, &output.map, window, groups)),
            false => Table::new(vec![], vec![]),
        };
        Self { table, phases, window, algorithms, input, output, weight, bias, relu, masks }
    }

    /// Weights per input channel and output channel: the kernel's area.
    fn area(&self) -> usize {
        self.window.kernel[0] * self.window.kernel[1]
    }

    fn pixels(&self) -> usize {
        self.output.map.shape[1] * self.output.map.shape[2]
    }

    fn weight_gradient(&self, buffers: &mut Buffers, gradient: &mut [f32]) {
        let (isa, groups) = (buffers.isa, buffers.groups());
        let x = &buffers.values[self.input.value];
        let dy = &buffers.gradients[self.output.gradient];
        if let Some(scheme) = self.algorithms.weight_gradient {
            let (from, to, pad) = (self.input.map, self.output.map, self.window.pad);
            let samples = buffers.samples;
            let scratch = &mut buffers.scratch;
            let work = gradient::WeightGradient { scheme, x, from, dy, to, pad, samples, gradient, scratch };
            return work.run(isa);
        }
        gradient.fill(0.0);
        WeightGradient {
            c: dy,
            c_row: self.output.map.channel(),
            b: x,
            gradient,
            gradient_row: self.input.map.shape[0] * self.area(),
            rows: self.output.map.shape[0],
            table: &self.table,
            count: groups * self.pixels(),
        }
        .run(isa);
    }

    fn input_gradient(&self, buffers: &mut Buffers, weights: &[f32]) {
        let (isa, groups) = (buffers.isa, buffers.groups());
        let [dy, dx] = disjoint(&mut buffers.gradients, [self.output.gradient, self.input.gradient]);
        if let Some(scheme) = self.algorithms.input_gradient {
            return InputGradient {
                scheme,
                weights,
                dy,
                from: self.output.map,
                dx,
                to: self.input.map,
                pad: self.window.pad,
                samples: buffers.samples,
                adds: self.input.write == Write::Add,
                scratch: &mut buffers.scratch,
            }
            .run(isa);
        }
        let capacity = dx.len() / self.input.map.group();
        for table in &self.phases {
            Product {
                a: weights,
                a_row: self.area(),
                b: dy,
                c: dx,
                c_row: self.input.map.channel(),
                rows: self.input.map.shape[0],
                table,
                depth: table.taps.len(),
                count: table.places.len() / capacity * groups,
                start: Start::of(self.input.write),
                relu: false,
            }
            .run(isa);
        }
    }
}

impl Layer for Conv {
    fn forward(&mut self, buffers: &mut Buffers, params: &[f32], _: &mut Mode<'_>) {
        let (isa, groups, relu) = (buffers.isa, buffers.groups(), self.relu);
        let [x, y] = disjoint(&mut buffers.values, [self.input.value, self.output.value]);
        let weights = &params[self.weight.clone()];
        let start = self.bias.clone().map_or(Start::Zero, |bias| Start::Bias(&params[bias]));
        if let Some(scheme) = self.algorithms.forward {
            return Convolution {
                scheme,
                weights,
                x,
                from: self.input.map,
                y,
                to: self.output.map,
                pad: self.window.pad,
                samples: buffers.samples,
                start,
                relu,
                scratch: &mut buffers.scratch,
            }
            .run(isa);
        }
        Product {
            a: weights,
            a_row: self.input.map.shape[0] * self.area(),
            b: x,
            c: y,
            c_row: self.output.map.channel(),
            rows: self.output.map.shape[0],
            table: &self.table,
            depth: self.table.taps.len(),
            count: groups * self.pixels(),
            start,
            relu,
        }
        .run(isa);
    }

    fn backward(&mut self, buffers: &mut Buffers, params: &[f32], gradient: &mut [f32]) {
        let (isa, groups) = (buffers.isa, buffers.groups());
        if self.masks {
            mask(buffers, &self.output);
        }
        if let Some(bias) = &self.bias {
            let dy = &buffers.gradients[self.output.gradient];
            let gradient = &mut gradient[bias.clone()];
            isa.run(BiasGradient { dy, map: self.output.map, groups, gradient });
        }
        self.weight_gradient(buffers, &mut gradient[self.weight.clone()]);
        if self.input.write != Write::Skip {
            self.input_gradient(buffers, &params[self.weight.clone()]);
        }
    }
}
