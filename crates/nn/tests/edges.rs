//! Invalid requests are refused with a message, and the same training gives the same bits on any thread.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use fedtvd_core::model::{Layout, Params};
use fedtvd_core::stream::{Key, Purpose, Stream};
use fedtvd_core::train::{Augment, Pass, Samples, Sgd, TrainFailure, Trainer, Values};
use fedtvd_nn::{Cpu, models};
use std::sync::Arc;

#[test]
fn the_network_in_the_documentation_can_be_read() {
    let page = include_str!("../../../docs/models.md");
    let list = page.split_once("layers = [\n").unwrap().1.split_once("\n]").unwrap().0;
    let lines: Vec<String> =
        list.lines().map(|line| line.trim().trim_end_matches(',').trim_matches('"').to_owned()).collect();
    let network = models::from_lines(&lines, [1, 28, 28], 10).unwrap();
    assert_eq!((lines.len(), network.layers.len()), (17, 8));
}

fn samples() -> Samples {
    let mut stream = Stream::at(3, Purpose::Split, 0, 0);
    let values = (0..20 * 784).map(|_| stream.normal() as f32).collect();
    Samples::new([1, 28, 28], 10, Values::Floats(values), (0..20).map(|row| row % 10).collect(), 20).unwrap()
}

fn pass(lr: f64, batch: usize) -> Pass<'static> {
    Pass {
        epochs: 2,
        ..Pass::new(Sgd { lr, momentum: 0.9, nesterov: false, weight_decay: 0.0 }, batch, Key::of(1))
    }
}

fn lenet() -> (Cpu, Params) {
    let network = models::named("lenet", [1, 28, 28], 10).unwrap();
    let params = Params::initial(Arc::new(Layout::of(&network).unwrap()), 1);
    (Cpu::new(&network, Arc::new(samples())).unwrap(), params)
}

#[test]
fn a_network_must_fit_the_data_set() {
    let error = |input, classes| {
        let network = models::named("logistic", input, classes).unwrap();
        Cpu::new(&network, Arc::new(samples())).err().unwrap().to_string()
    };
    assert_eq!(error([1, 28, 27], 10), "the network takes 1x28x27, but the data set's samples are 1x28x28");
    assert_eq!(error([1, 28, 28], 9), "the network gives 9 classes, but the data set has 10");
}

#[test]
fn rows_batches_and_vectors_are_checked_before_anything_moves() {
    let (mut cpu, mut params) = lenet();
    let before = params.clone();
    assert_eq!(cpu.pass(&mut params, &[], &pass(0.1, 4)), Err(TrainFailure::NoSamples));
    assert_eq!(cpu.pass(&mut params, &[0], &pass(0.1, 0)), Err(TrainFailure::EmptyBatch));
    assert_eq!(
        cpu.pass(&mut params, &[0, 20], &pass(0.1, 4)),
        Err(TrainFailure::NoSuchRow { row: 20, rows: 20 })
    );
    let short = [0.0; 9];
    let wrong = Pass { offsets: Some(&short), ..pass(0.1, 4) };
    let error = cpu.pass(&mut params, &[0], &wrong).unwrap_err().to_string();
    assert_eq!(
        error,
        "the training device failed: 9 offsets to the logits were given where the network has 10"
    );
    let wrong = Pass { push: Some(&short), ..pass(0.1, 4) };
    assert!(cpu.pass(&mut params, &[0], &wrong).unwrap_err().to_string().contains("9 numbers to push"));
    assert_eq!(params, before);
}

#[test]
fn a_loss_that_is_not_finite_ends_the_pass() {
    let (mut cpu, mut params) = lenet();
    params.values[0] = f32::NAN;
    let failure = cpu.pass(&mut params, &[0, 1, 2], &pass(0.1, 2));
    assert!(matches!(failure, Err(TrainFailure::Diverged { epoch: 0, .. })), "{failure:?}");
    let (mut cpu, mut params) = lenet();
    let rows: Vec<u32> = (0..20).collect();
    let failure = cpu.pass(&mut params, &rows, &Pass { epochs: 50, ..pass(1e6, 4) });
    assert!(matches!(failure, Err(TrainFailure::Diverged { .. })), "{failure:?}");
}

#[test]
fn training_gives_the_same_bits_on_any_thread_after_any_history() {
    let network = models::from_lines(
        &["conv 5 3x3 pad 1", "batchnorm", "relu", "maxpool 2", "dropout 0.3", "flatten", "linear"]
            .map(String::from),
        [1, 28, 28],
        10,
    )
    .unwrap();
    let samples = Arc::new(samples().augmented(Augment { crop: 2, flip: true }));
    let start = Params::initial(Arc::new(Layout::of(&network).unwrap()), 1);
    let train = |history: bool| {
        let mut cpu = Cpu::new(&network, samples.clone()).unwrap();
        if history {
            cpu.pass(&mut start.clone(), &[3, 4, 5], &pass(0.5, 2)).unwrap();
            cpu.evaluate(&start, &[1, 2, 3, 4, 5, 6, 7, 8, 9], None).unwrap();
        }
        let mut params = start.clone();
        cpu.pass(&mut params, &(0..20).collect::<Vec<u32>>(), &pass(0.05, 7)).unwrap();
        params.values.iter().map(|w| w.to_bits()).collect::<Vec<_>>()
    };
    let here = train(false);
    assert_eq!(train(true), here);
    let there = std::thread::scope(|scope| {
        let threads = [scope.spawn(|| train(false)), scope.spawn(|| train(true))];
        threads.map(|thread| thread.join().unwrap())
    });
    assert_eq!(there, [here.clone(), here]);
}
