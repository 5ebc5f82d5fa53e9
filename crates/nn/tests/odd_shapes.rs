//! Any shape: a plain reference in f64 gives the same loss, and samples in a batch do not affect each other.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use fedtvd_core::model::{Layer, Layout, Network, Params, Shape};
use fedtvd_core::stream::{Key, Purpose, Stream};
use fedtvd_core::train::{Pass, Samples, Sgd, Trainer, Values};
use fedtvd_nn::Cpu;
use proptest::prelude::*;
use std::sync::Arc;

const CLASSES: usize = 3;

fn samples(shape: Shape, rows: usize) -> Samples {
    let mut stream = Stream::at(3, Purpose::Split, 0, 0);
    let values = (0..rows * shape.iter().product::<usize>()).map(|_| stream.normal() as f32).collect();
    let labels = (0..rows).map(|row| (row % CLASSES) as u32).collect();
    Samples::new(shape, CLASSES, Values::Floats(values), labels, rows).unwrap()
}

/// The loss of one row, layer by layer as the formulas say.
fn reference(network: &Network, params: &Params, samples: &Samples, row: u32) -> f64 {
    let mut shape = network.input;
    let mut pixels = vec![0f32; shape.iter().product()];
    samples.read(row, &mut pixels);
    let mut x: Vec<f64> = pixels.into_iter().map(f64::from).collect();
    for layer in &network.layers {
        let out = layer.output(shape, "").unwrap();
        let tensor = |name: &str, part: &str| params.tensor(&format!("{name}.{part}"));
        let mut y = Vec::new();
        for o in 0..out[0] {
            for i in 0..out[1] {
                for j in 0..out[2] {
                    let at = |c: usize, m: isize, n: isize| {
                        let inside =
                            (0..shape[1] as isize).contains(&m) && (0..shape[2] as isize).contains(&n);
                        inside.then(|| x[(c * shape[1] + m as usize) * shape[2] + n as usize])
                    };
                    y.push(match layer {
                        Layer::Conv { name, kernel: [high, wide], stride, pad, .. } => {
                            let weight = tensor(name, "weight").unwrap();
                            let mut sum = tensor(name, "bias").map_or(0.0, |bias| f64::from(bias[o]));
                            for (c, (u, v)) in (0..shape[0]).flat_map(|c| {
                                (0..*high).flat_map(move |u| (0..*wide).map(move |v| (c, (u, v))))
                            }) {
                                let m = (i * stride + u) as isize - *pad as isize;
                                let n = (j * stride + v) as isize - *pad as isize;
                                let w = weight[((o * shape[0] + c) * high + u) * wide + v];
                                sum += f64::from(w) * at(c, m, n).unwrap_or(0.0);
                            }
                            sum
                        }
                        Layer::MaxPool { size, stride } => (0..size * size)
                            .filter_map(|k| {
                                at(o, (i * stride + k / size) as isize, (j * stride + k % size) as isize)
                            })
                            .fold(f64::NEG_INFINITY, f64::max),
                        Layer::Relu => at(o, i as isize, j as isize).unwrap().max(0.0),
                        Layer::Flatten => x[o],
                        Layer::Linear { name, .. } => {
                            let weight = &tensor(name, "weight").unwrap()[o * shape[0]..][..shape[0]];
                            let product: f64 = weight.iter().zip(&x).map(|(w, x)| f64::from(*w) * x).sum();
                            product + f64::from(tensor(name, "bias").unwrap()[o])
                        }
                        other => panic!("no reference for {}", other.word()),
                    });
                }
            }
        }
        (x, shape) = (y, out);
    }
    let label = samples.labels()[row as usize] as usize;
    x.iter().map(|z| z.exp()).sum::<f64>().ln() - x[label]
}

fn one_step(batch: usize) -> Pass<'static> {
    Pass::new(Sgd { lr: 1.0, momentum: 0.0, nesterov: false, weight_decay: 0.0 }, batch, Key::of(1))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_convolution_and_pooling_is_the_plain_one(
        input in [1usize..6, 1usize..9, 1usize..9],
        outs in [1usize..20, 1usize..20],
        kernel in [1usize..5, 1usize..5],
        stride in 1usize..5,
        pad in 0usize..4,
        pool in [1usize..4, 1usize..4],
        rows in 1usize..19,
    ) {
        let conv = |name: &str, out, kernel, stride, pad| Layer::Conv { name: name.into(), out, kernel, stride, pad, bias: out % 2 == 0 };
        let network = Network { input, classes: CLASSES, layers: vec![
            conv("conv1", outs[0], kernel, stride, pad),
            Layer::Relu,
            conv("conv2", outs[1], [kernel[1], kernel[0]], stride, pad),
            Layer::MaxPool { size: pool[0], stride: pool[1] },
            Layer::Flatten,
            Layer::Linear { name: "fc".into(), out: CLASSES },
        ]};
        prop_assume!(network.check().is_ok());
        let samples = Arc::new(samples(input, rows));
        let start = Params::initial(Arc::new(Layout::of(&network).unwrap()), 7);
        let mut cpu = Cpu::new(&network, samples.clone()).unwrap();
        let all: Vec<u32> = (0..rows as u32).collect();
        let expected: f64 = all.iter().map(|&row| reference(&network, &start, &samples, row)).sum();
        let found = cpu.evaluate(&start, &all, None).unwrap().loss;
        // f32 against f64 over sums of at most some hundred terms.
        prop_assert!((found - expected).abs() < 1e-4 * expected.abs().max(1.0), "{} {}", found, expected);

        // The gradient of a batch is the mean of its samples' gradients.
        let step = |cpu: &mut Cpu, rows: &[u32]| {
            let mut params = start.clone();
            cpu.pass(&mut params, rows, &one_step(rows.len())).unwrap();
            start.values.iter().zip(&params.values).map(|(a, b)| f64::from(a - b)).collect::<Vec<_>>()
        };
        let together = step(&mut cpu, &all);
        let mut mean = vec![0.0; together.len()];
        for row in all {
            for (mean, alone) in mean.iter_mut().zip(step(&mut cpu, &[row])) {
                *mean += alone / rows as f64;
            }
        }
        for (a, b) in together.iter().zip(&mean) {
            prop_assert!((a - b).abs() < 1e-5 * (1.0 + b.abs()), "{} {}", a, b);
        }
    }
}
