//! Class weights in a simulation: what they do for a rare class, and which ones are refused.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use fedtvd_core::stream::{Purpose, Stream};
use fedtvd_core::train::{Samples, Values};
use fedtvd_data::set::Loaded;
use fedtvd_run::configuration::{Config, Experiment, ExperimentError};
use fedtvd_run::setup::{Data, Setup, SetupError};
use fedtvd_run::simulation::{Workers, simulation};
use std::sync::Arc;

/// Three overlapping classes with 80, 15 and 5 % of the rows, in training and test sets alike.
fn data() -> Data {
    let mut stream = Stream::at(5, Purpose::Split, 0, 0);
    let labels: Vec<u32> =
        (0..1600).map(|row| [0, 1, 2][usize::from(row % 20 > 15) + usize::from(row % 20 > 18)]).collect();
    let centres = [[0.0, 0.0], [1.5, 0.0], [0.0, 1.5]];
    let centre = |label: u32| centres[label as usize];
    let values =
        labels.iter().flat_map(|&label| centre(label).map(|x| (x + stream.normal()) as f32)).collect();
    let samples = Arc::new(Samples::new([2, 1, 1], 3, Values::Floats(values), labels, 1200).unwrap());
    let (class_names, normal, notes) = (Vec::new(), Vec::new(), Vec::new());
    Data::from(Loaded { samples, groups: None, class_names, normal, notes, table: None })
}

fn experiment(strategy: &str, weights: &str) -> Result<Experiment, ExperimentError> {
    let mut config = Config::default().with_strategy(strategy);
    let weights = format!("local.class_weights={weights}");
    for setting in [
        "clients=4",
        "fraction=1",
        "split.kind=iid",
        "model.name=logistic",
        "evaluation.details=true",
        &weights,
    ] {
        config.set(setting).unwrap();
    }
    Experiment::of(&config)
}

/// The accuracy of each class after five rounds.
fn recalls(strategy: &str, weights: &str) -> Vec<f64> {
    let experiment = experiment(strategy, weights).unwrap();
    let setup = Arc::new(Setup::new(&experiment, &data()).unwrap());
    let trainers = Workers::on_cpu(&setup, 1).unwrap().trainers;
    let mut rounds = simulation(&experiment, &setup, trainers, 1 << 20).unwrap();
    let record = (0..5).map(|_| rounds.round().unwrap()).last().unwrap();
    record.class_accuracy.unwrap().into_iter().map(Option::unwrap).collect()
}

#[test]
fn weights_find_most_of_a_rare_class_that_is_all_but_lost_without_them() {
    for strategy in ["fedavg", "fedtvd+fedprox"] {
        let [equal, inverse] = ["equal", "inverse"].map(|weights| recalls(strategy, weights));
        assert!(equal[2] < 0.3 && inverse[2] > 0.6, "{strategy}: {equal:?} {inverse:?}");
        // What it costs the frequent class is shown, too.
        assert!(inverse[0] < equal[0], "{strategy}: {equal:?} {inverse:?}");
    }
    let costs = recalls("fedavg", "[1, 1, 16]");
    assert!(costs[2] > 0.6, "{costs:?}");
}

#[test]
fn weights_that_do_not_fit_are_refused_before_the_start() {
    let refused = experiment("fedavg", "[1, 0, 2]").unwrap_err().to_string();
    assert_eq!(refused, "local.class_weights: class 1 has weight 0; each must be from 0.000001 to 1000000");
    let two = experiment("fedavg", "[1, 5]").unwrap();
    let refused = Setup::new(&two, &data()).map(drop).unwrap_err();
    assert!(matches!(refused, SetupError::ClassWeights(_)));
    assert_eq!(refused.to_string(), "local.class_weights: 2 numbers were given, but there are 3 classes");
    let mut config = Config::default();
    assert_eq!(
        config.set("local.class_weights=fair").unwrap_err().to_string(),
        "local.class_weights = \"fair\" is not allowed; it must be equal, inverse, or a list of numbers, one per class"
    );
}
