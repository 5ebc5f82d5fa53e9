//! Runs the candidates, step by step, and chooses the best one of each strategy. Repeating a search resumes it: every run is
//! found in its folder and extended where it stopped, and a candidate is judged by the same rounds as before.

use crate::experiments::grid::Cell;
use crate::experiments::sweep::RunStatus;
use crate::experiments::tuning::candidates::{Candidate, TunedStrategy};
use crate::experiments::tuning::choice::{best, collapsed, mean_score, score};
use crate::experiments::tuning::ladder::{Rung, ladder};
use fedtvd_run::configuration::{Config, Value};
use fedtvd_run::directory::RunDirectory;
use fedtvd_run::{RunError, extend};
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;
use thiserror::Error;

/// What tuning found for a strategy.
#[derive(Clone, Debug, Serialize)]
pub struct Choice {
    /// The strategy's name, as it was given.
    pub strategy: String,
    /// Its label with the chosen parameters.
    pub label: String,
    /// The chosen values of other keys, as `key = value`.
    pub setting: Vec<String>,
    /// The mean over tuning seeds of its metric on the hold-outs.
    pub validation: f64,
    /// Number of candidates.
    pub candidates: usize,
    /// Number of candidates that collapsed with some seed, which are never chosen.
    pub collapsed: usize,
    /// Number of tuning runs.
    pub runs: usize,
    /// Rounds of all of them.
    pub rounds: u64,
    /// All candidates.
    pub tried: Vec<Tried>,
    /// The configuration of the final runs.
    #[serde(skip)]
    pub config: Config,
}

/// How far a candidate came.
#[derive(Clone, Debug, Serialize)]
pub struct Tried {
    /// The strategy's label with its parameters.
    pub label: String,
    /// The values of other keys.
    pub setting: Vec<String>,
    /// Rounds that it trained for with each seed.
    pub rounds: Vec<u32>,
    /// Its metric with each seed; null if it is unknown, or if that run collapsed.
    pub scores: Vec<Option<f64>>,
    /// Number of seeds with which it collapsed.
    pub collapsed: usize,
}

/// Why a search did not end with a choice.
#[derive(Debug, Error)]
pub enum SearchError {
    /// A run failed.
    #[error("{label} with seed {seed}: {error}")]
    Failed {
        /// The strategy's label.
        label: String,
        /// The seed.
        seed: u64,
        /// Why.
        error: Arc<RunError>,
    },
    /// Some runs are not finished, since the search was stopped.
    #[error("{0} tuning runs are unfinished; repeat the command to resume")]
    Stopped(usize),
    /// No candidate of a strategy can be chosen.
    #[error(
        "none of the {candidates} candidates of {strategy} can be chosen: {collapsed} collapsed, the others have no value of \
         evaluation.metric on the hold-outs; if they collapsed, try smaller learning rates"
    )]
    NoChoice {
        /// The strategy.
        strategy: String,
        /// How many candidates it has.
        candidates: usize,
        /// How many of them collapsed with some seed.
        collapsed: usize,
    },
    /// A run cannot be read or extended.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// A search in progress: the caller runs the cells of each step, and the search judges them.
pub struct Search<'a> {
    searches: Vec<StrategySearch<'a>>,
    /// The folder of the runs.
    out: &'a Path,
    step: usize,
}

/// Steps are at least this long.
const LEAST_ROUNDS: u32 = 5;

/// The search for one strategy, and the candidates that are left.
struct StrategySearch<'a> {
    strategy: &'a TunedStrategy,
    rungs: Vec<Rung>,
    left: Vec<usize>,
    tried: Vec<Tried>,
}

impl<'a> Search<'a> {
    /// A search over these strategies, whose runs are in folders below `out`. `halving` is the factor of successive halving;
    /// without it all candidates train to the end.
    pub fn new(strategies: &'a [TunedStrategy], halving: Option<u32>, out: &'a Path) -> Self {
        let searches = strategies.iter().map(|strategy| StrategySearch::new(strategy, halving)).collect();
        Self { searches, out, step: 0 }
    }

    /// Number of rounds of all tuning runs, if none stops early.
    pub fn planned_rounds(&self) -> u64 {
        self.searches.iter().map(StrategySearch::planned_rounds).sum()
    }

    /// Number of steps.
    pub fn steps(&self) -> usize {
        self.searches.iter().map(|search| search.rungs.len()).max().unwrap_or(0)
    }

    /// The runs of the next step; `None` after the last one. Runs that exist are made as long as the step asks for.
    pub fn next_cells(&self) -> Result<Option<Vec<Cell>>, SearchError> {
        let cells: Vec<Cell> = self.searches.iter().flat_map(|search| search.cells(self.step)).collect();
        for cell in &cells {
            lengthen(&self.out.join(&cell.folder), cell.experiment.rounds)?;
        }
        Ok((!cells.is_empty()).then_some(cells))
    }

    /// Judges the candidates after a step, and keeps the best of them.
    pub fn judge(&mut self, cells: &[Cell], statuses: &[RunStatus]) -> Result<(), SearchError> {
        check(cells, statuses)?;
        for search in self.searches.iter_mut().filter(|search| self.step < search.rungs.len()) {
            search.judge(self.step, self.out)?;
        }
        self.step += 1;
        Ok(())
    }

    /// What was chosen after the last step.
    pub fn choices(self) -> Result<Vec<Choice>, SearchError> {
        self.searches.into_iter().map(StrategySearch::choice).collect()
    }
}

impl<'a> StrategySearch<'a> {
    fn new(strategy: &'a TunedStrategy, halving: Option<u32>) -> Self {
        let candidates = &strategy.candidates;
        let experiment =
            candidates.first().and_then(|first| first.cells.first()).map(|cell| &cell.experiment);
        let (rounds, every) = experiment.map_or((1, 1), |own| (own.rounds, own.evaluation.every));
        let tried = |candidate: &Candidate| Tried {
            label: candidate.label.clone(),
            setting: candidate.setting.clone(),
            rounds: Vec::new(),
            scores: Vec::new(),
            collapsed: 0,
        };
        Self {
            strategy,
            rungs: ladder(candidates.len(), rounds, halving, LEAST_ROUNDS.max(every)),
            left: (0..candidates.len()).collect(),
            tried: candidates.iter().map(tried).collect(),
        }
    }

    fn planned_rounds(&self) -> u64 {
        let seeds = self.strategy.candidates.first().map_or(0, |first| first.cells.len()) as u64;
        let (mut left, mut before, mut sum) = (self.left.len() as u64, 0, 0);
        for rung in &self.rungs {
            sum += left * seeds * u64::from(rung.rounds - before);
            (left, before) = (rung.kept as u64, rung.rounds);
        }
        sum
    }

    /// The runs of a step: those of the full length, cut to the rounds of the step.
    fn cells(&self, step: usize) -> Vec<Cell> {
        let Some(rung) = self.rungs.get(step) else { return Vec::new() };
        let cut = |cell: &Cell| {
            let mut cell = cell.clone();
            // A whole number in the key's range: it is at most that of the configuration.
            let _ = cell.config.set(&format!("rounds={}", rung.rounds));
            (cell.experiment.rounds, cell.experiment.evaluation.last) = (rung.rounds, rung.rounds);
            cell
        };
        self.left.iter().flat_map(|place| self.strategy.candidates[*place].cells.iter().map(cut)).collect()
    }

    /// Scores the candidates after a step and keeps the best.
    fn judge(&mut self, step: usize, out: &Path) -> Result<(), SearchError> {
        let rung = self.rungs[step];
        let mut means = Vec::new();
        let mut metric = None;
        for &place in &self.left {
            let (candidate, tried) = (&self.strategy.candidates[place], &mut self.tried[place]);
            (tried.rounds, tried.scores, tried.collapsed) = (Vec::new(), Vec::new(), 0);
            for cell in &candidate.cells {
                let run = RunDirectory::open(&out.join(&cell.folder)).map_err(RunError::from)?;
                let lines = run.lines().map_err(RunError::from)?;
                let collapsed = collapsed(&lines, rung.rounds);
                let score = score(&lines, rung.rounds, &cell.experiment.evaluation);
                tried.rounds.push(rung.rounds.min(lines.len() as u32));
                tried.scores.push(score.filter(|_| !collapsed));
                tried.collapsed += usize::from(collapsed);
                metric = Some(cell.experiment.evaluation.metric);
            }
            means.push(mean_score(&tried.scores));
        }
        if let Some(metric) = metric {
            self.left = best(metric, &means, rung.kept).into_iter().map(|place| self.left[place]).collect();
        }
        Ok(())
    }

    fn choice(self) -> Result<Choice, SearchError> {
        let Self { strategy, left, tried, .. } = self;
        let chosen = left.first().and_then(|place| Some((*place, mean_score(&tried[*place].scores)?)));
        let candidates = tried.len();
        let collapsed = tried.iter().filter(|tried| tried.collapsed > 0).count();
        let Some((place, validation)) = chosen else {
            return Err(SearchError::NoChoice { strategy: strategy.name.clone(), candidates, collapsed });
        };
        let Candidate { label, setting, config, .. } = strategy.candidates[place].clone();
        let runs = tried.iter().map(|tried| tried.scores.len()).sum();
        let rounds = tried.iter().flat_map(|tried| &tried.rounds).map(|rounds| u64::from(*rounds)).sum();
        let strategy = strategy.name.clone();
        Ok(Choice {
            strategy,
            label,
            setting,
            validation,
            candidates,
            collapsed,
            runs,
            rounds,
            tried,
            config,
        })
    }
}

/// Makes a run that exists at least this long.
fn lengthen(directory: &Path, rounds: u32) -> Result<(), RunError> {
    if !directory.join("manifest.json").is_file() {
        return Ok(());
    }
    let config = Config::parse(&RunDirectory::open(directory)?.config()?)?;
    match config.get("rounds") {
        Value::Whole(own) if own < u64::from(rounds) => extend(directory, &[format!("rounds={rounds}")]),
        _ => Ok(()),
    }
}

/// Fails unless all runs are done.
fn check(cells: &[Cell], statuses: &[RunStatus]) -> Result<(), SearchError> {
    for (cell, status) in cells.iter().zip(statuses) {
        if let RunStatus::Failed(error) = status {
            let (label, seed) = (cell.experiment.run.strategy.label.clone(), cell.experiment.seed);
            return Err(SearchError::Failed { label, seed, error: Arc::clone(error) });
        }
    }
    match statuses.iter().filter(|status| !matches!(status, RunStatus::Done(_))).count() {
        0 => Ok(()),
        left => Err(SearchError::Stopped(left)),
    }
}
