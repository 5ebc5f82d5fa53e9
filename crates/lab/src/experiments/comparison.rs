//! Several strategies and seeds, on the same splits, initial models and cohorts: a grid with two axes.

use crate::experiments::grid::{Cell, GridError, cells};
use crate::experiments::sweep::Sweep;
use fedtvd_core::labels::{Reference, tvd};
use fedtvd_core::model::Shape;
use fedtvd_run::configuration::{Axis, Config, Experiment, ExperimentError, Value};
use fedtvd_run::setup::SetupError;
use std::collections::BTreeSet;
use thiserror::Error;

/// A comparison: every strategy with every seed.
pub struct Comparison {
    labels: Vec<String>,
    cells: Vec<Cell>,
}

/// Statistics of the clients of all seeds.
#[derive(Clone, Debug, Default)]
pub struct Population {
    /// Number of clients in the first seed's split.
    pub clients: usize,
    /// Mean total variation distance (TVD) of their label distributions to the uniform one.
    pub mean_tvd: f64,
    /// Samples of the smallest and of the largest client.
    pub sizes: [usize; 2],
    /// Shape of the samples.
    pub shape: Shape,
    /// Notes about data and splits, without duplicates.
    pub notes: BTreeSet<String>,
}

/// Why a comparison is not possible.
#[derive(Debug, Error)]
pub enum ComparisonError {
    /// An invalid strategy or configuration.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    /// An invalid seed.
    #[error(transparent)]
    Grid(#[from] GridError),
    /// A duplicate strategy or seed.
    #[error("{0} is listed twice; list each strategy and each seed once")]
    Twice(String),
}

impl Comparison {
    /// The grid of these strategies and seeds, based on a configuration.
    pub fn new(config: &Config, strategies: &[String], seeds: &[u64]) -> Result<Self, ComparisonError> {
        let configs: Vec<Config> = strategies.iter().map(|name| config.with_strategy_beside(name)).collect();
        let taken = |param: &_| configs.iter().any(|config| config.params().contains(param));
        if !config.params().iter().all(taken) {
            // A parameter that no compared strategy has must belong to the strategy that the configuration names.
            Experiment::of(config)?;
        }
        let experiments: Vec<Experiment> = configs.iter().map(Experiment::of).collect::<Result<_, _>>()?;
        let labels: Vec<String> = experiments.iter().map(|e| e.run.strategy.label.clone()).collect();
        let seed_words: Vec<String> = seeds.iter().map(|seed| format!("seed {seed}")).collect();
        if let Some(word) = repeated(&labels).or_else(|| repeated(&seed_words)) {
            return Err(ComparisonError::Twice(word));
        }
        let axis = |path: &str, values: Vec<Value>| {
            let choices = values.into_iter().map(|value| vec![(path.to_owned(), value)]).collect();
            Axis { path: path.to_owned(), line: 0, choices }
        };
        let axes = [
            axis("seed", seeds.iter().map(|&seed| Value::Whole(seed)).collect()),
            axis("strategy.name", strategies.iter().cloned().map(Value::Text).collect()),
        ];
        Ok(Self { labels, cells: cells(config, &axes)? })
    }

    /// The strategies' labels.
    pub fn labels(&self) -> &[String] {
        &self.labels
    }

    /// All runs: seeds outermost, strategies in their order innermost.
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// The runs of the first seed, one per strategy.
    pub fn first_seed(&self) -> &[Cell] {
        &self.cells[..self.labels.len()]
    }

    /// Number of seeds.
    pub fn seeds(&self) -> usize {
        self.cells.len() / self.labels.len()
    }

    /// Rounds of each run.
    pub fn rounds(&self) -> u32 {
        self.cells.first().map_or(0, |cell| cell.experiment.rounds)
    }

    /// Index of the strategy of the run with this index.
    pub fn strategy(&self, place: usize) -> usize {
        place % self.labels.len()
    }

    /// Statistics of all seeds' splits.
    pub fn population(&self, sweep: &Sweep<'_>) -> Result<Population, SetupError> {
        let mut all = Population::default();
        let (mut distances, mut sizes) = (Vec::new(), Vec::new());
        for seed in self.cells.chunks(self.labels.len()) {
            let setup = sweep.setup(&seed[0].experiment)?;
            let uniform = Reference::uniform(setup.samples.classes());
            distances.extend(setup.clients.iter().map(|client| tvd(&client.counts, &uniform)));
            sizes.extend(setup.clients.iter().map(|client| client.rows.len()));
            all.notes.extend(setup.notes.iter().cloned());
            if all.clients == 0 {
                (all.clients, all.shape) = (setup.clients.len(), setup.samples.shape());
            }
        }
        all.mean_tvd = crate::stats::statistics::mean(&distances);
        all.sizes = [sizes.iter().min(), sizes.iter().max()].map(|size| size.copied().unwrap_or(0));
        Ok(all)
    }
}

/// The first duplicate in the list.
fn repeated(words: &[String]) -> Option<String> {
    let again = |(place, word): &(usize, &String)| words[..*place].contains(word);
    words.iter().enumerate().find(again).map(|(_, word)| word.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedtvd_run::configuration::axes;

    #[test]
    fn a_comparison_and_a_sweep_over_the_same_have_the_same_folders() {
        let text =
            "rounds = 2\n[sweep]\nseed = [3, 4]\n\"strategy.name\" = [\"fedavg\", \"fedtvd:lambda=0.25\"]\n";
        let config = Config::parse(text).unwrap();
        let swept = cells(&config, &axes(text).unwrap()).unwrap();
        let names = ["fedavg", "fedtvd:lambda=0.25"].map(str::to_owned);
        let compared = Comparison::new(&config, &names, &[3, 4]).unwrap();
        let folders = |cells: &[Cell]| cells.iter().map(|cell| cell.folder.clone()).collect::<Vec<_>>();
        assert_eq!(folders(compared.cells()), folders(&swept));
        assert_eq!((compared.seeds(), compared.rounds(), compared.strategy(3)), (2, 2, 1));
        assert_eq!(folders(compared.first_seed()), folders(&swept[..2]));
    }
}
