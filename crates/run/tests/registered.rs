//! Runs with a strategy that the program registered itself: the manifest names its source, and resuming, verifying and
//! sweeping want the same.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use fedtvd_core::labels::{Ask, Reference};
use fedtvd_core::memory::Memory;
use fedtvd_core::round::Profile;
use fedtvd_core::rules::{Loss, Origin, Outside, Recipe, Shares, Spec, Weighting};
use fedtvd_core::strategy::register;
use fedtvd_data::set::Places;
use fedtvd_run::configuration::{Config, Experiment};
use fedtvd_run::directory::RunDirectory;
use fedtvd_run::runner::{End, Runner};
use fedtvd_run::same_inputs;
use fedtvd_run::setup::{Data, Setup};
use fedtvd_run::simulation::Resources;
use fedtvd_run::verify::verify;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Equal weights, as long as its switch is on.
#[derive(Debug)]
struct Equal(Outside, Arc<AtomicBool>);

impl Equal {
    fn answer(&self) {
        if !self.1.load(Ordering::Relaxed) {
            self.0.fail("it is switched off");
        }
    }
}

impl Weighting for Equal {
    fn asks(&self) -> Ask {
        Ask::Nothing
    }

    fn shares(&self, profiles: &[&Profile], _: &Reference, _: &mut Memory) -> Shares {
        self.answer();
        let weight = vec![1.0 / profiles.len() as f64; profiles.len()];
        Shares { quality: None, size: weight.clone(), weight }
    }
}

impl Loss for Equal {
    fn offsets(&self, counts: &[u64], _: &Reference) -> Vec<f64> {
        self.answer();
        vec![0.0; counts.len()]
    }
}

fn registered(name: &'static str, source: &str, loss: bool, on: &Arc<AtomicBool>) {
    let on = Arc::clone(on);
    let build = move |_: &_, outside: &Outside| {
        let rule = Arc::new(Equal(outside.clone(), Arc::clone(&on)));
        match loss {
            true => Recipe { loss: Some(rule), ..Recipe::default() },
            false => Recipe { weighting: Some(rule), ..Recipe::default() },
        }
    };
    let origin = Origin { source: source.to_owned(), build: Box::new(build) };
    register(Spec::outside(name, "equal weights, an example", "no paper: an example", origin)).unwrap();
}

fn config(strategy: &str) -> Config {
    let mut config = Config::default().with_strategy(strategy);
    for setting in ["rounds=4", "clients=20", "fraction=0.2", "model.name=logistic", "epochs=1"] {
        config.set(setting).unwrap();
    }
    config
}

/// Runs until a number of rounds is done.
fn run(strategy: &str, path: &Path, rounds: u32) -> Result<End, String> {
    let config = config(strategy);
    let data = Data::load(&Experiment::of(&config).unwrap().data, &Places::new(None)).unwrap();
    let runner =
        Runner::start(&config, &data, path, Resources::workers(1)).map_err(|error| error.to_string())?;
    let stop = AtomicBool::new(false);
    let end = runner.run(&stop, &mut |line| stop.store(line.round == rounds, Ordering::Relaxed));
    end.map_err(|error| error.to_string())
}

fn resumed(path: &Path) -> Result<(), String> {
    let runner = Runner::resume(path, &Places::new(None), Resources::workers(1));
    let runner = runner.map_err(|error| error.to_string())?.unwrap_or_else(|_| panic!("it is not finished"));
    runner.run(&AtomicBool::new(false), &mut |_| {}).map(drop).map_err(|error| error.to_string())
}

fn model(path: &Path) -> Vec<u8> {
    std::fs::read(path.join("model.safetensors")).unwrap()
}

#[test]
fn a_run_names_the_source_of_its_rules_and_resumes_and_verifies_with_the_same_only() {
    let (folder, on) = (tempfile::tempdir().unwrap(), Arc::new(AtomicBool::new(true)));
    let (path, whole, plain) = (folder.path().join("a"), folder.path().join("b"), folder.path().join("c"));
    registered("equal", "source one", false, &on);
    run("equal+balanced", &path, 2).unwrap();
    let manifest = || RunDirectory::open(&path).unwrap().manifest().unwrap();
    assert_eq!(
        manifest().rules.into_iter().collect::<Vec<_>>(),
        [("equal".to_owned(), "source one".to_owned())]
    );
    registered("equal", "source two", false, &on);
    let changed = "the source of the strategy equal changed since the run began: its hash was source one and is source two; \
                   restore the old one, or start a new run with another --out";
    assert_eq!(resumed(&path).unwrap_err(), changed);
    let places = Places::new(None);
    let verified = || verify(&path, &places, Resources::workers(1), None, &mut |_| {});
    assert_eq!(verified().unwrap_err().to_string(), changed);
    registered("equal", "source one", false, &on);
    resumed(&path).unwrap();
    assert_eq!(verified().unwrap().same_bits, Some(true));
    run("equal+balanced", &whole, 0).unwrap();
    run("uniform+balanced", &plain, 0).unwrap();
    assert!(model(&path) == model(&whole), "resumed as if never stopped");
    assert!(model(&whole) == model(&plain), "the bits of the same rule in the program");
    assert!(
        !std::fs::read_to_string(plain.join("manifest.json")).unwrap().contains("rules"),
        "manifests stay as they are"
    );
    // A sweep that finds the finished run.
    registered("equal", "source two", false, &on);
    let experiment = Experiment::of(&config("equal+balanced")).unwrap();
    let data = Data::load(&experiment.data, &places).unwrap();
    let setup = Setup::new(&experiment, &data).unwrap();
    let found = same_inputs(&RunDirectory::open(&path).unwrap(), &experiment, &setup);
    assert_eq!(found.unwrap_err().to_string(), changed);
}

#[test]
fn a_run_whose_strategy_is_not_registered_says_so() {
    let (folder, on) = (tempfile::tempdir().unwrap(), Arc::new(AtomicBool::new(true)));
    let path = folder.path().join("a");
    registered("mine", "source", false, &on);
    run("mine", &path, 1).unwrap();
    // As a program sees it that did not register the method.
    for file in ["manifest.json", "config.toml"] {
        let text = std::fs::read_to_string(path.join(file)).unwrap();
        std::fs::write(path.join(file), text.replace("\"mine\"", "\"theirs\"")).unwrap();
    }
    assert_eq!(
        resumed(&path).unwrap_err(),
        format!(
            "{} was made with the strategy theirs, which is not one of fedtvd itself; register it first, in Python by \
             importing the module that defines it",
            path.display()
        )
    );
}

#[test]
fn a_rule_that_fails_stops_the_run_before_its_answer_counts() {
    for (name, loss) in [("failing-weights", false), ("failing-loss", true)] {
        let (folder, on) = (tempfile::tempdir().unwrap(), Arc::new(AtomicBool::new(true)));
        let (path, whole) = (folder.path().join("a"), folder.path().join("b"));
        registered(name, "source", loss, &on);
        run(name, &whole, 0).unwrap();
        run(name, &path, 2).unwrap();
        on.store(false, Ordering::Relaxed);
        assert_eq!(resumed(&path).unwrap_err(), format!("{name}: it is switched off"));
        on.store(true, Ordering::Relaxed);
        resumed(&path).unwrap();
        assert!(model(&path) == model(&whole), "{name}");
    }
}
