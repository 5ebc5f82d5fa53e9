//! Strategies that carry batch statistics, on networks with batch norms.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use fedtvd_core::model::Role;
use fedtvd_core::round::State;
use fedtvd_core::stream::{Purpose, Stream};
use fedtvd_core::train::{Samples, Values};
use fedtvd_data::set::Loaded;
use fedtvd_run::configuration::{Config, Experiment};
use fedtvd_run::rounds::Rounds;
use fedtvd_run::setup::{Data, Setup};
use fedtvd_run::simulation::{Resources, Workers, simulation};
use std::sync::Arc;

/// 600 noisy 6x6 images of 4 classes: each class has its own bright row.
fn data() -> Data {
    let mut stream = Stream::at(5, Purpose::Split, 0, 0);
    let labels: Vec<u32> = (0..600).map(|i| i % 4).collect();
    let mut value = |label: u32, place: u32| f64::from(u8::from(place / 6 == label)) + 0.5 * stream.normal();
    let values = labels.iter().flat_map(|&l| (0..36).map(move |p| (l, p))).map(|(l, p)| value(l, p) as f32);
    let samples = Samples::new([1, 6, 6], 4, Values::Floats(values.collect()), labels, 500).unwrap();
    Data::from(Loaded {
        samples: Arc::new(samples),
        groups: None,
        class_names: Vec::new(),
        normal: Vec::new(),
        notes: Vec::new(),
        table: None,
    })
}

fn started(strategy: &str, workers: usize) -> (Rounds, Arc<Setup>) {
    let mut config = Config::default().with_strategy(strategy);
    let layers =
        r#"model.layers=["conv 4 3x3", "batchnorm", "relu", "flatten", "linear 8", "batchnorm", "linear"]"#;
    for setting in ["clients=12", "fraction=0.5", "alpha=0.5", layers, "batch=8", "epochs=2"] {
        config.set(setting).unwrap();
    }
    let experiment = Experiment::of(&config).unwrap();
    let setup = Arc::new(Setup::new(&experiment, &data()).unwrap());
    let trainers = Workers::on_cpu(&setup, workers).unwrap().trainers;
    let memory = Resources::workers(workers).update_memory;
    (simulation(&experiment, &setup, trainers, memory).unwrap(), setup)
}

/// The trainable values after a number of rounds.
fn trained(strategy: &str, rounds: usize) -> Vec<f32> {
    let (mut run, _) = started(strategy, 2);
    (0..rounds).for_each(|_| drop(run.round().unwrap()));
    run.state().params.trainable().to_vec()
}

#[test]
fn the_buffers_are_the_carried_statistics_after_every_round_and_no_variance_is_negative() {
    for strategy in ["bn-scaffold", "bn-scaffold+fedtvd+balanced"] {
        let (mut run, setup) = started(strategy, 2);
        for _ in 0..5 {
            let record = run.round().unwrap();
            assert!(record.clients.iter().all(|client| client.failure.is_none()), "{strategy}");
            let State { params, carried, .. } = run.state();
            assert_eq!(&params.values[setup.layout.trainable()..], carried.f32("statistics").unwrap());
            for tensor in setup.layout.tensors().iter().filter(|t| t.role == Role::RunningVariance) {
                assert!(params.values[tensor.range()].iter().all(|variance| *variance >= 0.0), "{strategy}");
            }
        }
    }
}

#[test]
fn the_first_round_trains_as_scaffold_and_later_ones_correct_batch_statistics() {
    assert_eq!(trained("bn-scaffold", 1), trained("scaffold", 1));
    // In round 5 of 12 clients, half of them at a time, some take part again.
    assert_ne!(trained("bn-scaffold", 5), trained("scaffold", 5));
}

#[test]
fn any_number_of_workers_and_a_reloaded_state_give_the_same_bits() {
    let (mut whole, setup) = started("bn-scaffold", 1);
    (0..5).for_each(|_| drop(whole.round().unwrap()));
    let (mut first, _) = started("bn-scaffold", 3);
    (0..3).for_each(|_| drop(first.round().unwrap()));
    let (state, memories) = first.checkpoint().unwrap();
    let (saved, memories) = (state.to_bytes(), memories.clone());
    let (mut second, _) = started("bn-scaffold", 2);
    second.restore(State::from_bytes(&saved, &setup.layout).unwrap(), memories);
    (0..2).for_each(|_| drop(second.round().unwrap()));
    assert_eq!(second.state().to_bytes(), whole.state().to_bytes());
}

#[test]
fn a_network_with_batch_norms_learns() {
    for strategy in ["bn-scaffold", "scaffold:option=1"] {
        let (mut run, _) = started(strategy, 2);
        let accuracies: Vec<f64> = (0..25).map(|_| run.round().unwrap().accuracy.unwrap()).collect();
        // Chance is 0.25; the classes are bright rows under noise of half their height.
        assert!(accuracies[24] > 0.8, "{strategy}: {accuracies:?}");
    }
}

#[test]
fn hardened_mode_refuses_a_strategy_whose_batch_statistics_it_cannot_protect() {
    let mut config = Config::default();
    config.set("strategy.name=bn-scaffold+fedtvd").unwrap();
    config.set("strategy.mode=hardened").unwrap();
    let refusal = Experiment::of(&config).unwrap_err().to_string();
    assert!(refusal.starts_with("strategy.mode = hardened cannot protect bn-scaffold+fedtvd: "), "{refusal}");
    config.set("strategy.mode=paper").unwrap();
    assert!(Experiment::of(&config).is_ok());
    config.set("strategy.name=scaffold").unwrap();
    config.set("strategy.mode=hardened").unwrap();
    assert!(Experiment::of(&config).is_ok());
}
