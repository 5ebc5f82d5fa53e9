//! Estimates the time and memory of a run: a few steps are timed, the rest is computed.

use crate::backend::BackendError;
use crate::configuration::Experiment;
use crate::directory::summary::{memory, peak_memory};
use crate::footprint::Footprint;
use crate::setup::Setup;
use crate::simulation::{Resources, SimulationError, check};
use crate::start_model::StartModel;
use fedtvd_core::stream::Key;
use fedtvd_core::train::TrainFailure;
use serde::Serialize;
use std::time::Instant;
use thiserror::Error;

/// The estimated time, memory and traffic of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Estimate {
    /// The strategy's label.
    pub strategy: String,
    /// Number of clients.
    pub clients: usize,
    /// Number of clients per round.
    pub cohort: usize,
    /// Number of parameters of the model, buffers included.
    pub parameters: usize,
    /// Number of rounds.
    pub rounds: u32,
    /// Samples per second that one worker trains on.
    pub train_per_second: f64,
    /// Samples per second that one worker evaluates.
    pub evaluate_per_second: f64,
    /// Total time of all rounds.
    pub seconds: f64,
    /// Peak memory; null if the system does not report its memory.
    pub memory_bytes: Option<u64>,
    /// Total bytes that the clients of a real federation would send and receive.
    pub bytes_exchanged: u64,
}

/// Why a run cannot be estimated.
#[derive(Debug, Error)]
pub enum EstimateError {
    /// A run that would be refused.
    #[error(transparent)]
    Refused(#[from] SimulationError),
    /// The model cannot be trained here.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// A step failed.
    #[error(transparent)]
    Train(#[from] TrainFailure),
}

/// Times a few steps of one worker and estimates the rest.
pub fn estimate(
    experiment: &Experiment,
    setup: &Setup,
    resources: Resources,
) -> Result<Estimate, EstimateError> {
    check(experiment, setup)?;
    let mut params =
        StartModel::of(experiment, &setup.model, &setup.layout).map_err(SimulationError::from)?.params;
    let before = memory();
    let mut trainer = resources.device.trainer(&setup.model, &setup.samples)?;
    let local = &experiment.run.local;
    let pass = fedtvd_core::train::Pass { epochs: 1, ..local.pass(Key::of(experiment.seed), None, None) };
    let batch = local.batch.min(setup.samples.train_rows());
    let rows: Vec<u32> = (0..batch as u32).collect();
    let train = fastest(|| trainer.pass(&mut params, &rows, &pass).map(drop))? / batch as f64;
    let test = setup.samples.test_rows();
    let tested = &test[..test.len().min(250)];
    let evaluate =
        fastest(|| trainer.evaluate(&params, tested, None).map(drop))? / tested.len().max(1) as f64;
    let worker = before.zip(memory()).map(|(before, now)| now.saturating_sub(before));
    let footprint = Footprint::of(experiment, setup);
    let Footprint { clients, cohort, rounds, .. } = footprint;
    let mean = setup.clients.iter().map(|client| client.rows.len()).sum::<usize>() as f64 / clients as f64;
    let trained = cohort as f64 * mean * f64::from(local.epochs);
    let round = (trained * train + test.len() as f64 * evaluate) / resources.workers as f64;
    let taken = |(before, worker)| footprint.peak(before, worker, &resources);
    Ok(Estimate {
        strategy: experiment.run.strategy.label.clone(),
        clients,
        cohort,
        parameters: setup.layout.len(),
        rounds,
        train_per_second: 1.0 / train,
        evaluate_per_second: 1.0 / evaluate,
        seconds: round * f64::from(rounds),
        memory_bytes: before.zip(worker).map(taken).max(peak_memory()),
        bytes_exchanged: cohort as u64 * (footprint.job() + footprint.update()) * u64::from(rounds),
    })
}

/// The shortest of several runs within about a second; the first is a warm-up and not counted.
fn fastest<E>(mut work: impl FnMut() -> Result<(), E>) -> Result<f64, E> {
    work()?;
    let started = Instant::now();
    let mut best = f64::INFINITY;
    while best.is_infinite() || started.elapsed().as_secs_f64() < 0.5 {
        let one = Instant::now();
        work()?;
        best = best.min(one.elapsed().as_secs_f64());
    }
    Ok(best)
}
