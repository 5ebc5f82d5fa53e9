//! The paper's experiments as grids, with further methods beside the paper's.

use crate::experiments::grid::{Cell, GridError, cells, swept};
use crate::experiments::paper::{Figure, figures};
use fedtvd_data::split::SplitKind;
use fedtvd_run::configuration::{Axis, Config, Experiment, Value};
use std::collections::BTreeSet;

/// One of the paper's experiments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// Table 2: three data sets, four levels of skew.
    Skew,
    /// Table 3: 100 and 200 clients, three participation rates.
    Participation,
    /// Table 4: five lambdas at two levels of skew.
    Lambda,
    /// Figures 2 to 4: accuracy over rounds at three levels of skew.
    Figures,
}

/// The methods that the paper compares.
const PAPERS: [&str; 5] = ["fedavg", "fedprox", "fednova", "feddkw", "fedtvd"];

/// Further methods: uniform averaging, label-aware losses, the weights of the published code, sharper weights.
const FURTHER: [&str; 8] = [
    "uniform",
    "balanced",
    "uniform+balanced",
    "fedtvd+balanced",
    "fedlc",
    "fedtvd-released",
    "fedtvd:temperature=0.25",
    "fedtvd:temperature=0.1",
];

/// Where the paper's protocol differs from the configuration's defaults.
const PROTOCOL: [&str; 2] = ["rounds=300", "evaluation.details=true"];

impl Preset {
    /// The number of its table in the paper; Figures 2 to 4 show the runs of Table 2.
    pub fn table(self) -> u32 {
        match self {
            Self::Skew | Self::Figures => 2,
            Self::Participation => 3,
            Self::Lambda => 4,
        }
    }

    /// The paper's data sets.
    pub fn datasets(self) -> &'static [&'static str] {
        match self {
            Self::Skew | Self::Figures => &["fmnist", "cifar10", "cifar100"],
            Self::Participation | Self::Lambda => &["cifar10"],
        }
    }

    /// The strategies: the paper's, then further ones.
    pub fn strategies(self) -> Vec<String> {
        let named = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        match self {
            Self::Skew | Self::Participation => [named(&PAPERS), named(&FURTHER)].concat(),
            Self::Figures => [named(&PAPERS), named(&["uniform", "fedtvd+balanced"])].concat(),
            Self::Lambda => {
                let lambdas = ["0", "0.25", "0.5", "0.75", "1"];
                let plain = lambdas.map(|lambda| format!("fedtvd:lambda={lambda}"));
                let balanced = lambdas.map(|lambda| format!("fedtvd:lambda={lambda}+balanced"));
                [plain.to_vec(), balanced.to_vec(), named(&["uniform", "uniform+balanced"])].concat()
            }
        }
    }

    /// What it varies in addition to data set, strategy and seed.
    fn settings(self) -> Vec<Vec<(String, Value)>> {
        let alpha = |alpha: f64| vec![("split.alpha".to_owned(), Value::Number(alpha))];
        let iid = vec![("split.kind".to_owned(), Value::Text("iid".to_owned()))];
        match self {
            Self::Skew => vec![alpha(0.1), alpha(0.5), alpha(1.0), iid],
            Self::Figures => vec![alpha(0.1), alpha(0.5), alpha(1.0)],
            Self::Lambda => vec![alpha(0.1), alpha(1.0)],
            Self::Participation => {
                let of = |(clients, fraction)| {
                    let clients = ("split.clients".to_owned(), Value::Whole(clients));
                    vec![clients, ("cohort.fraction".to_owned(), Value::Number(fraction))]
                };
                [100, 200].into_iter().flat_map(|n| [0.1, 0.2, 0.5].map(|share| (n, share))).map(of).collect()
            }
        }
    }

    /// Its runs. `config` can change the protocol and the model; the preset sets everything else.
    pub fn cells(
        self,
        config: &Config,
        datasets: &[String],
        strategies: &[String],
        seeds: &[u64],
    ) -> Result<Vec<Cell>, GridError> {
        let named = config.paths().iter().any(|path| path == "model.name");
        cells(config, &self.axes(datasets, strategies, seeds, !named))
    }

    /// The keys that it sets; a configuration cannot change them.
    pub fn keys(self) -> Result<BTreeSet<String>, GridError> {
        let dataset = self.datasets()[..1].iter().map(|set| (*set).to_owned()).collect::<Vec<_>>();
        swept(&self.axes(&dataset, &self.strategies()[..1], &[1], true))
    }

    fn axes(self, datasets: &[String], strategies: &[String], seeds: &[u64], models: bool) -> [Axis; 4] {
        let one = |path: &str, value: Value| vec![(path.to_owned(), value)];
        let data = |set: &String| {
            let model = models.then(|| ("model.name".to_owned(), Value::Text(model(set).to_owned())));
            one("data.set", Value::Text(set.clone())).into_iter().chain(model).collect()
        };
        let axis = |path: &str, choices| Axis { path: path.to_owned(), line: 0, choices };
        let seeds = seeds.iter().map(|seed| one("seed", Value::Whole(*seed))).collect();
        let names = strategies.iter().map(|name| one("strategy.name", Value::Text(name.clone()))).collect();
        [
            axis("together", datasets.iter().map(data).collect()),
            axis("setting", self.settings()),
            axis("seed", seeds),
            axis("strategy.name", names),
        ]
    }
}

/// The paper's protocol as a configuration.
pub fn protocol() -> Config {
    let mut config = Config::default();
    for setting in PROTOCOL {
        config.set(setting).expect("the protocol's keys exist");
    }
    config
}

/// The paper's model for a data set; LeNet for data sets that are not in the paper.
pub fn model(dataset: &str) -> &'static str {
    match dataset {
        "cifar10" => "resnet18",
        "cifar100" => "resnet34",
        _ => "lenet",
    }
}

/// The paper's result for a run's setting and strategy.
pub fn reported(preset: Preset, experiment: &Experiment) -> Option<Figure> {
    let alpha = match experiment.split.kind {
        SplitKind::Dirichlet => Some(experiment.split.alpha),
        SplitKind::Iid => None,
        _ => return None,
    };
    figures().into_iter().find(|figure| {
        figure.table == preset.table()
            && figure.dataset == experiment.data.set
            && figure.alpha == alpha
            && figure.clients == experiment.split.clients as u64
            && figure.participation == experiment.run.fraction
            && figure.strategy == experiment.run.strategy.label
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedtvd_core::train::Sgd;

    fn all(preset: Preset) -> Vec<Cell> {
        let datasets: Vec<String> = preset.datasets().iter().map(|set| (*set).to_owned()).collect();
        preset.cells(&protocol(), &datasets, &preset.strategies(), &[1]).unwrap()
    }

    #[test]
    fn every_figure_of_the_paper_has_its_run() {
        for preset in [Preset::Skew, Preset::Participation, Preset::Lambda] {
            let found =
                all(preset).iter().filter(|cell| reported(preset, &cell.experiment).is_some()).count();
            let expected = figures().iter().filter(|figure| figure.table == preset.table()).count();
            assert_eq!(found, expected, "{preset:?}");
        }
    }

    #[test]
    fn the_paper_reports_nothing_of_other_kinds_of_split() {
        let mut config = protocol();
        config.set("split.kind=shards").unwrap();
        let names = ["fedavg".to_owned()];
        let cells = Preset::Skew.cells(&config, &["fmnist".to_owned()], &names, &[1]).unwrap();
        let found: Vec<&Cell> =
            cells.iter().filter(|cell| reported(Preset::Skew, &cell.experiment).is_some()).collect();
        // Of these settings, the paper has only IID.
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].experiment.split.kind, SplitKind::Iid);
    }

    #[test]
    fn the_protocol_is_the_papers() {
        let cells = all(Preset::Skew);
        let experiment = &cells[0].experiment;
        let (local, run) = (&experiment.run.local, &experiment.run);
        assert_eq!((experiment.rounds, experiment.split.clients, run.fraction), (300, 100, 0.1));
        let sgd = Sgd { lr: 0.01, momentum: 0.9, nesterov: false, weight_decay: 0.0 };
        assert_eq!((local.epochs, local.batch, local.optimizer), (4, 32, sgd.into()));
    }
}
