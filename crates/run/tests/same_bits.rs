//! The same seed gives the same bits: for any number of workers, any order of arrival, from a reloaded state.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../../core/tests/proof/in_memory.rs"]
mod in_memory;

use fedtvd_core::round::{
    ClientFailure, ClientRecord, RoundRecord, State, UpdatePart, Updates, Upload, close, plan,
};
use fedtvd_core::rules::{Carried, notation};
use fedtvd_core::strategy::ALL;
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
    let value = |label: u32, place: u32| f64::from(u8::from(place / 6 == label)) + 0.5 * stream.normal();
    let mut value = value;
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

fn experiment(strategy: &str) -> (Experiment, Arc<Setup>) {
    let mut config = Config::default().with_strategy(strategy);
    // Batch norms and several layers, since some strategies keep a part of the model at the clients.
    let layers = r#"model.layers=["conv 2 2x2", "batchnorm", "flatten", "linear"]"#;
    for setting in ["clients=12", "fraction=0.5", "alpha=0.3", layers, "batch=8", "epochs=2", "holdout=0.2"] {
        config.set(setting).unwrap();
    }
    if notation::strategy(strategy, []).unwrap().matching.is_some() {
        // All clients match networks without norms.
        let layers = r#"model.layers=["conv 2 2x2", "relu", "flatten", "linear 5", "relu", "linear"]"#;
        ["fraction=1", layers].iter().for_each(|setting| config.set(setting).unwrap());
    }
    let experiment = Experiment::of(&config).unwrap();
    let setup = Arc::new(Setup::new(&experiment, &data()).unwrap());
    (experiment, setup)
}

fn started(experiment: &Experiment, setup: &Arc<Setup>, resources: Resources) -> Rounds {
    let trainers = Workers::on_cpu(setup, resources.workers).unwrap().trainers;
    simulation(experiment, setup, trainers, resources.update_memory).unwrap()
}

/// The state's bytes after a number of rounds.
fn after(strategy: &str, workers: usize, rounds: u32) -> Vec<u8> {
    let (experiment, setup) = experiment(strategy);
    let mut simulation = started(&experiment, &setup, Resources::workers(workers));
    for _ in 0..rounds {
        simulation.round().unwrap();
    }
    simulation.state().to_bytes()
}

/// Every registered method, and three compositions, of which one parts its clients in each round.
fn names() -> Vec<&'static str> {
    let compositions =
        ["fedtvd+balanced", "fedprox+fedtvd+fedadam", "cfl:warmup=0:eps1=1000:eps2=0+fedtvd+fedavgm"];
    ALL.iter().map(|spec| spec.name).chain(compositions).collect()
}

#[test]
fn one_and_seven_workers_give_the_same_bits() {
    for name in names() {
        assert_eq!(after(name, 1, 4), after(name, 7, 4), "{name}");
    }
}

#[test]
fn a_run_from_a_reloaded_state_gives_the_same_bits() {
    for name in names() {
        let (experiment, setup) = experiment(name);
        let mut first = started(&experiment, &setup, Resources::workers(2));
        first.round().unwrap();
        first.round().unwrap();
        let (state, memories) = first.checkpoint().unwrap();
        let (saved, memories) = (state.to_bytes(), memories.clone());
        let mut second = started(&experiment, &setup, Resources::workers(3));
        second.restore(State::from_bytes(&saved, &setup.parts.shared).unwrap(), memories);
        second.round().unwrap();
        second.round().unwrap();
        assert_eq!(second.state().to_bytes(), after(name, 1, 4), "{name}");
    }
}

#[test]
fn another_seed_gives_other_bits() {
    let (mut experiment, setup) = experiment("fedtvd");
    experiment.run.seed += 1;
    let mut other = started(&experiment, &setup, Resources::workers(1));
    other.round().unwrap();
    assert_ne!(other.state().to_bytes(), after("fedtvd", 1, 1));
}

#[test]
fn updates_that_arrive_in_reverse_order_give_the_same_bits() {
    for name in names() {
        let (experiment, setup) = experiment(name);
        let mut simulation = started(&experiment, &setup, Resources::workers(1));
        let mut state = simulation.state().clone();
        for profile in simulation.fleet().gather(&state, None).unwrap().newcomers {
            state.enrol(&experiment.run, profile).unwrap();
        }
        let jobs = plan(&experiment.run, &state);
        let updates = simulation.fleet().work(&jobs).unwrap().updates;
        let carries = experiment.run.strategy.needs().carries;
        let mut reversed: Vec<_> = (0..jobs.len())
            .map(|index| {
                let read = |part, len| {
                    let mut values = vec![0.0; len];
                    updates.read(index, part, 0..values.len(), &mut values).unwrap();
                    values
                };
                let outcome = &updates.outcomes()[index];
                let mut params = (*state.params).clone();
                params.values = read(UpdatePart::Model, setup.parts.shared.len());
                let mut carried = fedtvd_core::memory::Memory::default();
                for Carried { name, extent } in carries {
                    carried.put(name, read(UpdatePart::Carried(name), extent.len(&setup.parts.shared)));
                }
                let report = outcome.answer.clone().unwrap().report();
                let upload = Upload { client: outcome.client, params, carried, report };
                let bytes = upload.to_bytes();
                (outcome.client, Ok(Upload::from_bytes(&bytes, &setup.parts.shared).unwrap()))
            })
            .collect();
        reversed.reverse();
        let close = |updates: &dyn Updates| close(&experiment.run, &state, &jobs, updates).unwrap();
        let backwards = in_memory::InMemory::new(&experiment.run, &state, &jobs, reversed);
        let (in_order, backwards) = (close(updates.as_ref()), close(&backwards));
        assert_eq!(in_order.0.to_bytes(), backwards.0.to_bytes(), "{name}");
        assert_eq!(in_order.1, backwards.1, "{name}");
    }
}

#[test]
fn updates_in_a_file_give_the_same_bits() {
    for name in names() {
        let (experiment, setup) = experiment(name);
        let mut simulation =
            started(&experiment, &setup, Resources { update_memory: 0, ..Resources::workers(2) });
        (0..4).for_each(|_| drop(simulation.round().unwrap()));
        assert_eq!(simulation.state().to_bytes(), after(name, 1, 4), "{name}");
    }
}

/// A record without its measured time.
fn timeless(record: RoundRecord) -> RoundRecord {
    RoundRecord { seconds: 0.0, ..record }
}

#[test]
fn clients_that_drop_out_or_stop_early_are_recorded_and_the_others_count() {
    let (mut experiment, setup) = experiment("fedprox");
    experiment.dropout.absent = 0.4;
    experiment.dropout.partial = 0.5;
    let rounds = |workers| {
        let mut simulation = started(&experiment, &setup, Resources::workers(workers));
        (0..8).map(|_| timeless(simulation.round().unwrap())).collect::<Vec<_>>()
    };
    let records = rounds(1);
    assert_eq!(records, rounds(3), "dropouts depend on the seed, not on the threads");
    let clients = || records.iter().flat_map(|record| &record.clients);
    let absent = clients().filter(|client| client.failure == Some(ClientFailure::Absent)).count();
    // 48 clients selected, 0.4 of them absent: 19 expected, standard deviation 3.4.
    assert!((9..=29).contains(&absent), "{absent} of 48");
    let steps = |client: &&ClientRecord| client.steps == Some(client.size.div_ceil(8));
    assert!(clients().any(|client| steps(&client)), "some finish one of two epochs");
    for record in &records {
        let sum: f64 = record.clients.iter().filter_map(|client| client.weight).sum();
        assert!((sum - 1.0).abs() < 1e-12 || record.unchanged.is_some());
    }
}

#[test]
fn training_learns() {
    let (experiment, setup) = experiment("fedavg");
    let mut simulation = started(&experiment, &setup, Resources::workers(2));
    let accuracies: Vec<f64> = (0..15).map(|_| simulation.round().unwrap().accuracy.unwrap()).collect();
    // Chance is 0.25; a linear model separates bright rows under noise of half their height.
    assert!(accuracies[14] > 0.8, "{accuracies:?}");
}

#[test]
fn an_aggregated_reference_is_the_training_sets_distribution() {
    let mut config = Config::default();
    for setting in ["clients=5", "model.name=logistic", "labels.reference=aggregated", "fraction=1"] {
        config.set(setting).unwrap();
    }
    let experiment = Experiment::of(&config).unwrap();
    let setup = Arc::new(Setup::new(&experiment, &data()).unwrap());
    let mut simulation = started(&experiment, &setup, Resources::workers(1));
    simulation.round().unwrap();
    // 500 training rows of four classes in turn.
    assert_eq!(simulation.state().reference.shares(), [0.25; 4]);
    assert!(experiment.run.fixed_roster);
}
