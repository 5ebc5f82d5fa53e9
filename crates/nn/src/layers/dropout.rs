//! Zeroes a share of the values while training and scales the others by 1 / (1 - rate); nothing otherwise.
//!
//! Draws are made sample by sample, so they do not depend on the width of the registers.

use super::{Buffers, Layer, Mode, disjoint};
use crate::map::{Port, Write};
use fedtvd_core::stream::Stream;

/// A dropout bound to its buffers; see the module.
pub(crate) struct Dropout {
    input: Port,
    output: Port,
    rate: f64,
    /// What each value of the output was multiplied by.
    factors: Vec<f32>,
}

impl Dropout {
    pub(crate) fn new(input: Port, output: Port, rate: f64, groups: usize) -> Self {
        Self { input, output, rate, factors: vec![1.0; groups * output.map.group()] }
    }

    fn draw(&mut self, samples: usize, stream: &mut Stream) {
        let map = self.output.map;
        let keep = (1.0 / (1.0 - self.rate)) as f32;
        // A 32-bit number is below this in a share `rate` of all cases.
        let bound = (self.rate * 2f64.powi(32)).round() as u64;
        for n in 0..samples {
            for channel in 0..map.shape[0] {
                for line in 0..map.shape[1] {
                    let line = map.line(n / map.lanes, channel, line);
                    for factors in self.factors[line].chunks_exact_mut(map.lanes) {
                        let drops = u64::from(stream.bits32()) < bound;
                        factors[n % map.lanes] = if drops { 0.0 } else { keep };
                    }
                }
            }
        }
    }
}

impl Layer for Dropout {
    fn forward(&mut self, buffers: &mut Buffers, _: &[f32], mode: &mut Mode<'_>) {
        let groups = buffers.groups();
        let training = matches!(mode, Mode::Training { .. });
        if let Mode::Training { dropout, .. } = mode {
            self.draw(buffers.samples, dropout);
        }
        let [x, y] = disjoint(&mut buffers.values, [self.input.value, self.output.value]);
        for (group, channel, line) in self.input.map.lines(groups) {
            let to = self.output.map.line(group, channel, line);
            let x = &x[self.input.map.line(group, channel, line)];
            if training {
                for ((y, x), factor) in y[to.clone()].iter_mut().zip(x).zip(&self.factors[to]) {
                    *y = x * factor;
                }
            } else {
                y[to].copy_from_slice(x);
            }
        }
    }

    fn backward(&mut self, buffers: &mut Buffers, _: &[f32], _: &mut [f32]) {
        if self.input.write == Write::Skip {
            return;
        }
        let groups = buffers.groups();
        let [dx, dy] = disjoint(&mut buffers.gradients, [self.input.gradient, self.output.gradient]);
        let adds = self.input.write == Write::Add;
        for (group, channel, line) in self.input.map.lines(groups) {
            let from = self.output.map.line(group, channel, line);
            let to = &mut dx[self.input.map.line(group, channel, line)];
            for ((dx, dy), factor) in to.iter_mut().zip(&dy[from.clone()]).zip(&self.factors[from]) {
                *dx = if adds { *dx + dy * factor } else { dy * factor };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::Map;
    use fedtvd_core::stream::Purpose;

    #[test]
    fn a_share_of_the_values_of_every_sample_is_dropped_and_the_mean_stays() {
        let map = Map { shape: [40, 10, 10], border: 1, lanes: 8 };
        let port = Port { value: 0, gradient: 0, map, write: Write::Set };
        let mut dropout = Dropout::new(port, port, 0.25, 1);
        dropout.draw(5, &mut Stream::at(1, Purpose::Dropout, 0, 0));
        for n in 0..5 {
            let factors = map
                .lines(1)
                .flat_map(|(group, channel, line)| map.line(group, channel, line).skip(n).step_by(8));
            let kept = factors.map(|place| dropout.factors[place]).filter(|factor| *factor != 0.0);
            let (count, sum) = kept.fold((0, 0.0), |(count, sum), factor| (count + 1, sum + factor));
            // 3000 of 4000 expected, deviation 27: five deviations.
            assert!((2863..3137).contains(&count), "{count}");
            assert!((sum / count as f32 - 4.0 / 3.0).abs() < 1e-4);
        }
    }
}
