//! The candidates of each strategy: all combinations of the grid's values, each with every tuning seed.

use crate::experiments::grid::{Cell, GridError, InvalidCombination, swept, valid_cells};
use fedtvd_run::configuration::{Axis, Config, ConfigError, Experiment, ExperimentError, Value};
use std::collections::BTreeSet;
use thiserror::Error;

/// One combination of values of a strategy.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The strategy's label, with its parameters.
    pub label: String,
    /// The values of other keys, as `key = value`.
    pub setting: Vec<String>,
    /// Its configuration for the final runs, without a seed of its own.
    pub config: Config,
    /// Its tuning runs, one per seed.
    pub cells: Vec<Cell>,
}

/// A strategy and its candidates.
#[derive(Clone, Debug)]
pub struct TunedStrategy {
    /// Its name, as it was given.
    pub name: String,
    /// Its candidates, in the order of the grid.
    pub candidates: Vec<Candidate>,
    /// The combinations that it cannot train with, but other strategies can.
    pub left_out: Vec<InvalidCombination>,
}

impl TunedStrategy {
    /// Notes on the combinations that are left out, one for each reason.
    pub fn notes(&self) -> Vec<String> {
        let mut reasons: Vec<(String, usize)> = Vec::new();
        for reason in self.left_out.iter().map(|left_out| left_out.error.to_string()) {
            match reasons.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, count)) => *count += 1,
                None => reasons.push((reason, 1)),
            }
        }
        let all = self.candidates.len() + self.left_out.len();
        let note = |(reason, count): &(String, usize)| {
            format!("{} is tuned without {count} of the {all} combinations: {reason}", self.name)
        };
        reasons.iter().map(note).collect()
    }
}

/// Why there is nothing to tune.
#[derive(Debug, Error)]
pub enum TuningError {
    /// An invalid configuration.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    /// An invalid key or value.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// An invalid grid.
    #[error(transparent)]
    Grid(#[from] GridError),
    /// A key that a grid must not set.
    #[error("{0} cannot be tuned; {1}")]
    Fixed(String, &'static str),
    /// A duplicate strategy.
    #[error("{0} is listed twice; list each strategy once")]
    Twice(String),
    /// A parameter that no strategy has.
    #[error("{0} has no effect: none of the strategies has it")]
    NoEffect(String),
    /// A parameter that a strategy's name sets.
    #[error("{0} sets {1} itself, which the grid tunes; leave it out of the name, or out of the grid")]
    SetByName(String, String),
    /// Too few rounds to evaluate a candidate.
    #[error("rounds = {rounds} is below evaluation.every = {every}: no candidate would be evaluated")]
    NotEvaluated {
        /// The rounds of each run.
        rounds: u32,
        /// After how many of them the model is evaluated.
        every: u32,
    },
    /// A seed that is used for tuning and for the result.
    #[error("seed {0} is used for tuning and for the result; they must be different seeds")]
    SharedSeed(u64),
}

/// Keys that are not hyperparameters, and why.
const FIXED: [(&str, &str); 7] = [
    ("seed", "use --seeds and --tuning-seeds"),
    ("strategy.name", "use --strategies"),
    ("rounds", "all candidates train for the same number of rounds"),
    ("data.", "all candidates train on the same data"),
    ("split.", "all candidates train on the same split"),
    ("evaluation.", "all candidates are evaluated in the same way"),
    ("stop.", "all candidates stop by the same rule"),
];

/// The fraction that clients hold out if the configuration says nothing.
pub const HOLDOUT: f64 = 0.2;

/// The configuration with hold-outs to choose by.
pub fn with_holdouts(config: &Config) -> Result<Config, ConfigError> {
    let mut config = config.clone();
    if config.get("split.holdout") == Value::Number(0.0) {
        config.set(&format!("split.holdout={HOLDOUT}"))?;
    }
    Ok(config)
}

/// The candidates of all strategies.
pub fn candidates(
    config: &Config,
    strategies: &[String],
    grid: &[Axis],
    seeds: &[u64],
) -> Result<Vec<TunedStrategy>, TuningError> {
    for path in swept(grid)? {
        let own = |(key, _): &&(&str, _)| path == *key || key.ends_with('.') && path.starts_with(key);
        if let Some((_, why)) = FIXED.iter().find(own) {
            return Err(TuningError::Fixed(path, why));
        }
    }
    let base = with_holdouts(config)?;
    let Experiment { rounds, evaluation, .. } = Experiment::of(&base.with_strategy("fedavg"))?;
    if rounds < evaluation.every {
        return Err(TuningError::NotEvaluated { rounds, every: evaluation.every });
    }
    let mut all: Vec<TunedStrategy> = Vec::new();
    let mut labels = BTreeSet::new();
    for name in strategies {
        let found = of_strategy(&base, name, grid, seeds)?;
        if !found
            .candidates
            .iter()
            .all(|candidate| labels.insert((candidate.label.clone(), candidate.setting.clone())))
        {
            return Err(TuningError::Twice(name.clone()));
        }
        all.push(found);
    }
    let without_any = all.iter().find(|strategy| strategy.candidates.is_empty());
    let of_all = |invalid: &&InvalidCombination| {
        let is_same = |other: &InvalidCombination| other.setting == invalid.setting;
        all.iter().all(|strategy| strategy.left_out.iter().any(is_same))
    };
    let mut invalid = all.iter().flat_map(|strategy| &strategy.left_out);
    // What no strategy can train with is a mistake in the grid.
    if let Some(invalid) =
        without_any.and_then(|strategy| strategy.left_out.first()).or_else(|| invalid.find(of_all))
    {
        return Err(GridError::from(invalid.clone()).into());
    }
    let params = swept(grid)?.into_iter().filter_map(|path| Some(path.strip_prefix("strategy.")?.to_owned()));
    for param in params {
        let word = format!(":{}=", param.rsplit('.').next().unwrap_or(&param));
        if let Some(strategy) = all.iter().find(|strategy| strategy.name.contains(&word)) {
            return Err(TuningError::SetByName(strategy.name.clone(), format!("strategy.{param}")));
        }
        let takes = |candidate: &Candidate| candidate.label.contains(&word);
        if !all.iter().flat_map(|strategy| &strategy.candidates).any(takes) {
            return Err(TuningError::NoEffect(format!("strategy.{param}")));
        }
    }
    Ok(all)
}

fn of_strategy(
    base: &Config,
    name: &str,
    grid: &[Axis],
    seeds: &[u64],
) -> Result<TunedStrategy, TuningError> {
    let mut config = base.with_strategy_beside(name);
    config.set("evaluation.test=false")?;
    Experiment::of(&config)?;
    let axis = |path: &str, values: Vec<Value>| {
        let choices = values.into_iter().map(|value| vec![(path.to_owned(), value)]).collect();
        Axis { path: path.to_owned(), line: 0, choices }
    };
    let own = [
        axis("seed", seeds.iter().map(|&seed| Value::Whole(seed)).collect()),
        // The name again, so that a parameter of the grid that the strategy lacks is left out.
        axis("strategy.name", vec![Value::Text(name.to_owned())]),
    ];
    let axes: Vec<Axis> = grid.iter().cloned().chain(own).collect();
    let (cells, left_out) = valid_cells(&config, &axes)?;
    // Seeds are outermost, and every seed has the same combinations.
    let count = cells.len() / seeds.len().max(1);
    let candidate = |place: usize| {
        let first = &cells[place];
        let setting: Vec<String> =
            first.setting.iter().filter(|word| !word.starts_with("strategy.")).cloned().collect();
        let mut config = first.config.clone();
        config.set("evaluation.test=true")?;
        let of_seed =
            |seed: usize| Cell { setting: Clone::clone(&setting), ..cells[seed * count + place].clone() };
        let cells = (0..seeds.len()).map(of_seed).collect();
        Ok(Candidate { label: first.experiment.run.strategy.label.clone(), setting, config, cells })
    };
    let candidates = (0..count).map(candidate).collect::<Result<_, TuningError>>()?;
    Ok(TunedStrategy { name: name.to_owned(), candidates, left_out })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(strategies: &[&str], grid: &[&str]) -> Result<Vec<TunedStrategy>, TuningError> {
        let grid: Vec<Axis> = grid.iter().map(|text| Axis::of(text).unwrap()).collect();
        let strategies: Vec<String> = strategies.iter().map(|name| (*name).to_owned()).collect();
        candidates(&Config::default(), &strategies, &grid, &[101, 102])
    }

    #[test]
    fn each_strategy_has_the_combinations_of_the_keys_that_it_takes() {
        let all = found(&["fedavg", "fedprox"], &["local.lr=0.01,0.1", "strategy.mu=0.1,1"]).unwrap();
        let labels = |place: usize| -> Vec<(String, String)> {
            let word = |c: &Candidate| (c.label.clone(), c.setting.join(" "));
            all[place].candidates.iter().map(word).collect()
        };
        let word = |label: &str, lr: &str| (label.to_owned(), format!("local.lr = {lr}"));
        assert_eq!(labels(0), [word("fedavg", "0.01"), word("fedavg", "0.1")]);
        assert_eq!(labels(1).len(), 4);
        assert!(labels(1).contains(&word("fedprox:mu=0.1", "0.1")), "{:?}", labels(1));
        for candidate in all.iter().flat_map(|strategy| &strategy.candidates) {
            assert_eq!(
                candidate.cells.iter().map(|cell| cell.experiment.seed).collect::<Vec<_>>(),
                [101, 102]
            );
            for cell in &candidate.cells {
                assert!(!cell.experiment.evaluation.test && cell.experiment.holdout == HOLDOUT);
                assert_eq!(cell.experiment.run.strategy.label, candidate.label);
            }
            assert!(Experiment::of(&candidate.config).unwrap().evaluation.test);
        }
    }

    #[test]
    fn a_combination_that_only_some_strategies_can_train_with_is_left_out_for_the_others() {
        let grid = ["local.optimizer=sgd,adam", "local.lr=0.01,0.1"];
        let all = found(&["fedavg", "scaffold"], &grid).unwrap();
        let counts: Vec<usize> = all.iter().map(|strategy| strategy.candidates.len()).collect();
        assert_eq!(counts, [4, 2]);
        for candidate in &all[1].candidates {
            assert!(candidate.setting.iter().any(|word| word.contains("sgd")), "{:?}", candidate.setting);
            assert_eq!(candidate.cells.len(), 2);
        }
        assert_eq!(all[0].notes(), Vec::<String>::new());
        let notes = all[1].notes();
        let note = "scaffold is tuned without 2 of the 4 combinations: scaffold cannot train with local.optimizer = adam: ";
        assert!(notes.len() == 1 && notes[0].starts_with(note), "{notes:?}");
    }

    #[test]
    fn a_combination_that_no_strategy_can_train_with_is_refused() {
        let refusal = |strategies: &[&str], grid: &[&str]| found(strategies, grid).unwrap_err().to_string();
        let idle = ["local.optimizer=sgd,adam", "local.beta1=0.8,0.9"];
        let error = refusal(&["fedavg", "scaffold"], &idle);
        assert!(error.contains("local.beta1 = 0.8 has no effect with local.optimizer = sgd"), "{error}");
        let error = refusal(&["fedavg", "scaffold"], &["local.optimizer=adam"]);
        assert!(error.contains("scaffold cannot train with local.optimizer = adam"), "{error}");
    }

    #[test]
    fn keys_that_are_not_hyperparameters_and_parameters_without_effect_are_refused() {
        let refusal = |grid: &str| found(&["fedavg"], &[grid]).unwrap_err().to_string();
        assert_eq!(refusal("seed=1,2"), "seed cannot be tuned; use --seeds and --tuning-seeds");
        assert_eq!(
            refusal("split.alpha=1,2"),
            "split.alpha cannot be tuned; all candidates train on the same split"
        );
        let fixed = found(&["fedprox:mu=0.1", "fedavg"], &["strategy.mu=0.1,0.5"]).unwrap_err().to_string();
        assert!(fixed.starts_with("fedprox:mu=0.1 sets strategy.mu itself"), "{fixed}");
        assert_eq!(refusal("strategy.mu=1,2"), "strategy.mu has no effect: none of the strategies has it");
        assert!(
            found(&["fedavg", "fedavg"], &["local.lr=1"]).unwrap_err().to_string().contains("listed twice")
        );
    }
}
