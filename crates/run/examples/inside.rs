//! Measures how much of a run's time is spent inside the trainers: `inside CONFIG WORKERS ROUNDS`. Prints one JSON
//! object.
//!
//! The rounds are those of `fedtvd run`, without their files; every trainer is timed.

use fedtvd_core::model::Params;
use fedtvd_core::train::{Evaluation, Pass, PassReport, TrainFailure, Trainer};
use fedtvd_data::set::Places;
use fedtvd_nn::Cpu;
use fedtvd_run::configuration::{Config, Experiment};
use fedtvd_run::setup::{Data, Setup};
use fedtvd_run::simulation::{Resources, simulation};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// A trainer, and the total nanoseconds spent in all trainers.
struct Timed {
    cpu: Cpu,
    spent: Arc<AtomicU64>,
}

impl Timed {
    fn time<T>(&mut self, work: impl FnOnce(&mut Cpu) -> T) -> T {
        let started = Instant::now();
        let result = work(&mut self.cpu);
        self.spent.fetch_add(started.elapsed().as_nanos() as u64, Ordering::Relaxed);
        result
    }
}

impl Trainer for Timed {
    fn pass(
        &mut self,
        params: &mut Params,
        rows: &[u32],
        pass: &Pass<'_>,
    ) -> Result<PassReport, TrainFailure> {
        self.time(|cpu| cpu.pass(params, rows, pass))
    }

    fn gradient(&mut self, params: &Params, rows: &[u32], pass: &Pass<'_>) -> Result<Vec<f32>, TrainFailure> {
        self.time(|cpu| cpu.gradient(params, rows, pass))
    }

    fn evaluate(
        &mut self,
        params: &Params,
        rows: &[u32],
        offsets: Option<&[f32]>,
    ) -> Result<Evaluation, TrainFailure> {
        self.time(|cpu| cpu.evaluate(params, rows, offsets))
    }

    fn logits(&mut self, params: &Params, rows: &[u32]) -> Result<Vec<f32>, TrainFailure> {
        self.time(|cpu| cpu.logits(params, rows))
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |place: usize| arguments[place].parse::<usize>().expect("a number");
    let (workers, rounds) = (number(2), number(3));
    let config = Config::parse(&std::fs::read_to_string(&arguments[1]).expect("a configuration"));
    let experiment = Experiment::of(&config.expect("TOML")).expect("an experiment");
    let data = Data::load(&experiment.data, &Places::new(None)).expect("a data set");
    let setup = Arc::new(Setup::new(&experiment, &data).expect("a setup"));
    let spent = Arc::new(AtomicU64::new(0));
    let trainer = |_| {
        let network = setup.model.network().expect("a model of layers");
        let cpu = Cpu::new(network, Arc::clone(&setup.samples)).expect("a model that fits");
        Box::new(Timed { cpu, spent: Arc::clone(&spent) }) as Box<dyn Trainer>
    };
    let trainers = (0..workers).map(trainer).collect();
    let memory = Resources::workers(workers).update_memory;
    let mut simulation = simulation(&experiment, &setup, trainers, memory).expect("a simulation");
    let (mut bytes, started) = (0, Instant::now());
    for _ in 0..rounds {
        let record = simulation.round().expect("a round");
        bytes += serde_json::to_string(&record).expect("a record is plain data").len();
    }
    let seconds = started.elapsed().as_secs_f64();
    let inside = spent.load(Ordering::Relaxed) as f64 * 1e-9;
    let share = inside / (seconds * workers as f64);
    assert!(bytes > 0, "at least one round was asked for");
    println!("{{\"seconds\":{seconds},\"inside\":{inside},\"share\":{share}}}");
}
