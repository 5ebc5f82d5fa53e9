//! The sum at the end of a residual block, if not fused into a norm: y = body + shortcut, then perhaps a ReLU.

use super::relu::mask;
use super::{Buffers, Layer, Mode, disjoint};
use crate::map::{Port, Write};

/// A sum bound to its buffers. Both inputs may be the same map.
pub(crate) struct Sum {
    pub(crate) long: Port,
    pub(crate) short: Port,
    pub(crate) output: Port,
    pub(crate) relu: bool,
}

impl Layer for Sum {
    fn forward(&mut self, buffers: &mut Buffers, _: &[f32], _: &mut Mode<'_>) {
        let groups = buffers.groups();
        let mut y = std::mem::take(&mut buffers.values[self.output.value]);
        let (long, short) = (&buffers.values[self.long.value], &buffers.values[self.short.value]);
        for (group, channel, line) in self.output.map.lines(groups) {
            let at = |port: &Port| port.map.line(group, channel, line);
            let sums = long[at(&self.long)].iter().zip(&short[at(&self.short)]).map(|(a, b)| a + b);
            for (y, sum) in y[at(&self.output)].iter_mut().zip(sums) {
                *y = if self.relu && sum < 0.0 { 0.0 } else { sum };
            }
        }
        buffers.values[self.output.value] = y;
    }

    fn backward(&mut self, buffers: &mut Buffers, _: &[f32], _: &mut [f32]) {
        if self.relu {
            mask(buffers, &self.output);
        }
        // In this order the gradients were promised to be set before they are added to.
        for port in [&self.short, &self.long] {
            pass_on(buffers, &self.output, port);
        }
    }
}

/// Sets or adds the gradient of `from` to that of `to`, unchanged.
pub(super) fn pass_on(buffers: &mut Buffers, from: &Port, to: &Port) {
    if to.write == Write::Skip {
        return;
    }
    let groups = buffers.groups();
    let [dx, dy] = disjoint(&mut buffers.gradients, [to.gradient, from.gradient]);
    for (group, channel, line) in from.map.lines(groups) {
        let dy = &dy[from.map.line(group, channel, line)];
        let dx = &mut dx[to.map.line(group, channel, line)];
        match to.write {
            Write::Add => dx.iter_mut().zip(dy).for_each(|(dx, dy)| *dx += dy),
            _ => dx.copy_from_slice(dy),
        }
    }
}
