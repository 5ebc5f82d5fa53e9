//! A run on one machine: its rounds over a fleet of threads.

use crate::backend::{BackendError, Description, Device};
use crate::configuration::{ClassMismatch, EvaluationOptions, Experiment};
use crate::directory::Fingerprint;
use crate::fleet::{Adversarial, Fleet, Threads, Unreliable};
use crate::rounds::Rounds;
use crate::setup::Setup;
use crate::start_model::{StartError, StartModel};
use fedtvd_core::labels::{Reference, ReferenceError, size};
use fedtvd_core::round::quorum::{IdleSelection, SmallCohort, check_cohort, check_selection};
use fedtvd_core::round::{ClientData, Run, State, cohort_size, hardened};
use fedtvd_core::train::Trainer;
use fedtvd_data::split::Planted;
use std::sync::Arc;
use thiserror::Error;

/// The resources of a run; only the device affects the result.
#[derive(Clone, Debug)]
pub struct Resources {
    /// Threads that train clients.
    pub workers: usize,
    /// Bytes of updates that stay in memory; the others go to a temporary file.
    pub update_memory: usize,
    /// What trains and evaluates.
    pub device: Device,
}

impl Resources {
    /// This many workers on the CPU, and 128 MB for updates.
    pub fn workers(workers: usize) -> Self {
        Self::on(Device::default(), workers)
    }

    /// This many workers on a device, and 128 MB for updates.
    pub fn on(device: Device, workers: usize) -> Self {
        Self { workers, update_memory: 128 << 20, device }
    }
}

/// Why a simulation cannot start.
#[derive(Debug, Error)]
pub enum SimulationError {
    /// The model cannot be trained here.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The model to start from.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The clients' label counts make no reference.
    #[error("labels.reference = aggregated: {0}")]
    Aggregated(ReferenceError),
    /// The reference is for another number of classes.
    #[error(transparent)]
    Reference(#[from] ClassMismatch),
    /// Rounds with too few clients for the mode or the strategy.
    #[error(transparent)]
    Cohort(#[from] SmallCohort),
    /// Rounds that leave the strategy no clients to select.
    #[error(transparent)]
    Selection(#[from] IdleSelection),
    /// A quorum that no round can reach.
    #[error("cohort.quorum = {quorum} is more than the number of clients per round, {cohort}")]
    Quorum {
        /// The quorum.
        quorum: usize,
        /// Number of clients per round.
        cohort: usize,
    },
    /// No test set.
    #[error(
        "the data set has no test rows to evaluate the model on; split.holdout = 0.2 with evaluation.test = false evaluates it \
         on the clients' hold-outs"
    )]
    NoTest,
    /// Hold-outs are needed, and no client has one.
    #[error("{0} needs hold-outs: set split.holdout, such as split.holdout = 0.2{1}")]
    NoHoldouts(String, &'static str),
}

/// The trainers of a simulation, one per worker, and the fingerprint of their device.
pub struct Workers {
    /// One trainer per thread; at least one.
    pub trainers: Vec<Box<dyn Trainer>>,
    /// The device's fingerprint.
    pub fingerprint: Fingerprint,
}

impl Workers {
    /// Trainers of a model on its data, on a device.
    pub fn on(device: &Device, setup: &Setup, workers: usize) -> Result<Self, SimulationError> {
        let Description { fingerprint, .. } = device.describe()?;
        let trainer = |_| device.trainer(&setup.model, &setup.training);
        let trainers = (0..workers.max(1)).map(trainer).collect::<Result<_, _>>()?;
        Ok(Self { trainers, fingerprint })
    }

    /// The same on the CPU.
    pub fn on_cpu(setup: &Setup, workers: usize) -> Result<Self, SimulationError> {
        Self::on(&Device::default(), setup, workers)
    }
}

/// Refuses a simulation whose rounds could not change or evaluate the model.
pub(crate) fn check(experiment: &Experiment, setup: &Setup) -> Result<(), SimulationError> {
    let EvaluationOptions { test, patience, .. } = experiment.evaluation;
    let held_out = setup.clients.iter().any(|client| !client.holdout.is_empty());
    match (test, patience) {
        (true, _) if setup.samples.test_rows().is_empty() => return Err(SimulationError::NoTest),
        (false, _) if !held_out => {
            return Err(SimulationError::NoHoldouts("evaluation.test = false".to_owned(), ""));
        }
        _ if experiment.split.groups != Planted::default() && !held_out => {
            let why = "; the test set is that of group 0, and says nothing about the others";
            return Err(SimulationError::NoHoldouts("split.groups".to_owned(), why));
        }
        (_, Some(_)) if !held_out => {
            let why = "; a run that stops by its test set would choose its result by it";
            return Err(SimulationError::NoHoldouts("stop.patience".to_owned(), why));
        }
        _ => {}
    }
    let strategy = &experiment.run.strategy;
    if strategy.needs().holdout && !held_out {
        return Err(SimulationError::NoHoldouts(
            strategy.label.clone(),
            ", since its clients decide by them how to train",
        ));
    }
    let Run { fraction, quorum, .. } = experiment.run;
    check_cohort(&experiment.run, setup.clients.len())?;
    check_selection(&experiment.run, setup.clients.len())?;
    let cohort = cohort_size(fraction, setup.clients.len());
    if quorum > cohort { Err(SimulationError::Quorum { quorum, cohort }) } else { Ok(()) }
}

/// The rounds of a simulation, before the first one.
pub fn simulation(
    experiment: &Experiment,
    setup: &Arc<Setup>,
    trainers: Vec<Box<dyn Trainer>>,
    update_memory: usize,
) -> Result<Rounds, SimulationError> {
    check(experiment, setup)?;
    let reference = reference(experiment, setup)?;
    let run = experiment.run.clone();
    let threads = Threads::new(
        Arc::clone(setup),
        trainers,
        update_memory,
        run.strategy.clone(),
        experiment.evaluation.test,
    );
    let mut fleet: Box<dyn Fleet> = Box::new(threads);
    if experiment.dropout.any() {
        fleet = Box::new(Unreliable { fleet, dropout: experiment.dropout });
    }
    if let Some(liars) = experiment.liars {
        let counts = setup.clients.iter().take(liars.clients).map(|client| client.counts.clone());
        let (attack, needs) = (liars.attack, run.strategy.needs());
        fleet = Box::new(Adversarial { fleet, attack, liars: counts.collect(), needs, update_memory });
    }
    let params = StartModel::of(experiment, &setup.model, &setup.layout)?.params;
    let state = State::new(&run, params, reference);
    Ok(Rounds::new(run, experiment.evaluation, state, fleet, Some(Arc::clone(setup))))
}

/// The reference label distribution Q of a simulation.
pub fn reference(experiment: &Experiment, setup: &Setup) -> Result<Reference, SimulationError> {
    if let Some(reference) = experiment.reference.resolve(setup.samples.classes())? {
        return Ok(reference);
    }
    let counts = collected_counts(experiment, setup);
    let clients: Vec<_> = counts.iter().map(|counts| (size(counts), counts.as_slice())).collect();
    hardened::reference(experiment.run.mode, &clients).map_err(SimulationError::Aggregated)
}

/// The label counts that clients report for an aggregated reference, before there is one.
fn collected_counts(experiment: &Experiment, setup: &Setup) -> Vec<Vec<u64>> {
    let uniform = Reference::uniform(setup.samples.classes());
    let reported = |(client, data): (usize, &ClientData)| match experiment.liars {
        Some(liars) if client < liars.clients => liars.attack.counts(&data.counts, &uniform),
        _ => data.counts.clone(),
    };
    setup.clients.iter().enumerate().map(reported).collect()
}
