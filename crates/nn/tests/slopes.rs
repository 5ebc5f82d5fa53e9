//! Gradients against finite differences: along a random direction within one tensor, the loss must change
//! as the gradient says.

#![expect(clippy::unwrap_used, reason = "a test may panic")]
use fedtvd_core::model::{Layout, Network, Params, Shape, Tensor};
use fedtvd_core::stream::{Key, Purpose, Stream};
use fedtvd_core::train::{Frozen, Pass, Samples, Sgd, Trainer, Values};
use fedtvd_nn::{Cpu, models};
use std::sync::Arc;

fn samples(shape: Shape, classes: usize, rows: usize) -> Arc<Samples> {
    let mut stream = Stream::at(3, Purpose::Split, 0, 0);
    let values = (0..rows * shape.iter().product::<usize>()).map(|_| stream.normal() as f32).collect();
    let labels = (0..rows).map(|row| (row % classes) as u32).collect();
    Arc::new(Samples::new(shape, classes, Values::Floats(values), labels, rows).unwrap())
}

/// One step of plain SGD with a learning rate of 1 leaves w - gradient.
fn one_step() -> Pass<'static> {
    Pass::new(Sgd { lr: 1.0, momentum: 0.0, nesterov: false, weight_decay: 0.0 }, 1000, Key::of(1))
}

fn check(network: &Network, rows: usize, tolerance: f64) {
    check_on(network, samples(network.input, network.classes, rows), None, tolerance);
}

fn check_on(network: &Network, samples: Arc<Samples>, frozen: Option<&Frozen>, tolerance: f64) {
    let rows = samples.rows();
    let mut cpu = Cpu::new(network, samples).unwrap();
    let layout = Arc::new(Layout::of(network).unwrap());
    let start = Params::initial(layout.clone(), 5);
    let rows: Vec<u32> = (0..rows as u32).collect();
    let mut moved = start.clone();
    let pass = Pass { frozen, ..one_step() };
    cpu.pass(&mut moved, &rows, &pass).unwrap();
    let mut loss = |params: &Params| {
        let report = cpu.pass(&mut params.clone(), &rows, &pass).unwrap();
        report.losses[0]
    };
    let mut stream = Stream::at(9, Purpose::Split, 0, 0);
    let moves = |tensor: &&Tensor| frozen.is_none_or(|frozen| !frozen.covers(&tensor.range()));
    for tensor in layout.tensors().iter().filter(|tensor| tensor.role.trainable()).filter(moves) {
        let direction: Vec<f64> = tensor.range().map(|_| stream.normal()).collect();
        let length = direction.iter().map(|x| x * x).sum::<f64>().sqrt();
        let slope: f64 = tensor
            .range()
            .zip(&direction)
            .map(|(i, d)| f64::from(start.values[i] - moved.values[i]) * d / length)
            .sum();
        let mut along = |distance: f64| {
            let mut params = start.clone();
            for (i, d) in tensor.range().zip(&direction) {
                params.values[i] += (d / length * distance) as f32;
            }
            loss(&params)
        };
        // A step over a kink spoils one distance, rounding another; a wrong gradient fails at all of them.
        let errors = [5e-3, 1e-3, 2e-4].map(|reach| {
            let measured = (along(reach) - along(-reach)) / (2.0 * reach);
            (slope - measured).abs() / (1.0 + measured.abs())
        });
        let best = errors.into_iter().fold(f64::INFINITY, f64::min);
        assert!(best < tolerance, "{}: slope {slope}, errors {errors:?} in {network:?}", tensor.name);
    }
}

fn check_lines(lines: &[&str], input: Shape, tolerance: f64) {
    let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
    let network = models::from_lines(&lines, input, 3).unwrap();
    for rows in [1, 2, 11] {
        check(&network, rows, tolerance);
    }
}

// Without kinks only rounding is left: noise of about 1e-7 in the loss over a distance of 1e-2.
const SMOOTH: f64 = 2e-4;
// The shortest distance crosses the fewest kinks of a ReLU or a maximum, with noise of 1e-7 over 4e-4.
const KINKS: f64 = 2e-3;

#[test]
fn convolutions_of_every_stride_and_padding() {
    for conv in [
        "conv 5 3x3",
        "conv 5 3x2 pad 2",
        "conv 7 2x3 stride 2",
        "conv 3 1x1 stride 3 pad 1",
        "conv 4 3x3 stride 2 pad 1 nobias",
    ] {
        check_lines(&["conv 2 2x2 pad 1", conv, "flatten", "linear"], [3, 7, 6], SMOOTH);
    }
}

#[test]
fn linear_layers() {
    check_lines(&["flatten", "linear 9", "linear 17", "linear"], [2, 3, 3], SMOOTH);
    check_lines(&["flatten", "linear"], [1, 1, 1], SMOOTH);
}

#[test]
fn average_and_global_pooling() {
    check_lines(&["conv 3 2x2", "avgpool 2", "flatten", "linear"], [2, 6, 7], SMOOTH);
    check_lines(&["conv 3 2x2", "avgpool 3 stride 1", "globalpool", "linear"], [2, 6, 5], SMOOTH);
    check_lines(&["conv 3 2x2", "avgpool 1 stride 3", "globalpool", "linear"], [2, 6, 5], SMOOTH);
}

#[test]
fn max_pooling_and_relu() {
    check_lines(&["conv 3 2x2", "relu", "maxpool 2", "flatten", "linear"], [2, 6, 7], KINKS);
    check_lines(&["conv 3 2x2", "maxpool 3 stride 2", "flatten", "linear", "relu"], [2, 6, 7], KINKS);
    check_lines(&["conv 3 2x2", "relu", "maxpool 3 stride 1", "flatten", "linear"], [2, 6, 5], KINKS);
    check_lines(&["conv 3 2x2", "relu", "avgpool 2", "relu", "flatten", "linear"], [2, 6, 5], KINKS);
}

#[test]
fn norms() {
    check_lines(&["conv 4 2x2", "batchnorm", "avgpool 2", "flatten", "linear"], [2, 6, 7], SMOOTH);
    check_lines(&["batchnorm", "conv 4 2x2", "groupnorm 2", "flatten", "linear"], [2, 6, 7], SMOOTH);
    check_lines(&["conv 4 2x2 nobias", "groupnorm 4", "relu", "flatten", "linear"], [2, 4, 4], KINKS);
    check_lines(
        &["conv 4 2x2 nobias", "batchnorm", "relu", "maxpool 2", "flatten", "linear"],
        [2, 4, 4],
        KINKS,
    );
}

/// The first layers, all buffers, or all tensors of one layer at a time are frozen.
#[test]
fn tensors_that_move_beside_frozen_ones() {
    let lines = [
        "conv 4 3x3 pad 1 nobias",
        "batchnorm",
        "residual {",
        "conv 6 3x3 stride 2 pad 1 nobias",
        "batchnorm",
        "} shortcut {",
        "conv 6 1x1 stride 2",
        "batchnorm",
        "}",
        "groupnorm 2",
        "flatten",
        "linear",
    ];
    let network = models::from_lines(&lines.map(str::to_owned), [2, 6, 5], 3).unwrap();
    let layout = Layout::of(&network).unwrap();
    let layers = layout.tensors().iter().map(|tensor| tensor.layer).max().unwrap();
    let buffers = Frozen::of(&layout, |tensor| !tensor.role.trainable());
    let below = (1..=layers).map(|first| Frozen::of(&layout, |tensor| tensor.layer < first));
    let single = (0..=layers).map(|layer| Frozen::of(&layout, |tensor| tensor.layer == layer));
    for frozen in below.chain(single).chain([buffers]) {
        check_on(&network, samples(network.input, 3, 5), Some(&frozen), SMOOTH);
    }
}

#[test]
fn residual_blocks() {
    let norm = |norm: &str, relu: &str, tolerance: f64| {
        check_lines(
            &[
                "conv 4 3x3 pad 1",
                "residual {",
                "conv 4 3x3 pad 1",
                norm,
                "}",
                relu,
                "residual {",
                "conv 6 3x3 stride 2 pad 1",
                norm,
                "} shortcut {",
                "conv 6 1x1 stride 2",
                norm,
                "}",
                relu,
                "globalpool",
                "linear",
            ],
            [2, 6, 5],
            tolerance,
        );
    };
    norm("batchnorm", "", SMOOTH);
    norm("groupnorm 2", "", SMOOTH);
    norm("batchnorm", "relu", KINKS);
    norm("groupnorm 2", "relu", KINKS);
    norm("", "relu", KINKS);
    norm("", "", SMOOTH);
    // A norm that adds its own input, a block that adds nothing new, and one map read in three ways.
    check_lines(&["conv 4 3x3", "residual {", "batchnorm", "}", "globalpool", "linear"], [2, 6, 5], SMOOTH);
    check_lines(&["conv 4 3x3", "residual {", "}", "globalpool", "linear"], [2, 6, 5], SMOOTH);
    check_lines(
        &["conv 4 3x3", "residual {", "residual {", "conv 4 3x3 pad 1", "}", "}", "flatten", "linear"],
        [2, 6, 5],
        SMOOTH,
    );
}

#[test]
fn a_map_that_two_layers_read_gets_both_their_gradients() {
    for layer in [
        "relu",
        "maxpool 2",
        "maxpool 2 stride 1",
        "avgpool 2",
        "flatten",
        "globalpool",
        "batchnorm",
        "groupnorm 2",
        "conv 4 3x3",
    ] {
        let ends = if ["flatten", "globalpool"].contains(&layer) { "" } else { "flatten" };
        check_lines(
            &["conv 4 2x2", "residual {", layer, "} shortcut {", layer, "}", ends, "linear"],
            [2, 6, 5],
            KINKS,
        );
    }
    check_lines(
        &["flatten", "linear 9", "residual {", "linear 5", "} shortcut {", "linear 5", "}", "linear"],
        [2, 3, 3],
        SMOOTH,
    );
}

#[test]
fn equal_values_in_a_window_pass_the_gradient_once() {
    // A constant image through a convolution without padding: all values of a channel are equal.
    let values = Values::Floats(vec![1.0; 4 * 2 * 5 * 5]);
    let data = Arc::new(Samples::new([2, 5, 5], 3, values, vec![0, 1, 2, 0], 4).unwrap());
    let lines = ["conv 3 2x2", "maxpool 2", "flatten", "linear"].map(String::from);
    check_on(&models::from_lines(&lines, [2, 5, 5], 3).unwrap(), data, None, SMOOTH);
}
