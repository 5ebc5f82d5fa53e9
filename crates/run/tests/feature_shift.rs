//! A feature shift for each client: what it changes of a simulation, and which strategy it is for.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use fedtvd_data::set::Places;
use fedtvd_run::configuration::{Config, Experiment};
use fedtvd_run::directory::RunDirectory;
use fedtvd_run::runner::{End, Runner};
use fedtvd_run::setup::{Data, Setup};
use fedtvd_run::simulation::Resources;
use std::sync::atomic::AtomicBool;

fn config(settings: &[&str]) -> Config {
    let mut config = Config::default();
    let common = ["split.kind=iid", "clients=12", "fraction=1", "split.holdout=0.3"];
    common.iter().chain(settings).for_each(|setting| config.set(setting).unwrap());
    config
}

fn data(config: &Config) -> Data {
    Data::load(&Experiment::of(config).unwrap().data, &Places::new(None)).unwrap()
}

#[test]
fn a_shift_changes_what_clients_train_on_and_hold_out_and_neither_labels_nor_test_rows() {
    let setup = |settings: &[&str]| {
        let config = config(settings);
        Setup::new(&Experiment::of(&config).unwrap(), &data(&config)).unwrap()
    };
    let plain = setup(&[]);
    let row = |setup: &Setup, row: u32| {
        let mut image = vec![0.0; 784];
        setup.samples.read(row, &mut image);
        image
    };
    for kind in ["rotation", "contrast", "noise"] {
        let shifted = setup(&[&format!("split.shift={kind}")]);
        assert_eq!(shifted.partition, plain.partition, "{kind}");
        assert_ne!(shifted.split_hash, plain.split_hash, "{kind}");
        assert!(
            shifted.notes.iter().any(|note| note.starts_with(&format!("feature shift ({kind})"))),
            "{kind}"
        );
        for (own, others) in shifted.clients.iter().zip(&plain.clients) {
            assert_eq!((&own.rows, &own.counts), (&others.rows, &others.counts), "{kind}");
            for rows in [&own.rows, &own.holdout] {
                assert!(rows.iter().any(|at| row(&shifted, *at) != row(&plain, *at)), "{kind}");
            }
        }
        assert_eq!(shifted.samples.labels(), plain.samples.labels(), "{kind}");
        assert!(
            shifted.samples.test_rows().iter().all(|at| row(&shifted, *at) == row(&plain, *at)),
            "{kind}"
        );
    }
}

/// Accuracy on the clients' own hold-outs, mean over clients, after a run under a strong shift of contrast, which a batch norm
/// can undo: of the models that they use themselves if they have such models, otherwise of the shared one.
fn accuracy(strategy: &str) -> f64 {
    let folder = tempfile::tempdir().unwrap();
    let name = format!("strategy.name={strategy}");
    let config = config(&[
        &name,
        "rounds=6",
        "local.epochs=1",
        "model.name=lenet-bn",
        "split.shift=contrast",
        "split.shift_strength=0.95",
    ]);
    let out = folder.path().join("run");
    let runner = Runner::start(&config, &data(&config), &out, Resources::workers(2)).unwrap();
    let End::Done(_) = runner.run(&AtomicBool::new(false), &mut |_| {}).unwrap() else { panic!() };
    let clients = RunDirectory::open(&out).unwrap().client_results().unwrap().unwrap();
    let own = clients.iter().map(|client| client.personal.unwrap_or(client.accuracy));
    own.sum::<f64>() / clients.len() as f64
}

#[test]
fn on_shifted_images_models_with_batch_norms_of_their_own_beat_the_shared_one() {
    let (shared, own) = (accuracy("uniform"), accuracy("fedbn"));
    // 74.5 % and 62.8 %, of 3,600 images that clients hold out.
    assert!(own > shared + 0.05, "fedbn {own}, fedavg's model {shared}");
}
