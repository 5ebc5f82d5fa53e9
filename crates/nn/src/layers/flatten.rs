//! Makes a map a flat vector, channel by channel: a copy that leaves the border behind.

use super::{Buffers, Layer, Mode, disjoint};
use crate::map::{Port, Write};

/// A flatten bound to its buffers.
pub(crate) struct Flatten {
    pub(crate) input: Port,
    pub(crate) output: Port,
}

impl Flatten {
    /// Matching stretches of the map and of the vector.
    fn pieces(
        &self,
        groups: usize,
    ) -> impl Iterator<Item = (std::ops::Range<usize>, std::ops::Range<usize>)> {
        let (map, flat) = (self.input.map, self.output.map);
        let [channels, height, width] = map.shape;
        (0..groups).flat_map(move |group| {
            (0..channels * height).map(move |line| {
                let start = group * flat.group() + line * width * flat.lanes;
                (map.line(group, line / height, line % height), start..start + width * flat.lanes)
            })
        })
    }
}

impl Layer for Flatten {
    fn forward(&mut self, buffers: &mut Buffers, _: &[f32], _: &mut Mode<'_>) {
        let pieces = self.pieces(buffers.groups());
        let [x, y] = disjoint(&mut buffers.values, [self.input.value, self.output.value]);
        for (from, to) in pieces {
            y[to].copy_from_slice(&x[from]);
        }
    }

    fn backward(&mut self, buffers: &mut Buffers, _: &[f32], _: &mut [f32]) {
        let pieces = self.pieces(buffers.groups());
        let [dx, dy] = disjoint(&mut buffers.gradients, [self.input.gradient, self.output.gradient]);
        match self.input.write {
            Write::Skip => {}
            Write::Set => pieces.for_each(|(from, to)| dx[from].copy_from_slice(&dy[to])),
            Write::Add => {
                for (from, to) in pieces {
                    dx[from].iter_mut().zip(&dy[to]).for_each(|(dx, dy)| *dx += dy);
                }
            }
        }
    }
}
