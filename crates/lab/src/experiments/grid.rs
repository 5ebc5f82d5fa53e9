//! A grid of runs: every combination of a sweep's lists, without duplicates.

use fedtvd_core::rules::NotationError;
use fedtvd_run::configuration::{Axis, Config, ConfigError, Experiment, ExperimentError, Value};
use fedtvd_run::directory::sha256;
use std::collections::BTreeSet;
use thiserror::Error;

/// One run of a grid.
#[derive(Clone, Debug)]
pub struct Cell {
    /// What the axes set, as `key = value`, without strategy and seed.
    pub setting: Vec<String>,
    /// The canonical configuration, with the name of the sweep.
    pub config: Config,
    /// The same, parsed and checked.
    pub experiment: Experiment,
    /// The name of its run directory: strategy, seed and a hash of the configuration.
    pub folder: String,
}

/// Why a grid is invalid.
#[derive(Debug, Error)]
pub enum GridError {
    /// An invalid key or value.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Two lists that set the same key.
    #[error("line {line}: {path} is set by two lists of the sweep; remove one of them")]
    Twice {
        /// The line of the second list.
        line: usize,
        /// The key.
        path: String,
    },
    /// An invalid strategy.
    #[error(transparent)]
    Strategy(#[from] NotationError),
    /// More combinations than anybody can run.
    #[error("the grid has more than {MOST_CELLS} combinations; shorten its lists, or run several grids")]
    Many,
    /// An invalid combination.
    #[error(transparent)]
    Combination(#[from] InvalidCombination),
}

/// A combination that is not a valid experiment.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("{}: {error}", .setting.join(", "))]
pub struct InvalidCombination {
    /// What the axes set, without strategy and seed.
    pub setting: Vec<String>,
    /// Why it is invalid.
    pub error: ExperimentError,
}

/// Most combinations of a grid; guards against typing errors.
const MOST_CELLS: usize = 100_000;

/// Every combination, seeds outermost and strategies innermost, so that complete comparisons finish early. A strategy's
/// parameter is passed to the strategies that have it; combinations with the same configuration run once.
pub fn cells(base: &Config, axes: &[Axis]) -> Result<Vec<Cell>, GridError> {
    let (cells, invalid) = valid_cells(base, axes)?;
    invalid.into_iter().next().map_or(Ok(cells), |invalid| Err(invalid.into()))
}

/// The same without the combinations that are not valid experiments, which are returned, too.
pub(crate) fn valid_cells(
    base: &Config,
    axes: &[Axis],
) -> Result<(Vec<Cell>, Vec<InvalidCombination>), GridError> {
    swept(axes)?;
    let count = axes.iter().try_fold(1usize, |count, axis| count.checked_mul(axis.choices.len()));
    if count.is_none_or(|count| count > MOST_CELLS) {
        return Err(GridError::Many);
    }
    let mut order: Vec<&Axis> = axes.iter().collect();
    order.sort_by_key(|axis| match axis.path.as_str() {
        "seed" => 0,
        "strategy.name" => 2,
        _ => 1,
    });
    let mut combinations: Vec<Combination> = vec![Combination::default()];
    for axis in order {
        let extended =
            |one: &Combination| axis.choices.iter().map(|choice| one.and(axis.line, choice)).collect();
        combinations = combinations.iter().flat_map::<Vec<Combination>, _>(extended).collect();
    }
    let (mut cells, mut seen, mut invalid) = (Vec::new(), BTreeSet::new(), Vec::new());
    for combination in combinations {
        match combination.cell(base) {
            Ok(cell) => cells.extend(seen.insert(cell.folder.clone()).then_some(cell)),
            // Other seeds make no difference.
            Err(GridError::Combination(one)) => invalid.extend((!invalid.contains(&one)).then_some(one)),
            Err(error) => return Err(error),
        }
    }
    Ok((cells, invalid))
}

/// The full paths of the keys that a sweep's lists set; two lists must not set the same key.
pub fn swept(axes: &[Axis]) -> Result<BTreeSet<String>, GridError> {
    let mut all = BTreeSet::new();
    for axis in axes {
        let mut config = Config::default();
        for (path, value) in axis.choices.iter().flatten() {
            config.choose(axis.line, path, value.clone())?;
        }
        for path in config.paths() {
            if let Some(path) = all.replace(path) {
                return Err(GridError::Twice { line: axis.line, path });
            }
        }
    }
    Ok(all)
}

/// Line, key and value of each choice.
#[derive(Clone, Default)]
struct Combination(Vec<(usize, String, Value)>);

impl Combination {
    fn and(&self, line: usize, choice: &[(String, Value)]) -> Self {
        let more = choice.iter().map(|(path, value)| (line, path.clone(), value.clone()));
        Self(self.0.iter().cloned().chain(more).collect())
    }

    fn cell(&self, base: &Config) -> Result<Cell, GridError> {
        let mut config = base.clone();
        for (line, path, value) in &self.0 {
            config.choose(*line, path, value.clone())?;
        }
        let named = self.0.iter().rev().find(|(_, path, _)| path == "strategy.name");
        if let Some((_, _, Value::Text(name))) = named {
            config = config.with_strategy_beside(name);
        }
        let setting: Vec<String> = self
            .0
            .iter()
            .filter(|(_, path, _)| !["seed", "strategy.name"].contains(&path.as_str()))
            .map(|(_, path, value)| format!("{path} = {value}"))
            .collect();
        let name = config.get("name");
        let mut config = config.canonical()?;
        let wrong = |error| InvalidCombination { setting: setting.clone(), error };
        let experiment = Experiment::of(&config).map_err(wrong)?;
        let folder = folder(&config, &experiment);
        // The name appears in reports but does not identify the run.
        config.choose(0, "name", name)?;
        Ok(Cell { setting, config, experiment, folder })
    }
}

impl Cell {
    /// Whether its folder is named after its own configuration, and not after that of a longer run.
    pub(crate) fn names_its_folder(&self) -> bool {
        self.config.canonical().is_ok_and(|config| folder(&config, &self.experiment) == self.folder)
    }
}

/// `fedtvd+balanced-seed1-3f2a…`: strategy and seed are for people, the hash identifies the run.
fn folder(config: &Config, experiment: &Experiment) -> String {
    let label: String =
        experiment.run.strategy.label.chars().map(|c| if matches!(c, ':' | '=') { '-' } else { c }).collect();
    format!("{label}-seed{}-{}", experiment.seed, &sha256(config.identity().as_bytes())[..16])
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedtvd_run::configuration::axes;

    fn grid(text: &str) -> Result<Vec<Cell>, GridError> {
        cells(&Config::parse(text).unwrap(), &axes(text).unwrap())
    }

    fn labels(cells: &[Cell]) -> Vec<(String, u64)> {
        cells.iter().map(|cell| (cell.experiment.run.strategy.label.clone(), cell.experiment.seed)).collect()
    }

    #[test]
    fn a_grid_of_too_many_combinations_is_refused_before_it_is_made() {
        let axis = |path: &str| Axis::of(&format!("{path}={}", vec!["1"; 2000].join(","))).unwrap();
        let axes = ["local.lr", "rounds", "local.epochs", "seed"].map(axis);
        let error = cells(&Config::default(), &axes).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the grid has more than 100000 combinations; shorten its lists, or run several grids"
        );
    }

    #[test]
    fn seeds_are_outermost_and_strategies_innermost() {
        let cells = grid("[sweep]\n\"strategy.name\" = [\"fedavg\", \"uniform\"]\nseed = [1, 2]\n").unwrap();
        let expected = [("fedavg", 1), ("uniform", 1), ("fedavg", 2), ("uniform", 2)];
        assert_eq!(labels(&cells), expected.map(|(name, seed)| (name.to_owned(), seed)));
    }

    #[test]
    fn a_parameter_goes_to_the_strategies_that_take_it_and_equal_runs_run_once() {
        let text = "[sweep]\nlambda = [0.25, 0.5]\n\"strategy.name\" = [\"fedavg\", \"fedtvd\"]\n";
        let labels: Vec<String> = labels(&grid(text).unwrap()).into_iter().map(|(label, _)| label).collect();
        // FedAvg has no lambda; 0.5 is FedTVD's default.
        assert_eq!(labels, ["fedavg", "fedtvd:lambda=0.25", "fedtvd"]);
    }

    #[test]
    fn a_run_has_the_same_folder_however_its_configuration_was_written() {
        let one = grid("name = \"a\"\n[sweep]\n\"strategy.name\" = [\"fedtvd:lambda=0.25\"]\n").unwrap();
        let other = grid("[strategy]\nname = \"fedtvd\"\n[sweep]\nlambda = [0.25]\n").unwrap();
        assert_eq!(one[0].folder, other[0].folder);
        assert!(one[0].folder.starts_with("fedtvd-lambda-0.25-seed1-"), "{}", one[0].folder);
        assert_eq!(one[0].config.get("name"), Value::Text("a".to_owned()), "the run keeps the name");
        let third = grid("rounds = 7\n[sweep]\nlambda = [0.25]\n").unwrap();
        assert_ne!(one[0].folder, third[0].folder);
    }

    #[test]
    fn a_run_has_the_folder_that_it_always_had() {
        // Names as of commit 6f3b113; finished runs are found by them.
        for (text, folder) in [
            ("name = \"a\"\nrounds = 1\nmodel.name = \"logistic\"\n", "fedtvd-seed1-5fe8857eb7a0dcb1"),
            ("seed = 3\nstrategy.name = \"fedavg\"\n", "fedavg-seed3-b178a1366e95cf0e"),
            (
                "seed = 2\n[split]\nalpha = 0.5\nclients = 20\n[local]\nlr = 0.05\n[strategy]\ntau = 0.5\n\
                 name = \"fedtvd:lambda=0.25:temperature=0.1+balanced\"\n",
                "fedtvd-lambda-0.25-temperature-0.1+balanced-tau-0.5-seed2-d3a4ddc5d1631328",
            ),
            (
                "seed = 7\nlabels.reference = [0.5, 0.3, 0.2]\n[split]\nkind = \"iid\"\nseed = 4\n[strategy]\n\
                 name = \"scaffold+fedadam:lr=0.1:bias_correction=true\"\nmode = \"hardened\"\n",
                "scaffold+fedadam-lr-0.1-bias_correction-true-seed7-d7728a72c6340d34",
            ),
            (
                "rounds = 7\ndata.set = \"it's \\\"mine\\\".csv\"\ndata.flip = true\n\
                 model.layers = [\"flatten\", \"linear\"]\nstrategy.name = \"fedavg\"\n",
                "fedavg-seed1-b33b0ebd1e1ce12b",
            ),
        ] {
            assert_eq!(grid(text).unwrap()[0].folder, folder);
        }
    }

    #[test]
    fn a_wrong_key_or_value_names_its_line() {
        let error = grid("[sweep]\n\"split.alhpa\" = [1.0]\n").unwrap_err().to_string();
        assert_eq!(error, "line 2: there is no key split.alhpa; did you mean split.alpha?");
        let error = grid("[sweep]\n\"split.alpha\" = [0.5, 0.0]\n").unwrap_err().to_string();
        assert!(error.starts_with("line 2: split.alpha = 0 is not allowed"), "{error}");
        let error = grid("[sweep]\n\"strategy.lambda\" = [7.0]\n").unwrap_err().to_string();
        assert!(error.contains('7'), "{error}");
        let twice = "[sweep]\n\"split.alpha\" = [0.5]\nsplit = [{ alpha = 0.1 }, { kind = \"iid\" }]\n";
        let error = grid(twice).unwrap_err().to_string();
        assert_eq!(error, "line 3: split.alpha is set by two lists of the sweep; remove one of them");
        let error = grid("[sweep]\n\"strategy.lamda\" = [0.5]\n").unwrap_err().to_string();
        assert!(error.contains("lambda"), "{error}");
    }
}
