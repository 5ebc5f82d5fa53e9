//! Gradients against finite differences: along a random direction within one tensor, the loss must change
//! as the gradient says.

use fedtvd_core::layout::{Layout, Role};
use fedtvd_core::network::{Network, Shape};
use fedtvd_core::params::Params;
use fedtvd_core::pass::{Pass, Sgd};
use fedtvd_core::samples::{Samples, Values};
use fedtvd_core::stream::{Key, Purpose, Stream};
use fedtvd_core::trainer::Trainer;
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
    Pass {
        epochs: 1,
        first_epoch: 0,
        batch: 1000,
        key: Key::of(1),
        keep_velocity: false,
        sgd: Sgd { lr: 1.0, momentum: 0.0, nesterov: false, weight_decay: 0.0 },
        pull: None,
        push: None,
        logits: None,
    }
}

fn check(network: &Network, rows: usize) {
    let samples = samples(network.input, network.classes, rows);
    let mut cpu = Cpu::new(network, samples).unwrap();
    let layout = Arc::new(Layout::of(network).unwrap());
    let start = Params::initial(layout.clone(), 5);
    let rows: Vec<u32> = (0..rows as u32).collect();
    let mut moved = start.clone();
    cpu.pass(&mut moved, &rows, &one_step()).unwrap();
    let mut loss = |params: &Params| {
        let report = cpu.pass(&mut params.clone(), &rows, &one_step()).unwrap();
        report.losses[0]
    };
    let mut stream = Stream::at(9, Purpose::Split, 0, 0);
    for tensor in layout.tensors().iter().filter(|tensor| tensor.role.trainable()) {
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
        let reach = if tensor.role == Role::Bias { 2e-3 } else { 5e-3 };
        let measured = (along(reach) - along(-reach)) / (2.0 * reach);
        // The loss is f32 inside: its noise of about 1e-7 over 1e-2, and kinks of ReLU and pooling.
        assert!(
            (slope - measured).abs() < 1e-3 + 0.02 * measured.abs(),
            "{}: {slope} {measured}",
            tensor.name
        );
    }
}

#[test]
fn every_named_models_gradient_is_the_slope_of_its_loss() {
    for model in models::ALL {
        let network = models::named(model.name, model.input, model.classes).unwrap();
        check(&network, 11);
    }
}
