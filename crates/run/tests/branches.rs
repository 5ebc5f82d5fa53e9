//! Strategies with several models: planted clusters are found, runs resume and are verified, and what cannot be combined is refused.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use fedtvd_core::model::Params;
use fedtvd_core::round::{ClientId, RoundRecord};
use fedtvd_data::set::Places;
use fedtvd_run::configuration::{Config, Experiment};
use fedtvd_run::directory::RunDirectory;
use fedtvd_run::runner::{End, Runner};
use fedtvd_run::setup::{Data, Setup};
use fedtvd_run::simulation::{Resources, Workers, simulation};
use fedtvd_run::verify::verify;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Eight clients with alike images of the embedded data, in two planted groups: the even clients and the odd ones.
fn planted(strategy: &str) -> (Experiment, Arc<Setup>) {
    let mut config = Config::default().with_strategy(strategy);
    for setting in [
        "split.groups=2",
        "clients=8",
        "split.kind=iid",
        "fraction=1",
        "epochs=1",
        "split.holdout=0.2",
        "model.name=logistic",
    ] {
        config.set(setting).unwrap();
    }
    let experiment = Experiment::of(&config).unwrap();
    let data = Data::load(&experiment.data, &Places::new(None)).unwrap();
    let setup = Setup::new(&experiment, &data).unwrap();
    (experiment, Arc::new(setup))
}

fn rounds(strategy: &str, count: u32) -> Vec<RoundRecord> {
    let (experiment, setup) = planted(strategy);
    let trainers = Workers::on_cpu(&setup, 2).unwrap().trainers;
    let mut rounds = simulation(&experiment, &setup, trainers, 1 << 20).unwrap();
    (0..count).map(|_| rounds.round().unwrap()).collect()
}

/// The clients of the branches that have any.
fn groups(record: &RoundRecord) -> Vec<Vec<ClientId>> {
    let mut groups: Vec<Vec<ClientId>> =
        record.branches.iter().map(|branch| branch.clients.clone()).collect();
    groups.retain(|clients| !clients.is_empty());
    groups.sort();
    groups
}

#[test]
fn planted_clusters_are_recovered_and_their_clients_use_better_models_than_a_shared_one() {
    let shared = rounds("fedavg", 20).pop().unwrap().validation.unwrap().accuracy;
    for strategy in ["ifca", "cfl:warmup=5:eps1=0.5:eps2=0.6", "ifca+fedtvd+balanced"] {
        let records = rounds(strategy, 20);
        let last = records.last().unwrap();
        assert_eq!(groups(last), [vec![0, 2, 4, 6], vec![1, 3, 5, 7]], "{strategy}");
        let own = last.personal.unwrap();
        assert_eq!((own.evaluated, own.failed), (8, 0));
        assert!(
            own.accuracy > 0.6 && own.accuracy > shared + 0.2,
            "{strategy}: {} and {shared}",
            own.accuracy
        );
        // There is no global model to evaluate; each branch has its accuracy on the test set, which knows the even clients' labels.
        assert!(last.accuracy.is_none() && last.validation.is_none());
        let accuracies: Vec<f64> = last.branches.iter().map(|branch| branch.accuracy.unwrap()).collect();
        assert!(
            accuracies.iter().any(|accuracy| *accuracy > 0.6)
                && accuracies.iter().any(|accuracy| *accuracy < 0.2)
        );
    }
}

fn config(strategy: &str) -> Config {
    let mut config = Config::default().with_strategy(strategy);
    for setting in ["clients=6", "fraction=0.7", "epochs=1", "rounds=4", "model.name=logistic"] {
        config.set(setting).unwrap();
    }
    config
}

fn run(path: &Path, strategy: &str) {
    let config = config(strategy);
    let data = Data::load(&Experiment::of(&config).unwrap().data, &Places::new(None)).unwrap();
    let runner = Runner::start(&config, &data, path, Resources::workers(2)).unwrap();
    let End::Done(_) = runner.run(&AtomicBool::new(false), &mut |_| {}).unwrap() else { panic!() };
}

/// It parts in its first round.
const PARTS: &str = "cfl:warmup=0:eps1=100:eps2=0";

#[test]
fn every_branch_has_its_file_and_a_change_of_any_of_them_is_found() {
    for strategy in ["ifca:models=3", PARTS] {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("run");
        run(&out, strategy);
        let check = || verify(&out, &Places::new(None), Resources::workers(1), None, &mut |_| {});
        let verdict = check().unwrap();
        assert_eq!((verdict.same_bits, verdict.parting), (Some(true), None), "{strategy}");
        let directory = RunDirectory::open(&out).unwrap();
        let models = (0..).map(|branch| directory.model_of_branch(branch)).take_while(|path| path.is_file());
        let models: Vec<_> = models.collect();
        assert!(models.len() >= 3, "{strategy}: {models:?}");
        let (_, setup) = fedtvd_run::reopen(&directory, &Places::new(None)).unwrap();
        let last = models.last().unwrap();
        let mut params = Params::from_safetensors(&fs::read(last).unwrap(), &setup.layout).unwrap();
        params.values[0] += 1.0;
        fs::write(last, params.to_safetensors()).unwrap();
        drop(directory);
        let message = check().unwrap_err().to_string();
        let branch = models.len() - 1;
        assert!(message.contains(&format!(" of branch {branch} differs")), "{message}");
    }
}

#[test]
fn what_several_models_cannot_be_combined_with_is_refused_with_the_reason() {
    let refusal = |strategy: &str, setting: &[&str]| {
        let mut config = config(strategy);
        setting.iter().for_each(|setting| config.set(setting).unwrap());
        Experiment::of(&config).unwrap_err().to_string()
    };
    for strategy in ["ifca", "cfl"] {
        let hardened = refusal(strategy, &["mode=hardened"]);
        assert!(
            hardened.starts_with(&format!("strategy.mode = hardened cannot protect {strategy}: ")),
            "{hardened}"
        );
        let colluding = refusal(strategy, &["attack.kind=alie"]);
        assert!(colluding.contains(&format!("under {strategy} they train different models")), "{colluding}");
    }
    let start = refusal("ifca:models=4", &["model.start=model.safetensors"]);
    assert!(start.contains("begins with 4 different ones; leave model.start out"), "{start}");
    let mut started = config("cfl");
    started.set("model.start=model.safetensors").unwrap();
    assert!(Experiment::of(&started).is_ok(), "cfl begins with one model");
}

#[test]
fn liars_change_the_model_that_they_chose() {
    let mut config = config("ifca");
    for setting in ["attack.kind=scale", "attack.clients=2", "attack.scale=1.0000001", "fraction=1"] {
        config.set(setting).unwrap();
    }
    let experiment = Experiment::of(&config).unwrap();
    let data = Data::load(&experiment.data, &Places::new(None)).unwrap();
    let setup = Arc::new(Setup::new(&experiment, &data).unwrap());
    let trainers = Workers::on_cpu(&setup, 1).unwrap().trainers;
    let mut rounds = simulation(&experiment, &setup, trainers, 1 << 20).unwrap();
    for _ in 0..3 {
        // A scale of one changes nothing, whichever model the change is measured from.
        let record = rounds.round().unwrap();
        let norms: Vec<f64> = record.clients.iter().map(|client| client.norm.unwrap()).collect();
        let honest = norms[2..].iter().copied().fold(0.0, f64::max);
        assert!(norms[..2].iter().all(|norm| *norm < 3.0 * honest), "{norms:?}");
    }
}

#[test]
fn planted_groups_need_hold_outs_and_change_the_split_hash() {
    let (experiment, setup) = planted("ifca");
    let mut plain = experiment.clone();
    plain.split.groups = fedtvd_data::split::Planted::default();
    let data = Data::load(&plain.data, &Places::new(None)).unwrap();
    let alike = Setup::new(&plain, &data).unwrap();
    assert!(alike.partition == setup.partition && alike.split_hash != setup.split_hash);
    // Each class of an odd client has the name of the next.
    let shifted: Vec<u64> = (0..10).map(|class| alike.clients[1].counts[(class + 9) % 10]).collect();
    assert_eq!(setup.clients[1].counts, shifted);
    assert_eq!(setup.clients[2].counts, alike.clients[2].counts);
    let mut without = experiment.clone();
    without.holdout = 0.0;
    let setup = Arc::new(Setup::new(&without, &data).unwrap());
    let trainers = Workers::on_cpu(&setup, 1).unwrap().trainers;
    let refusal = simulation(&without, &setup, trainers, 1 << 20).err().unwrap().to_string();
    assert!(refusal.starts_with("split.groups needs hold-outs: set split.holdout"), "{refusal}");
}
