//! A second backend, whose model is not made of layers, in place of this program's own kernels.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use fedtvd_core::model::{
    Layer, LayerKind, Layout, ModelDefinition, Network, OtherModel, Params, Role, Shape, Tensor,
};
use fedtvd_core::train::{Optimizer, Samples, Trainer};
use fedtvd_data::set::Places;
use fedtvd_nn::Cpu;
use fedtvd_run::RunError;
use fedtvd_run::backend::{
    Backend, BackendError, Description, Device, ModelSource, register, register_model,
};
use fedtvd_run::configuration::{Config, Experiment};
use fedtvd_run::directory::{DeviceFingerprint, Fingerprint, RunDirectory};
use fedtvd_run::runner::{End, Runner};
use fedtvd_run::setup::{Data, Setup};
use fedtvd_run::simulation::Resources;
use fedtvd_run::verify::verify;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Softmax regression, whose layers this program happens to know, too: so both ways must give the same bits.
fn regression(input: Shape, classes: usize) -> Network {
    let layers = vec![Layer::Flatten, Layer::Linear { name: "fc".into(), out: classes }];
    Network { input, classes, layers }
}

/// Describes the regression by tensors of kind `other`.
struct ByHand {
    source: &'static str,
}

impl ModelSource for ByHand {
    fn define(&self, input: Shape, classes: usize) -> Result<OtherModel, String> {
        let inputs = input.iter().product();
        let tensor =
            |name: &str, shape: &[usize]| Tensor::new(name, shape.to_vec(), 0, LayerKind::Other, Role::Other);
        let tensors = vec![tensor("fc.weight", &[classes, inputs]), tensor("fc.bias", &[classes])];
        let (other, source) = ("by-hand".to_owned(), self.source.to_owned());
        Ok(OtherModel { other, source, input, classes, tensors })
    }

    fn initial(&self, model: &OtherModel, seed: u64) -> Result<Vec<f32>, String> {
        let layout =
            Layout::of(&regression(model.input, model.classes)).map_err(|error| error.to_string())?;
        Ok(Params::initial(Arc::new(layout), seed).values)
    }
}

/// Trains the regression by this program's kernels, as if they were a device of their own.
#[derive(Debug)]
struct Second {
    repeatable: bool,
}

impl Second {
    fn network(model: &ModelDefinition) -> Network {
        regression(model.input(), model.classes())
    }
}

impl Backend for Second {
    fn describe(&self) -> Result<Description, BackendError> {
        let device = DeviceFingerprint {
            name: if self.repeatable { "second" } else { "second:loose" }.to_owned(),
            hardware: "a test".to_owned(),
            versions: BTreeMap::from([("second".to_owned(), "1.0".to_owned())]),
            repeatable: self.repeatable,
        };
        Ok(Description { fingerprint: Fingerprint::of_device(device), workers: Some(1) })
    }

    fn training_memory(
        &self,
        model: &ModelDefinition,
        batch: usize,
        optimizer: &Optimizer,
    ) -> Result<u128, BackendError> {
        Cpu::training_memory(&Self::network(model), batch, optimizer)
            .map_err(|error| BackendError::Model(error.into()))
    }

    fn trainer(
        &self,
        model: &ModelDefinition,
        samples: &Arc<Samples>,
    ) -> Result<Box<dyn Trainer>, BackendError> {
        Ok(Box::new(Cpu::new(&Self::network(model), Arc::clone(samples))?))
    }
}

fn second(name: &str) -> Device {
    register(&["second"], |name| match name {
        "second" => Some(Ok(Arc::new(Second { repeatable: true }))),
        "second:loose" => Some(Ok(Arc::new(Second { repeatable: false }))),
        _ => None,
    });
    Device::named(name).unwrap()
}

fn config(model: &str, strategy: &str) -> Config {
    register_model("by-hand", Arc::new(ByHand { source: "first" })).unwrap();
    let mut config = Config::default().with_strategy(strategy);
    let model = format!("model.name={model}");
    for setting in ["clients=8", "fraction=0.5", "epochs=1", "rounds=4", "split.holdout=0.2", &model] {
        config.set(setting).unwrap();
    }
    config
}

fn started(config: &Config, out: &Path, device: Device) -> Result<Runner, RunError> {
    let data = Data::load(&Experiment::of(config).unwrap().data, &Places::new(None)).unwrap();
    Runner::start(config, &data, out, Resources::on(device, 2))
}

fn finished(runner: Runner) -> RunDirectory {
    let directory = runner.directory().path().to_owned();
    let end = runner.run(&AtomicBool::new(false), &mut |_| {}).unwrap();
    assert!(matches!(end, End::Done(_)));
    RunDirectory::open(&directory).unwrap()
}

/// A round's model, accuracy and loss.
type Round = (String, Option<f64>, Option<f64>);

/// What a run computed: each round, and the predictions for the test set.
fn results(run: &RunDirectory) -> (Vec<Round>, Vec<u8>) {
    let lines = run.lines().unwrap();
    let rounds = lines.into_iter().map(|line| (line.model_hash, line.accuracy, line.loss)).collect();
    (rounds, run.predictions().unwrap().unwrap().to_bytes())
}

#[test]
fn a_model_without_layers_trains_is_judged_resumes_and_verifies_on_the_backend_that_made_it() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    for strategy in ["fedtvd+balanced", "scaffold"] {
        let own = config("by-hand", strategy);
        let path = place(&format!("other-{}", strategy.replace('+', "-")));
        let stop = AtomicBool::new(false);
        let runner = started(&own, &path, second("second")).unwrap();
        let end = runner.run(&stop, &mut |line| stop.store(line.round == 2, Ordering::Relaxed)).unwrap();
        assert!(matches!(end, End::Stopped(2)));
        let resumed = Runner::resume(&path, &Places::new(None), Resources::on(second("second"), 1));
        let other = finished(resumed.unwrap().unwrap());

        // The same regression as layers, on this program's own kernels and without an interruption.
        let path = place(&format!("layers-{}", strategy.replace('+', "-")));
        let layers = finished(started(&config("logistic", strategy), &path, Device::default()).unwrap());
        assert_eq!(results(&other), results(&layers), "{strategy}");

        let manifest = other.manifest().unwrap();
        assert_eq!((manifest.fingerprint.device(), manifest.model_source.as_str()), ("second", "first"));
        let resources = Resources::on(second("second"), 2);
        let verdict = verify(other.path(), &Places::new(None), resources, None, &mut |_| {}).unwrap();
        assert_eq!((verdict.same_bits, verdict.rounds.len()), (Some(true), 4), "{verdict:?}");
    }
}

#[test]
fn a_device_that_does_not_repeat_its_bits_is_compared_by_accuracy_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let run = finished(started(&config("logistic", "fedavg"), &path, second("second:loose")).unwrap());
    let judge = |device: Device| {
        let resources = Resources::on(device, 1);
        verify(run.path(), &Places::new(None), resources, Some(&[1].into()), &mut |_| {}).unwrap()
    };
    let here = judge(second("second:loose"));
    let why = "device second:loose (a test, second 1.0, does not repeat bits)";
    assert_eq!((here.same_bits, here.difference.as_deref()), (None, Some(why)));
    // The kernels are the same in truth.
    assert_eq!(here.accuracy_difference, 0.0);
    let elsewhere = judge(Device::default());
    assert_eq!((elsewhere.same_bits, elsewhere.same_fingerprint), (None, false));
    assert!(elsewhere.difference.unwrap().ends_with("does not repeat bits), here cpu"));
}

#[test]
fn a_model_without_layers_is_refused_by_what_needs_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let refused = |strategy: &str, device: Device| {
        started(&config("by-hand", strategy), &path, device).err().unwrap().to_string()
    };
    assert_eq!(
        refused("fedavg", Device::default()),
        "model by-hand is not made of this program's layers, and cpu trains nothing else; choose the --device of the backend \
         that made it"
    );
    for (strategy, stays) in [("fedper", "the last layers"), ("fedbn", "batch norms")] {
        let why = refused(strategy, second("second"));
        assert!(why.starts_with(&format!("{strategy} keeps {stays} at each client")), "{why}");
        assert!(why.contains("which tensors these are is not known"), "{why}");
    }
    let why = refused("ifca", second("second"));
    assert!(why.contains("begins with several models, and the source of model by-hand makes one"), "{why}");
}

#[test]
fn a_run_is_not_resumed_with_a_model_of_another_source() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let mut own = config("by-hand", "fedavg");
    own.set("model.name=changed").unwrap();
    register_model("changed", Arc::new(Renamed("first"))).unwrap();
    let stop = AtomicBool::new(false);
    let runner = started(&own, &path, second("second")).unwrap();
    runner.run(&stop, &mut |_| stop.store(true, Ordering::Relaxed)).unwrap();
    register_model("changed", Arc::new(Renamed("second"))).unwrap();
    let resumed = Runner::resume(&path, &Places::new(None), Resources::on(second("second"), 1));
    let why = resumed.err().unwrap().to_string();
    assert!(
        why.starts_with("the source of the model changed since the run began: its hash was first"),
        "{why}"
    );
}

/// [`ByHand`] under another name.
struct Renamed(&'static str);

impl ModelSource for Renamed {
    fn define(&self, input: Shape, classes: usize) -> Result<OtherModel, String> {
        let own = ByHand { source: self.0 }.define(input, classes)?;
        Ok(OtherModel { other: "changed".to_owned(), ..own })
    }

    fn initial(&self, model: &OtherModel, seed: u64) -> Result<Vec<f32>, String> {
        ByHand { source: self.0 }.initial(model, seed)
    }
}

#[test]
fn a_source_that_makes_another_model_than_asked_for_is_refused() {
    register_model("mistaken", Arc::new(Renamed("first"))).unwrap();
    let mut own = config("by-hand", "fedavg");
    own.set("model.name=mistaken").unwrap();
    let experiment = Experiment::of(&own).unwrap();
    let data = Data::load(&experiment.data, &Places::new(None)).unwrap();
    let why = Setup::new(&experiment, &data).unwrap_err().to_string();
    assert!(why.starts_with("model mistaken: its source made changed for [1, 28, 28]"), "{why}");
}
