//! y = max(x, 0); dx = dy where y > 0, else 0. NaN stays NaN.

use super::{Buffers, Layer, Mode, disjoint};
use crate::map::{Port, Write};

/// A ReLU that no other layer does on its way.
pub(crate) struct Relu {
    pub(crate) input: Port,
    pub(crate) output: Port,
}

impl Layer for Relu {
    fn forward(&mut self, buffers: &mut Buffers, _: &[f32], _: &mut Mode<'_>) {
        let groups = buffers.groups();
        let [x, y] = disjoint(&mut buffers.values, [self.input.value, self.output.value]);
        for (from, to) in lines(&self.input, &self.output, groups) {
            for (y, &x) in y[to].iter_mut().zip(&x[from]) {
                *y = if x < 0.0 { 0.0 } else { x };
            }
        }
    }

    fn backward(&mut self, buffers: &mut Buffers, _: &[f32], _: &mut [f32]) {
        let groups = buffers.groups();
        if self.input.write == Write::Skip {
            return;
        }
        let y = &buffers.values[self.output.value];
        let [dx, dy] = disjoint(&mut buffers.gradients, [self.input.gradient, self.output.gradient]);
        let keeps = if self.input.write == Write::Add { 1.0 } else { 0.0 };
        for (from, to) in lines(&self.input, &self.output, groups) {
            for ((dx, &y), &dy) in dx[from].iter_mut().zip(&y[to.clone()]).zip(&dy[to]) {
                *dx = *dx * keeps + if y > 0.0 { dy } else { 0.0 };
            }
        }
    }
}

/// Matching rows of two maps of one shape.
pub(crate) fn lines(
    a: &Port,
    b: &Port,
    groups: usize,
) -> impl Iterator<Item = (std::ops::Range<usize>, std::ops::Range<usize>)> {
    let (a, b) = (a.map, b.map);
    (0..groups).flat_map(move |group| {
        (0..a.shape[0]).flat_map(move |channel| {
            (0..a.shape[1]).map(move |y| (a.line(group, channel, y), b.line(group, channel, y)))
        })
    })
}

/// The backward pass of a ReLU that a layer did on its way: zero in dy wherever y is not positive.
pub(crate) fn mask(buffers: &mut Buffers, output: &Port) {
    let groups = buffers.groups();
    let y = &buffers.values[output.value];
    let dy = &mut buffers.gradients[output.gradient];
    for (line, _) in lines(output, output, groups) {
        for (dy, &y) in dy[line.clone()].iter_mut().zip(&y[line]) {
            *dy = if y > 0.0 { *dy } else { 0.0 };
        }
    }
}
