//! Validation on the clients' hold-outs, and that the test set is not read if it must not be.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use fedtvd_core::model::Params;
use fedtvd_core::train::{Evaluation, Pass, PassReport, TrainFailure, Trainer};
use fedtvd_data::set::Places;
use fedtvd_run::configuration::{Config, Experiment};
use fedtvd_run::directory::RunDirectory;
use fedtvd_run::runner::{End, Runner};
use fedtvd_run::setup::{Data, Setup};
use fedtvd_run::simulation::{Resources, Workers, simulation};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

fn setup(settings: &[&str]) -> (Experiment, Arc<Setup>) {
    let mut config = Config::default();
    let small = ["clients=8", "fraction=0.5", "model.name=logistic", "epochs=1", "rounds=3"];
    small.iter().chain(settings).for_each(|setting| config.set(setting).unwrap());
    let experiment = Experiment::of(&config).unwrap();
    let data = Data::load(&experiment.data, &Places::new(None)).unwrap();
    let setup = Arc::new(Setup::new(&experiment, &data).unwrap());
    (experiment, setup)
}

/// A trainer that fails if it reads one of these rows.
struct Forbidding {
    trainer: Box<dyn Trainer>,
    forbidden: BTreeSet<u32>,
}

impl Forbidding {
    fn check(&self, rows: &[u32]) -> Result<(), TrainFailure> {
        match rows.iter().find(|row| self.forbidden.contains(row)) {
            Some(row) => Err(TrainFailure::Device(format!("row {row} must not be read"))),
            None => Ok(()),
        }
    }
}

impl Trainer for Forbidding {
    fn pass(
        &mut self,
        params: &mut Params,
        rows: &[u32],
        pass: &Pass<'_>,
    ) -> Result<PassReport, TrainFailure> {
        self.check(rows)?;
        self.trainer.pass(params, rows, pass)
    }

    fn gradient(&mut self, params: &Params, rows: &[u32], pass: &Pass<'_>) -> Result<Vec<f32>, TrainFailure> {
        self.check(rows)?;
        self.trainer.gradient(params, rows, pass)
    }

    fn evaluate(
        &mut self,
        params: &Params,
        rows: &[u32],
        offsets: Option<&[f32]>,
    ) -> Result<Evaluation, TrainFailure> {
        self.check(rows)?;
        self.trainer.evaluate(params, rows, offsets)
    }

    fn logits(&mut self, params: &Params, rows: &[u32]) -> Result<Vec<f32>, TrainFailure> {
        self.check(rows)?;
        self.trainer.logits(params, rows)
    }
}

/// The workers, which fail if they read a test row.
fn forbidding(setup: &Setup, workers: usize) -> Vec<Box<dyn Trainer>> {
    let forbidden: BTreeSet<u32> = setup.samples.test_rows().iter().copied().collect();
    let workers = Workers::on_cpu(setup, workers).unwrap();
    let wrap = |trainer| Box::new(Forbidding { trainer, forbidden: forbidden.clone() }) as Box<dyn Trainer>;
    workers.trainers.into_iter().map(wrap).collect()
}

#[test]
fn a_run_without_the_test_set_never_reads_it() {
    let (experiment, own) = setup(&["split.holdout=0.2", "evaluation.test=false"]);
    let mut rounds = simulation(&experiment, &own, forbidding(&own, 2), 1 << 20).unwrap();
    for _ in 0..3 {
        let record = rounds.round().unwrap();
        assert_eq!((record.accuracy, record.loss, record.balanced), (None, None, None));
        assert!(record.validation.unwrap().samples > 0);
    }
    // The same trainers do notice a run that reads it.
    let (experiment, own) = setup(&["split.holdout=0.2"]);
    let mut rounds = simulation(&experiment, &own, forbidding(&own, 2), 1 << 20).unwrap();
    assert!(rounds.round().unwrap_err().to_string().contains("must not be read"));
}

#[test]
fn validation_sums_the_hold_outs_and_has_the_same_bits_for_any_number_of_workers() {
    let (experiment, own) = setup(&["split.holdout=0.2"]);
    let of = |workers| {
        let workers = Workers::on_cpu(&own, workers).unwrap();
        let mut rounds = simulation(&experiment, &own, workers.trainers, 1 << 20).unwrap();
        let record = rounds.round().unwrap();
        (record.validation.unwrap(), rounds.state().params.clone())
    };
    let (validation, params) = of(1);
    assert_eq!(of(3).0, validation);
    let held_out: Vec<u32> = own.clients.iter().flat_map(|client| client.holdout.clone()).collect();
    let mut workers = Workers::on_cpu(&own, 1).unwrap();
    let all = workers.trainers[0].evaluate(&params, &held_out, None).unwrap();
    assert_eq!((validation.samples, validation.accuracy), (all.samples(), all.accuracy()));
    // Sums in another order.
    assert!((validation.loss.unwrap() - all.mean_loss()).abs() < 1e-9);
    let of_client = |rows: &Vec<u32>| workers.trainers[0].evaluate(&params, rows, None).unwrap().accuracy();
    let clients: Vec<f64> = own.clients.iter().map(|client| &client.holdout).map(of_client).collect();
    let mean = clients.iter().sum::<f64>() / clients.len() as f64;
    assert!((validation.clients.mean - mean).abs() < 1e-12);
}

#[test]
fn a_finished_run_lists_its_final_model_on_each_clients_hold_out() {
    let folder = tempfile::tempdir().unwrap();
    let (mut config, out) = (Config::default(), folder.path().join("run"));
    for setting in
        ["clients=8", "fraction=0.5", "model.name=logistic", "epochs=1", "rounds=3", "split.holdout=0.2"]
    {
        config.set(setting).unwrap();
    }
    let experiment = Experiment::of(&config).unwrap();
    let data = Data::load(&experiment.data, &Places::new(None)).unwrap();
    let own = Setup::new(&experiment, &data).unwrap();
    let runner = Runner::start(&config, &data, &out, Resources::workers(2)).unwrap();
    let End::Done(summary) = runner.run(&AtomicBool::new(false), &mut |_| {}).unwrap() else { panic!() };
    let directory = RunDirectory::open(&out).unwrap();
    let results = directory.client_results().unwrap().unwrap();
    assert_eq!(results.len(), 8);
    for (result, client) in results.iter().zip(&own.clients) {
        assert_eq!((result.size, result.holdout), (client.rows.len() as u64, client.holdout.len() as u64));
    }
    let validation = directory.lines().unwrap()[2].validation.unwrap();
    assert_eq!(summary.client_accuracy, Some(validation.clients));
    let correct: f64 = results.iter().map(|result| result.accuracy * result.holdout as f64).sum();
    assert!((correct / validation.samples as f64 - validation.accuracy).abs() < 1e-12);
}

#[test]
fn what_needs_hold_outs_is_refused_without_them() {
    for (settings, expected) in [
        (
            "evaluation.test=false",
            "evaluation.test = false needs hold-outs: set split.holdout, such as split.holdout = 0.2",
        ),
        (
            "stop.patience=5",
            "stop.patience needs hold-outs: set split.holdout, such as split.holdout = 0.2; a run that stops by its test set \
             would choose its result by it",
        ),
    ] {
        let (experiment, own) = setup(&[settings]);
        let workers = Workers::on_cpu(&own, 1).unwrap();
        let error = simulation(&experiment, &own, workers.trainers, 1 << 20).err().unwrap();
        assert_eq!(error.to_string(), expected);
    }
}
