//! Runs whose network changes its widths from round to round.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use fedtvd_core::model::Params;
use fedtvd_data::set::Places;
use fedtvd_run::configuration::{Config, Experiment};
use fedtvd_run::directory::RunDirectory;
use fedtvd_run::runner::{End, Runner};
use fedtvd_run::setup::{Data, Setup, SetupError};
use fedtvd_run::simulation::Resources;
use fedtvd_run::verify::verify;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn config(more: &[&str]) -> Config {
    let mut config = Config::default();
    let layers =
        r#"model.layers=["conv 4 3x3", "relu", "maxpool 2", "flatten", "linear 16", "relu", "linear"]"#;
    let settings =
        ["strategy.name=fedma", "clients=4", "fraction=1", "epochs=2", "rounds=6", "local.lr=0.05", layers];
    settings.iter().chain(more).for_each(|setting| config.set(setting).unwrap());
    config
}

fn data(config: &Config) -> Data {
    Data::load(&Experiment::of(config).unwrap().data, &Places::new(None)).unwrap()
}

/// Runs to the end, or until `stop` rounds are done.
fn run(config: &Config, path: &Path, stop: u32) {
    let runner = Runner::start(config, &data(config), path, Resources::workers(2)).unwrap();
    let stopped = AtomicBool::new(false);
    runner.run(&stopped, &mut |line| stopped.store(line.round >= stop, Ordering::Relaxed)).unwrap();
}

#[test]
fn a_network_grows_layer_by_layer_learns_and_is_resumed_in_any_round_with_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(&[]);
    let whole = folder.path().join("whole");
    run(&config, &whole, u32::MAX);
    let model = fs::read(whole.join("model.safetensors")).unwrap();
    let lines = RunDirectory::open(&whole).unwrap().lines().unwrap();
    // Ten classes: after two cycles of three rounds, far above guessing.
    assert!(lines.last().unwrap().accuracy.unwrap() > 0.4, "{:?}", lines.last().unwrap().accuracy);
    assert!(lines.iter().all(|line| line.unchanged.is_none()));

    let setup = Setup::new(&Experiment::of(&config).unwrap(), &data(&config)).unwrap();
    let params = Params::from_safetensors_of_any_width(&model, &setup.layout).unwrap();
    let widths = params.layout.widths();
    assert!(widths.len() == 3 && widths[0] > 4 && widths[1] > 16 && widths[2] == 10, "{widths:?}");
    let wide = Arc::new(setup.model.with_widths(widths).layout().unwrap());
    assert!(Params::from_safetensors(&model, &wide).is_ok());

    let verdict = verify(&whole, &Places::new(None), Resources::workers(2), None, &mut |_| {}).unwrap();
    assert_eq!(verdict.same_bits, Some(true));

    for stop in [1, 2, 4] {
        let part = folder.path().join(format!("part-{stop}"));
        run(&config, &part, stop);
        let resumed = Runner::resume(&part, &Places::new(None), Resources::workers(1)).unwrap().unwrap();
        let End::Done(_) = resumed.run(&AtomicBool::new(false), &mut |_| {}).unwrap() else { panic!() };
        assert!(fs::read(part.join("model.safetensors")).unwrap() == model, "resumed after round {stop}");
    }
}

#[test]
fn networks_that_cannot_be_matched_and_cohorts_of_some_clients_are_refused() {
    let error = |more: &[&str]| {
        let config = config(more);
        Setup::new(&Experiment::of(&config).unwrap(), &data(&config)).unwrap_err()
    };
    for (layers, word) in [
        (
            r#"model.layers=["conv 3 5x5", "batchnorm", "relu", "flatten", "linear"]"#,
            "layer 2 is a batchnorm layer",
        ),
        (
            r#"model.layers=["conv 3 5x5", "residual {", "conv 3 3x3 pad 1", "}", "flatten", "linear"]"#,
            "layer 2 is a residual layer",
        ),
        (r#"model.layers=["flatten", "linear"]"#, "no hidden layer"),
    ] {
        let error = error(&[layers]);
        assert!(matches!(error, SetupError::Matching { .. }), "{error}");
        assert!(error.to_string().contains(word), "{error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let some = config(&["fraction=0.5"]);
    let refused = Runner::start(&some, &data(&some), &folder.path().join("run"), Resources::workers(1));
    let error = format!("{:#}", refused.err().unwrap());
    assert!(
        error.contains("at least 4 clients per round") && error.contains("cohort.fraction = 1"),
        "{error}"
    );
}

#[test]
fn a_round_without_one_of_the_clients_changes_nothing_and_the_same_layer_is_matched_next() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let config = config(&["cohort.absent=0.2", "rounds=8", "seed=2"]);
    run(&config, &out, u32::MAX);
    let lines = RunDirectory::open(&out).unwrap().lines().unwrap();
    let missing = lines.iter().filter(|line| line.clients.iter().any(|client| client.failure.is_some()));
    let reasons: Vec<&str> = missing.clone().filter_map(|line| line.unchanged.as_deref()).collect();
    // All four are there with probability 0.41.
    assert!((1..8).contains(&reasons.len()) && reasons.len() == missing.count(), "{reasons:?}");
    assert!(
        reasons.iter().all(|reason| reason.ends_with(" of 4 needed updates were accepted")),
        "{reasons:?}"
    );
    let models: Vec<_> = lines.iter().map(|line| (&line.model_hash, line.unchanged.is_some())).collect();
    assert!(models.windows(2).all(|pair| (pair[0].0 == pair[1].0) == pair[1].1), "{models:?}");
}
