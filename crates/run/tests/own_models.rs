//! The models that simulated clients use themselves: after a restart, and from the directory of a finished run.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use fedtvd_core::round::EvaluatedOn;
use fedtvd_data::set::Places;
use fedtvd_run::client_models;
use fedtvd_run::configuration::{Config, Experiment};
use fedtvd_run::directory::RunDirectory;
use fedtvd_run::runner::{End, Runner};
use fedtvd_run::setup::Data;
use fedtvd_run::simulation::Resources;
use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// A strategy whose clients remember something, or make their models anew, and the model that it is for.
const STRATEGIES: [(&str, &str); 9] = [
    ("fedbn", "lenet-bn"),
    ("fedrep", "lenet-bn"),
    ("fedala", "logistic"),
    ("ditto", "logistic"),
    ("finetune", "logistic"),
    ("balanced+prior", "logistic"),
    ("ifca+fedtvd", "logistic"),
    ("cfl:warmup=0:eps1=100:eps2=0", "logistic"),
    ("cfl:warmup=0:eps1=100:eps2=0+ditto", "logistic"),
];

fn run(path: &Path, strategy: &str, model: &str) {
    let mut config = Config::default();
    for setting in ["clients=5", "fraction=0.6", "epochs=1", "rounds=3", "split.holdout=0.2"] {
        config.set(setting).unwrap();
    }
    config.set(&format!("strategy.name={strategy}")).unwrap();
    config.set(&format!("model.name={model}")).unwrap();
    let data = Data::load(&Experiment::of(&config).unwrap().data, &Places::new(None)).unwrap();
    let runner = Runner::start(&config, &data, path, Resources::workers(2)).unwrap();
    let End::Done(_) = runner.run(&AtomicBool::new(false), &mut |_| {}).unwrap() else { panic!() };
}

#[test]
fn own_models_are_evaluated_on_what_clients_remember_also_after_a_restart() {
    for (strategy, model) in STRATEGIES {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("run");
        run(&out, strategy, model);
        let directory = RunDirectory::open(&out).unwrap();
        let line = directory.lines().unwrap().pop().unwrap();
        let personal = line.personal.unwrap();
        assert_eq!(
            (personal.on, personal.evaluated, personal.failed),
            (EvaluatedOn::HoldOuts, 5, 0),
            "{strategy}"
        );
        let clients = directory.client_results().unwrap().unwrap();
        let mean = clients.iter().map(|client| client.personal.unwrap()).sum::<f64>() / 5.0;
        assert!((personal.clients.mean - mean).abs() < 1e-12, "{strategy}");
        let again = client_models(&directory, &Places::new(None), Resources::workers(1)).unwrap().unwrap();
        assert_eq!(again, clients, "{strategy}");
        drop(directory);
        // As if the process had been killed after the last round, before it wrote the results.
        for file in ["summary.json", "model.safetensors", "clients.json"] {
            fs::remove_file(out.join(file)).unwrap();
        }
        let resumed = Runner::resume(&out, &Places::new(None), Resources::workers(2)).unwrap().unwrap();
        let End::Done(_) = resumed.run(&AtomicBool::new(false), &mut |_| panic!("no round is left")).unwrap()
        else {
            panic!()
        };
        assert_eq!(
            RunDirectory::open(&out).unwrap().client_results().unwrap().unwrap(),
            clients,
            "{strategy}"
        );
    }
}

#[test]
fn personal_models_and_adaptive_clients_learn_on_embedded_data() {
    for strategy in ["fedper", "fedrep:head_epochs=3", "ditto", "fedala", "finetune", "fedadap+fednova"] {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("run");
        let mut config = Config::default().with_strategy(strategy);
        let layers = r#"model.layers=["flatten", "linear 32", "relu", "linear"]"#;
        for setting in [
            "clients=5",
            "fraction=1",
            "split.kind=iid",
            "rounds=4",
            "split.holdout=0.2",
            "local.lr=0.02",
            layers,
        ] {
            config.set(setting).unwrap();
        }
        let data = Data::load(&Experiment::of(&config).unwrap().data, &Places::new(None)).unwrap();
        let runner = Runner::start(&config, &data, &out, Resources::workers(2)).unwrap();
        let End::Done(_) = runner.run(&AtomicBool::new(false), &mut |_| {}).unwrap() else { panic!() };
        let clients = RunDirectory::open(&out).unwrap().client_results().unwrap().unwrap();
        let own = clients.iter().map(|client| client.personal.unwrap_or(client.accuracy));
        let mean = own.sum::<f64>() / clients.len() as f64;
        // Guessing is right in a tenth of the cases.
        assert!(mean > 0.5, "{strategy}: {mean}");
    }
}
