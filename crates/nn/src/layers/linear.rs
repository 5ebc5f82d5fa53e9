//! Fully connected layer on a flat input:
//!
//! ```text
//! y[o]     = bias[o] + Σ_i w[o, i] * x[i]
//! dw[o, i] = Σ_n dy[n, o] * x[n, i]          (n: the samples)
//! dx[i]    = Σ_o w[o, i] * dy[o]
//! ```

use super::relu::mask;
use super::{Buffers, Layer, Mode, disjoint};
use crate::kernels::aligned::Aligned;
use crate::kernels::isa::{Isa, Work};
use crate::kernels::product::{Place, Product, Start, Table, Tap};
use crate::kernels::vector::{Vector, transpose};
use crate::map::{Map, Port, Write};
use std::ops::Range;

/// A linear layer bound to its buffers; see the module.
pub(crate) struct Linear {
    input: Port,
    output: Port,
    weight: Range<usize>,
    bias: Range<usize>,
    relu: bool,
    masks: bool,
    /// One place per group of samples.
    forward: Table,
    backward: Table,
    /// One tap per sample, one place per full register of inputs.
    samples: Table,
    /// The same for a last register that is moved back to end with the inputs, if they do not fill whole registers.
    tail: Option<Table>,
    /// The input, sample by sample.
    rows: Aligned,
}

impl Linear {
    /// Bytes of the tables and the copy of the input that a layer between these maps holds.
    pub(crate) fn bytes(input: &Map, output: &Map, groups: usize) -> u128 {
        let [ins, outs, lanes, groups] =
            [input.shape[0], output.shape[0], input.lanes, groups].map(|count| count as u128);
        let samples = groups * lanes;
        let mut tables = vec![(ins, groups), (outs, groups), (samples, ins / lanes)];
        if ins > lanes && !ins.is_multiple_of(lanes) {
            tables.push((samples, 1));
        }
        4 * samples * ins + tables.iter().map(|(taps, places)| Table::bytes(*taps, *places)).sum::<u128>()
    }

    /// Binds a linear layer; `relu` follows it, and `masks` says that its own backward pass includes the ReLU's.
    pub(crate) fn new(
        input: Port,
        output: Port,
        weight: Range<usize>,
        bias: Range<usize>,
        (relu, masks): (bool, bool),
        groups: usize,
    ) -> Self {
        let (ins, outs, lanes) = (input.map.shape[0], output.map.shape[0], input.map.lanes);
        let table = |count: usize, step: usize, b: usize, c: usize| {
            let tap = |k| Tap { a: (k * step) as u32, b: (k * lanes) as u32 };
            let place = |group| Place { b: (group * b * lanes) as u32, c: (group * c * lanes) as u32 };
            Table::new((0..count).map(tap).collect(), (0..groups).map(place).collect())
        };
        let column = |start: usize| Place { b: start as u32, c: start as u32 };
        let columns: Vec<Place> = (0..ins / lanes).map(|register| column(register * lanes)).collect();
        let sample = |n: usize| Tap { a: (n / lanes * outs * lanes + n % lanes) as u32, b: (n * ins) as u32 };
        Self {
            forward: table(ins, 1, ins, outs),
            backward: table(outs, ins, outs, ins),
            samples: Table::new((0..groups * lanes).map(sample).collect(), columns),
            tail: (ins > lanes && !ins.is_multiple_of(lanes))
                .then(|| Table::new((0..groups * lanes).map(sample).collect(), vec![column(ins - lanes)])),
            rows: Aligned::zeros(groups * lanes * ins),
            input,
            output,
            weight,
            bias,
            relu,
            masks,
        }
    }
}

impl Layer for Linear {
    fn forward(&mut self, buffers: &mut Buffers, params: &[f32], _: &mut Mode<'_>) {
        let (isa, groups) = (buffers.isa, buffers.groups());
        let [x, y] = disjoint(&mut buffers.values, [self.input.value, self.output.value]);
        Product {
            a: &params[self.weight.clone()],
            a_row: self.input.map.shape[0],
            b: x,
            c: y,
            c_row: self.output.map.lanes,
            rows: self.output.map.shape[0],
            table: &self.forward,
            depth: self.forward.taps.len(),
            count: groups,
            start: Start::Bias(&params[self.bias.clone()]),
            relu: self.relu,
        }
        .run(isa);
    }

    fn backward(&mut self, buffers: &mut Buffers, params: &[f32], gradient: &mut [f32]) {
        let (isa, groups) = (buffers.isa, buffers.groups());
        if self.masks {
            mask(buffers, &self.output);
        }
        let (outs, lanes) = (self.output.map.shape[0], self.output.map.lanes);
        let dy = &buffers.gradients[self.output.gradient];
        for (o, gradient) in gradient[self.bias.clone()].iter_mut().enumerate() {
            *gradient = 0.0;
            for group in 0..groups {
                let start = (group * outs + o) * lanes;
                *gradient += dy[start..start + lanes].iter().sum::<f32>();
            }
        }
        let x = &buffers.values[self.input.value];
        self.weight_gradient(x, dy, buffers.samples, &mut gradient[self.weight.clone()], isa);
        if self.input.write != Write::Skip {
            let [dy, dx] = disjoint(&mut buffers.gradients, [self.output.gradient, self.input.gradient]);
            self.input_gradient(&params[self.weight.clone()], dy, dx, groups, isa);
        }
    }
}

impl Linear {
    fn weight_gradient(&mut self, x: &[f32], dy: &[f32], samples: usize, gradient: &mut [f32], isa: Isa) {
        let (ins, outs, lanes) = (self.input.map.shape[0], self.output.map.shape[0], self.input.map.lanes);
        let groups = samples.div_ceil(lanes);
        isa.run(SampleBySample { x: &x[..groups * ins * lanes], units: ins, rows: &mut self.rows });
        if ins < lanes {
            return self.few_inputs(dy, groups, gradient);
        }
        // The tail first and completely: the last full register overwrites what both compute with the same numbers. In one product
        // they would add to each other, since a product adds up many samples part by part.
        for table in self.tail.iter().chain([&self.samples]) {
            Product {
                a: dy,
                a_row: lanes,
                b: &self.rows,
                c: gradient,
                c_row: ins,
                rows: outs,
                table,
                depth: samples,
                count: table.places.len(),
                start: Start::Zero,
                relu: false,
            }
            .run(isa);
        }
    }

    /// dw where the inputs do not fill a register.
    fn few_inputs(&self, dy: &[f32], groups: usize, gradient: &mut [f32]) {
        let (ins, outs, lanes) = (self.input.map.shape[0], self.output.map.shape[0], self.input.map.lanes);
        gradient.fill(0.0);
        for (o, gradient) in gradient.chunks_exact_mut(ins).enumerate() {
            for n in 0..groups * lanes {
                let dy = dy[(n / lanes * outs + o) * lanes + n % lanes];
                for (gradient, x) in gradient.iter_mut().zip(&self.rows[n * ins..][..ins]) {
                    *gradient += dy * x;
                }
            }
        }
    }

    fn input_gradient(&mut self, weight: &[f32], dy: &[f32], dx: &mut [f32], groups: usize, isa: Isa) {
        let (ins, outs, lanes) = (self.input.map.shape[0], self.output.map.shape[0], self.input.map.lanes);
        Product {
            a: weight,
            a_row: 1,
            b: dy,
            c: dx,
            c_row: lanes,
            rows: ins,
            table: &self.backward,
            depth: outs,
            count: groups,
            start: Start::of(self.input.write),
            relu: false,
        }
        .run(isa);
    }
}

/// From group, unit, lane to group, lane, unit.
struct SampleBySample<'a> {
    x: &'a [f32],
    units: usize,
    rows: &'a mut [f32],
}

impl Work for SampleBySample<'_> {
    #[inline(always)]
    fn run<V: Vector>(self) {
        let size = self.units * V::LANES;
        let whole = self.units / V::LANES * V::LANES;
        for (group, rows) in self.x.chunks_exact(size).zip(self.rows.chunks_exact_mut(size)) {
            for first in (0..whole).step_by(V::LANES) {
                transpose::<V>(&group[first * V::LANES..], V::LANES, &mut rows[first..], self.units);
            }
            for i in whole..self.units {
                for lane in 0..V::LANES {
                    rows[lane * self.units + i] = group[i * V::LANES + lane];
                }
            }
        }
    }
}
