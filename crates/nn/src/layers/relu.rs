//! y = max(x, 0); dx = dy where y > 0, else 0. NaN stays NaN.

use super::{Buffers, Layer, Mode, disjoint};
use crate::kernels::isa::Work;
use crate::kernels::vector::Vector;
use crate::map::{Map, Port, Write};

/// A ReLU that is not fused into another layer.
pub(crate) struct Relu {
    pub(crate) input: Port,
    pub(crate) output: Port,
}

impl Layer for Relu {
    fn forward(&mut self, buffers: &mut Buffers, _: &[f32], _: &mut Mode<'_>) {
        let groups = buffers.groups();
        let [x, y] = disjoint(&mut buffers.values, [self.input.value, self.output.value]);
        for (group, channel, line) in self.input.map.lines(groups) {
            let from = &x[self.input.map.line(group, channel, line)];
            let to = &mut y[self.output.map.line(group, channel, line)];
            for (y, &x) in to.iter_mut().zip(from) {
                *y = if x < 0.0 { 0.0 } else { x };
            }
        }
    }

    fn backward(&mut self, buffers: &mut Buffers, _: &[f32], _: &mut [f32]) {
        if self.input.write == Write::Skip {
            return;
        }
        let groups = buffers.groups();
        let y = &buffers.values[self.output.value];
        let [dx, dy] = disjoint(&mut buffers.gradients, [self.input.gradient, self.output.gradient]);
        let adds = self.input.write == Write::Add;
        for (group, channel, line) in self.input.map.lines(groups) {
            let from = self.output.map.line(group, channel, line);
            let to = &mut dx[self.input.map.line(group, channel, line)];
            for ((dx, &y), &dy) in to.iter_mut().zip(&y[from.clone()]).zip(&dy[from]) {
                let part = if y > 0.0 { dy } else { 0.0 };
                *dx = if adds { *dx + part } else { part };
            }
        }
    }
}

/// The backward pass of a fused ReLU: zero in dy wherever y is not positive.
pub(crate) fn mask(buffers: &mut Buffers, output: &Port) {
    let groups = buffers.groups();
    let y = &buffers.values[output.value];
    let dy = &mut buffers.gradients[output.gradient];
    buffers.isa.run(Mask { y, dy, map: output.map, groups });
}

struct Mask<'a> {
    y: &'a [f32],
    dy: &'a mut [f32],
    map: Map,
    groups: usize,
}

impl Work for Mask<'_> {
    #[inline(always)]
    fn run<V: Vector>(self) {
        for group in 0..self.groups {
            for channel in 0..self.map.shape[0] {
                for line in 0..self.map.shape[1] {
                    let line = self.map.line(group, channel, line);
                    for (dy, &y) in self.dy[line.clone()].iter_mut().zip(&self.y[line]) {
                        *dy = if y > 0.0 { *dy } else { 0.0 };
                    }
                }
            }
        }
    }
}
