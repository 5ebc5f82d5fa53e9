//! Against PyTorch: every layer forward and backward, 20 training steps of every model, the loss, batch norm.
//! `golden/make_layers.py` and `golden/make_training.py` made the numbers and say by which formula.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "golden/formula.rs"]
mod formula;

use fedtvd_core::model::{Layout, Params, Role, Shape};
use fedtvd_core::stream::Key;
use fedtvd_core::train::{Pass, Sgd, Trainer};
use fedtvd_nn::{Cpu, models};
use formula::{initial, samples, unit};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;

fn pass(lr: f64, momentum: f64) -> Pass<'static> {
    Pass {
        keep_state: true,
        ..Pass::new(Sgd { lr, momentum, nesterov: false, weight_decay: 0.0 }, 1000, Key::of(1))
    }
}

fn close(ours: f64, theirs: f64, tolerance: f64) -> bool {
    (ours - theirs).abs() <= tolerance * theirs.abs().max(1.0)
}

#[derive(Deserialize)]
struct Layers {
    cases: Vec<LayerCase>,
}

#[derive(Deserialize)]
struct LayerCase {
    name: String,
    lines: Vec<String>,
    shape: Shape,
    loss: f64,
    gradients: Vec<f64>,
    buffers: Vec<f64>,
}

#[test]
fn every_layer_goes_forward_and_backward_as_in_pytorch() {
    let golden: Layers = serde_json::from_str(include_str!("golden/layers.json")).unwrap();
    for case in golden.cases {
        let network = models::from_lines(&case.lines, case.shape, 3).unwrap();
        let layout = Arc::new(Layout::of(&network).unwrap());
        let mut start = Params::zeros(layout.clone());
        for (number, tensor) in layout.tensors().iter().enumerate() {
            let values = &mut start.values[tensor.range()];
            match tensor.role {
                Role::RunningMean => {}
                Role::RunningVariance => values.fill(1.0),
                _ => (0..).zip(values).for_each(|(i, v)| *v = (2.0 * unit(1000 * number + i) - 1.0) as f32),
            }
        }
        let mut cpu = Cpu::new(&network, samples(case.shape, 3, 5, |row| row % 3)).unwrap();
        let mut moved = start.clone();
        let report = cpu.pass(&mut moved, &[0, 1, 2, 3, 4], &pass(1.0, 0.0)).unwrap();
        // f32 on both sides; a gradient is the difference of two parameters of about 1.
        assert!(
            close(report.losses[0], case.loss, 1e-5),
            "{}: {} {}",
            case.name,
            report.losses[0],
            case.loss
        );
        assert_eq!(case.gradients.len(), layout.trainable(), "{}", case.name);
        for (i, theirs) in case.gradients.iter().enumerate() {
            let ours = f64::from(start.values[i] - moved.values[i]);
            assert!(close(ours, *theirs, 2e-6), "{}: gradient {i} is {ours}, not {theirs}", case.name);
        }
        for (ours, theirs) in moved.values[layout.trainable()..].iter().zip(&case.buffers) {
            assert!(close(f64::from(*ours), *theirs, 1e-6), "{}: buffer {ours} {theirs}", case.name);
        }
    }
}

#[derive(Deserialize)]
struct Training {
    runs: Vec<Run>,
}

#[derive(Deserialize)]
struct Run {
    model: String,
    losses: Vec<f64>,
    /// Largest relative difference of a loss between PyTorch with one and with two threads.
    threads: f64,
    /// And when some of the initial weights change in their last bit, for nets without batch norm.
    nudged: Option<f64>,
    checks: BTreeMap<String, f64>,
}

/// How far a loss may be from PyTorch's: 1e-4, for ResNets ten times PyTorch's difference between threads.
///
/// Two threads share almost all of their rounding, so where a value next to a kink decides what follows, they may
/// agree on it by chance. If the last bits of the initial weights move PyTorch's own losses by more than 1e-4, no
/// other order of summation can be held to less; twice that is allowed then.
fn tolerance(run: &Run) -> f64 {
    let threads = if run.model.starts_with("resnet") { 10.0 * run.threads } else { 0.0 };
    let nudged = run.nudged.filter(|nudged| *nudged > 1e-4).map_or(0.0, |nudged| 2.0 * nudged);
    threads.max(nudged).max(1e-4)
}

fn follows(run: &Run) {
    let model = models::ALL.iter().find(|model| model.name == run.model).unwrap();
    let mut network = models::named(model.name, model.input, model.classes).unwrap();
    network.layers.retain(|layer| layer.word() != "dropout");
    let mut params = initial(&Arc::new(Layout::of(&network).unwrap()));
    let data = samples(model.input, model.classes, 64, |n| (7 * n + n / 3) % model.classes);
    let mut cpu = Cpu::new(&network, data).unwrap();
    let batch = if model.name.starts_with("resnet18") || model.name.starts_with("resnet34") { 4 } else { 8 };
    let tolerance = tolerance(run);
    for (step, theirs) in run.losses.iter().enumerate() {
        let first = (step * batch % 64) as u32;
        let rows: Vec<u32> = (first..first + batch as u32).collect();
        let ours = cpu.pass(&mut params, &rows, &pass(0.01, 0.9)).unwrap().losses[0];
        let error = (ours - theirs).abs() / theirs.abs();
        // Before the first step nothing is amplified.
        let tolerance = if step == 0 { 1e-4 } else { tolerance };
        assert!(error < tolerance, "{} step {step}: {ours} {theirs}, {error} beyond {tolerance}", run.model);
    }
    for (name, theirs) in &run.checks {
        let ours: f64 = params.tensor(name).unwrap().iter().map(|w| f64::from(w.abs())).sum();
        assert!(close(ours, *theirs, tolerance), "{} {name}: {ours} {theirs}", run.model);
    }
}

fn runs() -> Vec<Run> {
    serde_json::from_str::<Training>(include_str!("golden/training.json")).unwrap().runs
}

#[test]
fn twenty_steps_of_every_thin_model_follow_pytorch() {
    let wide = |run: &Run| run.model.starts_with("resnet18") || run.model.starts_with("resnet34");
    let (wide, thin): (Vec<Run>, Vec<Run>) = runs().into_iter().partition(wide);
    assert_eq!(wide.len() + thin.len(), models::ALL.len());
    thin.iter().for_each(follows);
}

#[test]
#[ignore = "trains for a minute or more; cargo test --workspace -- --ignored runs it"]
fn twenty_steps_of_resnet18_follow_pytorch() {
    runs().iter().filter(|run| run.model.starts_with("resnet18")).for_each(follows);
}

#[test]
#[ignore = "trains for a minute or more; cargo test --workspace -- --ignored runs it"]
fn twenty_steps_of_resnet34_follow_pytorch() {
    runs().iter().filter(|run| run.model.starts_with("resnet34")).for_each(follows);
}
