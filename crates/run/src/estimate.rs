//! What a run will take: a few steps are timed, the rest is arithmetic.

use crate::experiment::Experiment;
use crate::setup::Setup;
use crate::simulation::SimulationError;
use crate::summary::peak_memory;
use fedtvd_core::params::Params;
use fedtvd_core::round::cohort_size;
use fedtvd_core::stream::Key;
use fedtvd_core::trainer::Trainer as _;
use fedtvd_nn::Cpu;
use serde::Serialize;
use std::sync::Arc;
use std::time::Instant;

/// What a run will take.
#[derive(Clone, Debug, Serialize)]
pub struct Estimate {
    /// The strategy's label.
    pub strategy: String,
    /// Clients in all.
    pub clients: usize,
    /// Clients per round.
    pub cohort: usize,
    /// Numbers in the model, buffers included.
    pub parameters: usize,
    /// Rounds.
    pub rounds: u32,
    /// Samples that one worker trains on in a second.
    pub train_per_second: f64,
    /// Samples that one worker evaluates in a second.
    pub evaluate_per_second: f64,
    /// How long all rounds will take.
    pub seconds: f64,
    /// How much memory it will take; null where the system does not tell.
    pub memory_bytes: Option<u64>,
    /// Bytes that the clients of a real federation would exchange in all.
    pub bytes_exchanged: u64,
}

/// Times a few steps of one worker and estimates the rest.
pub fn estimate(experiment: &Experiment, setup: &Setup, workers: usize) -> Result<Estimate, SimulationError> {
    let before = peak_memory();
    let mut cpu = Cpu::new(&setup.network, Arc::clone(&setup.samples))?;
    let mut params = Params::initial(Arc::clone(&setup.layout), experiment.seed);
    let local = &experiment.run.local;
    let pass = fedtvd_core::pass::Pass { epochs: 1, ..local.pass(Key::of(experiment.seed), None) };
    let batch = local.batch.min(setup.samples.train_rows());
    let rows: Vec<u32> = (0..batch as u32).collect();
    let train = fastest(|| cpu.pass(&mut params, &rows, &pass).map(drop))? / batch as f64;
    let test = setup.samples.test_rows();
    let tested = &test[..test.len().min(250)];
    let evaluate = fastest(|| cpu.evaluate(&params, tested, None).map(drop))? / tested.len().max(1) as f64;
    let worker = before.zip(peak_memory()).map(|(before, after)| after.saturating_sub(before));
    let clients = setup.clients.len();
    let cohort = cohort_size(experiment.run.fraction, clients);
    let mean = setup.clients.iter().map(|client| client.rows.len()).sum::<usize>() as f64 / clients as f64;
    let trained = cohort as f64 * mean * f64::from(local.epochs);
    let round = (trained * train + test.len() as f64 * evaluate) / workers as f64;
    let model = 4 * setup.layout.len() as u64;
    let carries = experiment.run.strategy.local.needs().carries.iter();
    let carried = carries.map(|carried| 4 * carried.extent.len(&setup.layout) as u64).sum::<u64>();
    let updates = cohort as u64 * (model + carried);
    Ok(Estimate {
        strategy: experiment.run.strategy.label.clone(),
        clients,
        cohort,
        parameters: setup.layout.len(),
        rounds: experiment.rounds,
        train_per_second: 1.0 / train,
        evaluate_per_second: 1.0 / evaluate,
        seconds: round * f64::from(experiment.rounds),
        memory_bytes: worker
            .zip(peak_memory())
            .map(|(worker, now)| now + worker * (workers as u64 - 1) + updates),
        bytes_exchanged: 2 * updates * u64::from(experiment.rounds),
    })
}

/// The shortest of several tries, within about a second; the first one warms up and does not count.
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
