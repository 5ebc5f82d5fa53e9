//! Several strategies over several seeds, on the same splits, initial models and cohorts.

use fedtvd_core::record::RoundRecord;
use fedtvd_data::set::Places;
use fedtvd_run::config::Config;
use fedtvd_run::experiment::{Experiment, ExperimentError};
use fedtvd_run::runner::{End, RunError, Runner};
use fedtvd_run::setup::{Data, Setup, SetupError};
use fedtvd_run::simulation::Resources;
use fedtvd_run::summary::{Summary, images};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use thiserror::Error;

/// What is compared: every strategy with every seed.
pub struct Comparison {
    labels: Vec<String>,
    seeds: Vec<u64>,
    cells: Vec<Cell>,
}

struct Cell {
    strategy: usize,
    config: Config,
    experiment: Experiment,
    setup: Arc<Setup>,
}

/// A round is done somewhere.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Place of the strategy in the list.
    pub strategy: usize,
    /// Accuracy after the round.
    pub accuracy: Option<f64>,
    /// Samples trained on in the round.
    pub images: u64,
}

/// Why there is nothing to compare, or why comparing stopped.
#[derive(Debug, Error)]
pub enum ComparisonError {
    /// A strategy or configuration that cannot be.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    /// A strategy or a seed that is named twice.
    #[error("{0} is named twice; each strategy and each seed is compared once")]
    Twice(String),
    /// No data, split or model.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// A run that stopped.
    #[error("{strategy} with seed {seed}: {error}")]
    Run {
        /// Which strategy.
        strategy: String,
        /// Which seed.
        seed: u64,
        /// What happened.
        error: Box<RunError>,
    },
}

impl Comparison {
    /// Checks everything and deals the data, once per seed.
    pub fn new(
        config: &Config,
        places: &Places,
        strategies: &[String],
        seeds: &[u64],
    ) -> Result<Self, ComparisonError> {
        let configs: Vec<Config> = strategies.iter().map(|name| config.with_strategy_beside(name)).collect();
        let taken = |param: &_| configs.iter().any(|config| config.params().contains(param));
        if !config.params().iter().all(taken) {
            // What no compared strategy takes must belong to the one that the configuration names.
            Experiment::of(config)?;
        }
        let experiments: Vec<Experiment> = configs.iter().map(Experiment::of).collect::<Result<_, _>>()?;
        let labels: Vec<String> = experiments.iter().map(|e| e.run.strategy.label.clone()).collect();
        let seed_words: Vec<String> = seeds.iter().map(|seed| format!("seed {seed}")).collect();
        if let Some(word) = repeated(&labels).or_else(|| repeated(&seed_words)) {
            return Err(ComparisonError::Twice(word));
        }
        let data = Data::load(&experiments[0].data, places)?;
        let mut setups = Vec::new();
        for &seed in seeds {
            let experiment = Experiment::of(&configs[0].with_seed(seed))?;
            setups.push(Arc::new(Setup::new(&experiment, &data)?));
        }
        let mut cells = Vec::new();
        for (strategy, config) in configs.iter().enumerate() {
            for (seed, setup) in seeds.iter().zip(&setups) {
                let config = config.with_seed(*seed);
                let experiment = Experiment::of(&config)?;
                cells.push(Cell { strategy, config, experiment, setup: Arc::clone(setup) });
            }
        }
        Ok(Self { labels, seeds: seeds.to_vec(), cells })
    }

    /// The strategies' labels.
    pub fn labels(&self) -> &[String] {
        &self.labels
    }

    /// The seeds.
    pub fn seeds(&self) -> &[u64] {
        &self.seeds
    }

    /// Data, split and model of each seed.
    pub fn setups(&self) -> impl Iterator<Item = &Setup> {
        self.cells[..self.seeds.len()].iter().map(|cell| cell.setup.as_ref())
    }

    /// Rounds of each run.
    pub fn rounds(&self) -> u32 {
        self.cells.first().map_or(0, |cell| cell.experiment.rounds)
    }

    /// Runs everything into run directories below `out`, `workers` runs at a time, each on one thread; summaries
    /// come in the order of strategies and seeds.
    pub fn run(
        &self,
        out: &Path,
        workers: usize,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<Vec<Summary>, ComparisonError> {
        let next = AtomicUsize::new(0);
        let summaries = Mutex::new(Vec::with_capacity(self.cells.len()));
        let pull = || {
            while let Some((place, cell)) =
                Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|i| Some((i, self.cells.get(i)?)))
            {
                let summary = self.one(cell, out, progress);
                if summary.is_err() {
                    next.store(self.cells.len(), Ordering::Relaxed);
                }
                summaries.lock().unwrap_or_else(PoisonError::into_inner).push((place, summary));
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..workers.max(1) {
                scope.spawn(pull);
            }
        });
        let mut summaries = summaries.into_inner().unwrap_or_else(PoisonError::into_inner);
        summaries.sort_by_key(|(place, _)| *place);
        summaries.into_iter().map(|(_, summary)| summary).collect()
    }

    fn one(
        &self,
        cell: &Cell,
        out: &Path,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<Summary, ComparisonError> {
        let Cell { strategy, config, experiment, setup } = cell;
        let (strategy, seed) = (*strategy, experiment.seed);
        let label = &self.labels[strategy];
        let failed = |error| ComparisonError::Run { strategy: label.clone(), seed, error: Box::new(error) };
        let directory = out.join(format!("{}-seed{seed}", label.replace(':', "-")));
        let local = experiment.run.local;
        let runner = Runner::start_with(
            config,
            experiment.clone(),
            Arc::clone(setup),
            &directory,
            Resources::workers(1),
        )
        .map_err(failed)?
        .without_checkpoints();
        let mut show = |line: &RoundRecord| {
            progress(Progress { strategy, accuracy: line.accuracy, images: images(line, &local) });
        };
        match runner.run(&AtomicBool::new(false), &mut show).map_err(failed)? {
            End::Done(summary) => Ok(summary),
            End::Stopped(_) => unreachable!("nobody asks it to stop"),
        }
    }
}

/// The first word that stands in the list twice.
fn repeated(words: &[String]) -> Option<String> {
    let again = |(place, word): &(usize, &String)| words[..*place].contains(word);
    words.iter().enumerate().find(again).map(|(_, word)| word.clone())
}
