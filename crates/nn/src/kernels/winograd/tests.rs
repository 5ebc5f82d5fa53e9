//! Against direct sums in f64: forward, gradient of the input, gradient of the weights.

use super::convolution::{self, Convolution};
use super::gradient::{self, WeightGradient};
use super::input_gradient::{self, InputGradient};
use super::*;
use crate::kernels::aligned::Aligned;
use crate::kernels::isa::Isa;
use crate::kernels::product::Start;
use crate::map::Map;
use fedtvd_core::stream::{Purpose, Stream};
use proptest::prelude::*;

/// A convolution of `samples` samples.
#[derive(Clone, Debug)]
struct Case {
    scheme: Scheme,
    channels: [usize; 2],
    sides: [usize; 2],
    pad: usize,
    /// What the maps' borders have beyond what the convolution needs.
    spare: usize,
    samples: usize,
}

impl Case {
    fn output_sides(&self) -> [usize; 2] {
        self.sides.map(|side| side + 2 * self.pad + 1 - self.scheme.kernel())
    }

    fn fits(&self) -> bool {
        self.sides.iter().all(|side| side + 2 * self.pad >= self.scheme.kernel())
    }

    /// Every product of the convolution: sample, output, row, column, weight's place, input, row, column.
    fn products(&self, mut each: impl FnMut([usize; 4], usize, [usize; 4])) {
        let ([inputs, outputs], kernel) = (self.channels, self.scheme.kernel());
        let [rows, columns] = self.output_sides();
        for n in 0..self.samples {
            for (o, i, j) in triples([outputs, rows, columns]) {
                for (c, u, v) in triples([inputs, kernel, kernel]) {
                    let (y, x) = ((i + u).wrapping_sub(self.pad), (j + v).wrapping_sub(self.pad));
                    if y < self.sides[0] && x < self.sides[1] {
                        each([n, o, i, j], ((o * inputs + c) * kernel + u) * kernel + v, [n, c, y, x]);
                    }
                }
            }
        }
    }
}

fn triples([a, b, c]: [usize; 3]) -> impl Iterator<Item = (usize, usize, usize)> {
    (0..a * b * c).map(move |n| (n / (b * c), n / c % b, n % c))
}

fn normals(stream: &mut Stream, count: usize) -> Vec<f32> {
    (0..count).map(|_| stream.normal() as f32).collect()
}

/// The numbers of samples as a map's registers, and back.
fn place(map: &Map, [n, c, y, x]: [usize; 4]) -> usize {
    map.at(n / map.lanes, c, y as isize, x as isize) + n % map.lanes
}

fn spread(map: &Map, samples: usize, values: &[f32]) -> Aligned {
    let mut registers = Aligned::zeros(samples.div_ceil(map.lanes) * map.group());
    let [channels, height, width] = map.shape;
    for (number, value) in values.iter().enumerate() {
        let (n, rest) = (number / (channels * height * width), number % (channels * height * width));
        let at = [n, rest / (height * width), rest / width % height, rest % width];
        registers[place(map, at)] = *value;
    }
    registers
}

/// Rounding of f32 sums, in units of the largest sum of products' magnitudes: a result shares the rounding of its tile's other
/// ones. A direct sum is within 6e-8 times the square root of the number of its terms, and the transforms of the largest
/// tile multiply that by ten at most: 4e-6 for 45 terms. More terms make their largest sum larger by more than its error.
const TOLERANCE: f64 = 4e-6;

fn check(case: &Case, isa: Isa) {
    let Case { scheme, channels: [inputs, outputs], sides, pad, spare, samples } = *case;
    let (lanes, groups, kernel) = (isa.lanes(), samples.div_ceil(isa.lanes()), scheme.kernel());
    let [rows, columns] = case.output_sides();
    let from = Map { shape: [inputs, sides[0], sides[1]], border: pad + spare, lanes };
    let to = Map { shape: [outputs, rows, columns], border: spare, lanes };
    let mut stream = Stream::at(3, Purpose::Split, 0, 0);
    let x = normals(&mut stream, samples * inputs * sides[0] * sides[1]);
    let dy = normals(&mut stream, samples * outputs * rows * columns);
    let (w, bias) = (normals(&mut stream, outputs * inputs * kernel * kernel), normals(&mut stream, outputs));
    let (xs, dys) = (spread(&from, samples, &x), spread(&to, samples, &dy));

    // Of each result: the sum, and that of its products' magnitudes.
    let mut y = vec![(0f64, 0f64); groups * to.group()];
    let mut dx = vec![(0f64, 0f64); groups * from.group()];
    let mut dw = vec![(0f64, 0f64); w.len()];
    let add = |sum: &mut (f64, f64), a: f32, b: f32| {
        sum.0 += f64::from(a) * f64::from(b);
        sum.1 += (f64::from(a) * f64::from(b)).abs();
    };
    case.products(|output, weight, input| {
        let (output, input) = (place(&to, output), place(&from, input));
        add(&mut y[output], w[weight], xs[input]);
        add(&mut dx[input], w[weight], dys[output]);
        add(&mut dw[weight], xs[input], dys[output]);
    });
    let largest = |sums: &[(f64, f64)]| sums.iter().map(|(_, size)| *size).fold(1.0, f64::max);
    let near = |what: &str, found: f32, right: f64, size: f64| {
        let error = (f64::from(found) - right).abs();
        assert!(error <= TOLERANCE * size, "{what} {found} {right} {size}: {} {case:?}", isa.name());
    };
    let every = |map: &Map| {
        let [channels, height, width] = map.shape;
        (0..samples).flat_map(move |n| triples([channels, height, width]).map(move |(c, y, x)| [n, c, y, x]))
    };

    let mut c = Aligned::zeros(groups * to.group());
    c.fill(9.0);
    let mut scratch = Aligned::zeros(convolution::scratch(scheme, &from, &to, samples));
    scratch.fill(f32::NAN);
    Convolution {
        scheme,
        weights: &w,
        x: &xs,
        from,
        y: &mut c,
        to,
        pad,
        samples,
        start: Start::Bias(&bias),
        relu: true,
        scratch: &mut scratch,
    }
    .run(isa);
    let size = largest(&y);
    for at in every(&to) {
        let (found, sum) = (c[place(&to, at)], y[place(&to, at)].0);
        near("y", found, (sum + f64::from(bias[at[1]])).max(0.0), size);
        c[place(&to, at)] = 9.0;
    }
    let inside = samples % lanes == 0;
    assert!(!inside || c.iter().all(|number| *number == 9.0), "the border is as it was");

    for adds in [false, true] {
        let mut c = xs.clone();
        let mut scratch = Aligned::zeros(input_gradient::scratch(scheme, &to, &from, samples));
        scratch.fill(f32::NAN);
        InputGradient {
            scheme,
            weights: &w,
            dy: &dys,
            from: to,
            dx: &mut c,
            to: from,
            pad,
            samples,
            adds,
            scratch: &mut scratch,
        }
        .run(isa);
        let size = largest(&dx);
        for at in every(&from) {
            let at = place(&from, at);
            near("dx", c[at], dx[at].0 + if adds { f64::from(xs[at]) } else { 0.0 }, size);
            c[at] = 0.0;
        }
        assert!(c.iter().all(|number| *number == 0.0), "borders and lanes without a sample stay zero");
    }
    let mut gradient = vec![9.0; w.len()];
    let mut scratch = Aligned::zeros(gradient::scratch(scheme, &from, &to, samples));
    scratch.fill(f32::NAN);
    WeightGradient {
        scheme,
        x: &xs,
        from,
        dy: &dys,
        to,
        pad,
        samples,
        gradient: &mut gradient,
        scratch: &mut scratch,
    }
    .run(isa);
    let size = largest(&dw);
    for (found, right) in gradient.iter().zip(dw) {
        near("dw", *found, right.0, size);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn forward_and_backward_are_the_direct_sums(
        scheme in prop_oneof![Just(Scheme::Two3), Just(Scheme::Four3), Just(Scheme::Two5)],
        channels in [1usize..20, 1usize..15],
        sides in [1usize..12, 1usize..12],
        pad in 0usize..4,
        spare in 0usize..3,
        samples in 1usize..20,
    ) {
        let case = Case { scheme, channels, sides, pad, spare, samples };
        prop_assume!(case.fits());
        Isa::available().into_iter().for_each(|isa| check(&case, isa));
    }
}

#[test]
fn many_blocks_and_channels_are_the_direct_sums() {
    for scheme in [Scheme::Two3, Scheme::Four3, Scheme::Two5] {
        let case = Case { scheme, channels: [33, 40], sides: [18, 17], pad: 1, spare: 0, samples: 16 };
        Isa::available().into_iter().for_each(|isa| check(&case, isa));
    }
}

#[test]
fn the_error_over_64_channels_is_at_most_three_times_that_of_direct_sums() {
    // Measured for root mean squares: 0.75, 2.3 and 1.5 times.
    for (scheme, most) in [(Scheme::Two3, 1.2), (Scheme::Four3, 3.0), (Scheme::Two5, 2.2)] {
        for isa in Isa::available() {
            let (winograd, direct) = errors(scheme, isa);
            assert!(winograd < most * direct, "{scheme:?} {}: {winograd} {direct}", isa.name());
        }
    }
}

/// Root mean square of the errors of outputs over 64 channels, with Winograd's algorithm and in direct f32 sums.
fn errors(scheme: Scheme, isa: Isa) -> (f64, f64) {
    let samples = isa.lanes();
    let case = Case { scheme, channels: [64, 4], sides: [8, 8], pad: 0, spare: 0, samples };
    let [rows, columns] = case.output_sides();
    let from = Map { shape: [64, 8, 8], border: 0, lanes: samples };
    let to = Map { shape: [4, rows, columns], border: 0, lanes: samples };
    let mut stream = Stream::at(5, Purpose::Split, 0, 0);
    let w = normals(&mut stream, 4 * 64 * scheme.kernel().pow(2));
    let x: Vec<f32> = normals(&mut stream, samples * 64 * 64).into_iter().map(|x| x.max(0.0)).collect();
    let xs = spread(&from, samples, &x);
    let mut exact = vec![0f64; to.group()];
    let mut plain = vec![0f32; to.group()];
    case.products(|output, weight, input| {
        let (output, input) = (place(&to, output), place(&from, input));
        exact[output] += f64::from(w[weight]) * f64::from(xs[input]);
        plain[output] += w[weight] * xs[input];
    });
    let mut y = Aligned::zeros(to.group());
    let mut scratch = Aligned::zeros(convolution::scratch(scheme, &from, &to, samples));
    let (weights, start) = (&w[..], Start::Zero);
    let (pad, relu) = (0, false);
    Convolution {
        scheme,
        weights,
        x: &xs,
        from,
        y: &mut y,
        to,
        pad,
        samples,
        start,
        relu,
        scratch: &mut scratch,
    }
    .run(isa);
    let root = |found: &[f32]| {
        let squares = found.iter().zip(&exact).map(|(found, exact)| (f64::from(*found) - exact).powi(2));
        squares.sum::<f64>().sqrt()
    };
    (root(&y), root(&plain))
}
