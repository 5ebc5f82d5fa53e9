//! Mean over height and width, one number per channel:
//!
//! ```text
//! y[c] = Σ_{i,j} x[c, i, j] / (height width);   dx[c, i, j] = dy[c] / (height width)
//! ```

use super::{Buffers, Layer, Mode, disjoint};
use crate::map::{Port, Write};

/// A global pooling bound to its buffers; see the module.
pub(crate) struct GlobalPool {
    pub(crate) input: Port,
    pub(crate) output: Port,
}

impl GlobalPool {
    fn share(&self) -> f32 {
        1.0 / (self.input.map.shape[1] * self.input.map.shape[2]) as f32
    }
}

impl Layer for GlobalPool {
    fn forward(&mut self, buffers: &mut Buffers, _: &[f32], _: &mut Mode<'_>) {
        let groups = buffers.groups();
        let [x, y] = disjoint(&mut buffers.values, [self.input.value, self.output.value]);
        let (map, share) = (self.input.map, self.share());
        for (pixel, y) in y.chunks_exact_mut(map.lanes).enumerate().take(groups * map.shape[0]) {
            y.fill(0.0);
            for line in 0..map.shape[1] {
                for x in x[map.line(pixel / map.shape[0], pixel % map.shape[0], line)].chunks_exact(map.lanes)
                {
                    y.iter_mut().zip(x).for_each(|(y, x)| *y += x);
                }
            }
            y.iter_mut().for_each(|y| *y *= share);
        }
    }

    fn backward(&mut self, buffers: &mut Buffers, _: &[f32], _: &mut [f32]) {
        if self.input.write == Write::Skip {
            return;
        }
        let groups = buffers.groups();
        let [dx, dy] = disjoint(&mut buffers.gradients, [self.input.gradient, self.output.gradient]);
        let (map, share) = (self.input.map, self.share());
        let keeps = self.input.write == Write::Add;
        for (pixel, dy) in dy.chunks_exact(map.lanes).enumerate().take(groups * map.shape[0]) {
            for line in 0..map.shape[1] {
                let line = map.line(pixel / map.shape[0], pixel % map.shape[0], line);
                for dx in dx[line].chunks_exact_mut(map.lanes) {
                    for (dx, dy) in dx.iter_mut().zip(dy) {
                        *dx = if keeps { *dx + dy * share } else { dy * share };
                    }
                }
            }
        }
    }
}
