//! Batch norms whose batch statistics are shifted by constants: against PyTorch, and against a pass without constants.
//! `golden/make_norm_shift.py` made the numbers and says by which formula.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "golden/formula.rs"]
mod formula;

use fedtvd_core::model::{Layout, Network, Params, Role, Shape};
use fedtvd_core::stream::Key;
use fedtvd_core::train::{NormShift, Pass, Sgd, TrainFailure, Trainer};
use fedtvd_nn::{Cpu, models};
use formula::{initial, samples, unit};
use serde::Deserialize;
use std::sync::Arc;

#[derive(Deserialize)]
struct Golden {
    floor: f32,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    lines: Vec<String>,
    shape: Shape,
    loss: f64,
    gradients: Vec<f64>,
    statistics: Vec<f64>,
    floored: usize,
    channels: usize,
}

fn pass(lr: f64, batch: usize) -> Pass<'static> {
    Pass::new(Sgd { lr, momentum: 0.0, nesterov: false, weight_decay: 0.0 }, batch, Key::of(1))
}

fn close(ours: f64, theirs: f64, tolerance: f64) -> bool {
    (ours - theirs).abs() <= tolerance * theirs.abs().max(1.0)
}

#[test]
fn loss_gradients_and_statistics_are_those_of_pytorch_at_the_floor_and_above() {
    let golden: Golden = serde_json::from_str(include_str!("golden/norm_shift.json")).unwrap();
    for case in golden.cases {
        assert!(0 < case.floored && case.floored < case.channels, "{}", case.name);
        let network = models::from_lines(&case.lines, case.shape, 3).unwrap();
        let layout = Arc::new(Layout::of(&network).unwrap());
        let mut start = Params::zeros(layout.clone());
        for (number, tensor) in layout.tensors().iter().enumerate().filter(|(_, t)| t.role.trainable()) {
            let values = &mut start.values[tensor.range()];
            (0..).zip(values).for_each(|(i, v)| *v = (2.0 * unit(1000 * number + i) - 1.0) as f32);
        }
        let buffers = layout.len() - layout.trainable();
        let shift: Vec<f32> = (0..buffers).map(|i| 1.5 * ((2.0 * unit(9000 + i) - 1.0) as f32)).collect();
        let norm = Some(NormShift { shift: &shift, floor: &vec![golden.floor; buffers] });
        let mut cpu = Cpu::new(&network, samples(case.shape, 3, 5, |row| row % 3)).unwrap();
        let rows = [0, 1, 2, 3, 4];
        let pass = Pass { norm, ..pass(1.0, 5) };
        let gradient = cpu.gradient(&start, &rows, &pass).unwrap();
        let report = cpu.pass(&mut start.clone(), &rows, &pass).unwrap();
        // f32 here: sums of up to a hundred products, and activations of about 10 where a variance is small.
        assert!(close(report.losses[0], case.loss, 1e-5), "{}: {}", case.name, report.losses[0]);
        assert_eq!(gradient.len(), case.gradients.len());
        for (i, (ours, theirs)) in gradient.iter().zip(&case.gradients).enumerate() {
            assert!(close(f64::from(*ours), *theirs, 5e-6), "{}: {i} is {ours}, not {theirs}", case.name);
        }
        for (ours, theirs) in report.statistics.unwrap().iter().zip(&case.statistics) {
            assert!(close(*ours, *theirs, 1e-5), "{}: statistic {ours}, not {theirs}", case.name);
        }
    }
}

fn norms() -> (Network, Params) {
    let lines = ["conv 6 2x2", "batchnorm", "relu", "conv 4 2x2 nobias", "batchnorm", "globalpool", "linear"];
    let network = models::from_lines(&lines.map(String::from), [2, 5, 4], 3).unwrap();
    let params = initial(&Arc::new(Layout::of(&network).unwrap()));
    (network, params)
}

#[test]
fn the_reported_statistics_are_the_mean_over_the_steps_of_what_each_batch_has() {
    let (network, start) = norms();
    let mut cpu = Cpu::new(&network, samples([2, 5, 4], 3, 7, |row| row % 3)).unwrap();
    let zeros = vec![0.0; start.values.len() - start.trainable().len()];
    let norm = Some(NormShift { shift: &zeros, floor: &zeros });
    let rows: Vec<u32> = (0..7).collect();
    // The model stays as it is, so that each batch alone has the same statistics. The last batch is short.
    let pass = Pass { norm, epochs: 2, ..pass(0.0, 3) };
    let mut mean = vec![0.0; zeros.len()];
    for epoch in 0..2 {
        for batch in pass.order(epoch, &rows).chunks(3) {
            let own = cpu.pass(&mut start.clone(), batch, &Pass { epochs: 1, ..pass }).unwrap();
            mean.iter_mut().zip(own.statistics.unwrap()).for_each(|(mean, own)| *mean += own / 6.0);
        }
    }
    let found = cpu.pass(&mut start.clone(), &rows, &pass).unwrap().statistics.unwrap();
    for (found, mean) in found.iter().zip(&mean) {
        // The rows of a batch lie in other lanes, so their f32 sums round otherwise.
        assert!((found - mean).abs() < 1e-6 * mean.abs().max(1.0), "{found} is not {mean}");
    }
    // The batch's running statistics follow the same means: one step leaves 0.9 of the old ones.
    let mut moved = start.clone();
    let one = cpu.pass(&mut moved, &rows[..3], &Pass { epochs: 1, ..pass }).unwrap().statistics.unwrap();
    let trainable = start.trainable().len();
    for tensor in start.layout.tensors().iter().filter(|tensor| tensor.role == Role::RunningMean) {
        for i in tensor.range() {
            let running = 0.9 * f64::from(start.values[i]) + 0.1 * one[i - trainable];
            assert!((f64::from(moved.values[i]) - running).abs() < 1e-7, "{running}");
        }
    }
}

#[test]
fn constants_have_no_effect_on_a_network_without_batch_norm_and_must_fit_the_buffers() {
    let lines = ["conv 4 2x2", "groupnorm 2", "relu", "flatten", "linear"].map(String::from);
    let network = models::from_lines(&lines, [2, 5, 4], 3).unwrap();
    let start = initial(&Arc::new(Layout::of(&network).unwrap()));
    let mut cpu = Cpu::new(&network, samples([2, 5, 4], 3, 7, |row| row % 3)).unwrap();
    let trained = |cpu: &mut Cpu, norm| {
        let mut params = start.clone();
        let report = cpu.pass(&mut params, &[0, 1, 2, 3, 4], &Pass { norm, ..pass(0.1, 2) });
        report.map(|report| (params, report.statistics))
    };
    let empty = NormShift { shift: &[], floor: &[] };
    let (plainly, none) = trained(&mut cpu, None).unwrap();
    assert_eq!(trained(&mut cpu, Some(empty)), Ok((plainly, Some(Vec::new()))));
    assert_eq!(none, None);
    let one = NormShift { shift: &[1.0], floor: &[] };
    let message = "1 constants of batch statistics were given where the network has 0".to_owned();
    assert_eq!(trained(&mut cpu, Some(one)), Err(TrainFailure::Device(message)));
}
