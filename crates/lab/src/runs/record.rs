//! What a report needs of one run directory.

use crate::runs::class_names::class_names;
use crate::runs::client_updates::{ClientUpdates, client_updates};
use crate::runs::clusters::{Clusters, clusters};
use crate::runs::test_rows::TestRows;
use fedtvd_core::round::{ClientId, Drift, MissedClass, RoundRecord, Spread};
use fedtvd_run::collapse::Detector;
use fedtvd_run::configuration::{Config, ConfigError, EvaluationOptions};
use fedtvd_run::directory::{
    ClientResult, DirectoryError, LAST, LastRounds, Manifest, RunDirectory, Summary,
};
use std::collections::BTreeMap;
use std::path::Path;
use thiserror::Error;

/// One finished run.
#[derive(Clone, Debug)]
pub struct Record {
    /// Its configuration.
    pub config: Config,
    /// Its manifest: versions, hashes and machine.
    pub manifest: Manifest,
    /// Its summary.
    pub summary: Summary,
    /// Whether the model was evaluated after each round.
    pub evaluated: Vec<bool>,
    /// Accuracy after every round, from 0 to 1, or after the last evaluated one before it (`evaluation.every`); `None` if unknown.
    pub accuracy: Vec<Option<f64>>,
    /// Accuracy after each of the last rounds; empty if there is no shared model that could be evaluated.
    pub last: Vec<f64>,
    /// Balanced accuracy after every round; `None` if not recorded.
    pub balanced: Vec<Option<f64>>,
    /// Macro F1 after every round; `None` if not recorded.
    pub macro_f1s: Vec<Option<f64>>,
    /// Mean cross-entropy after every round; `None` if not evaluated, or not finite.
    pub losses: Vec<Option<f64>>,
    /// Balanced accuracy, mean over the last rounds; `None` unless recorded in all of them.
    pub balanced_accuracy: Option<f64>,
    /// Macro F1, mean over the last rounds; `None` unless recorded in all of them.
    pub macro_f1: Option<f64>,
    /// Mean cross-entropy, mean over the last rounds; `None` unless it is known in all of them.
    pub loss: Option<f64>,
    /// The classes of which no sample was classified correctly in any of the last rounds; `None` if not recorded.
    pub missed_classes: Option<Vec<MissedClass>>,
    /// The names of the classes; `None` if they have numbers only.
    pub class_names: Option<Vec<String>>,
    /// What the final model does with each row of the test set; `None` if not recorded.
    pub test_rows: Option<TestRows>,
    /// Median of the clients' accuracies, mean over the last rounds; `None` unless clients evaluated the model in all of them.
    pub median_accuracy: Option<f64>,
    /// Effective number of clients in every round; `None` if no update was aggregated.
    pub effective: Vec<Option<f64>>,
    /// Client drift in every round; `None` if not recorded.
    pub drift: Vec<Option<Drift>>,
    /// Mean accuracy of each class over the last rounds; `None` if not recorded.
    pub classes: Option<Vec<Option<f64>>>,
    /// Per-client accuracy, mean over the last rounds; `None` if not recorded.
    pub clients: Option<Spread>,
    /// Whether it was measured on each client's own hold-out, and not estimated from the accuracies of the classes.
    pub clients_measured: bool,
    /// Accuracy over clients of the models that they use themselves, mean over the last rounds; `None` unless the strategy has
    /// such models.
    pub personal: Option<Spread>,
    /// The final model on each client's hold-out; `None` without hold-outs.
    pub client_results: Option<Vec<ClientResult>>,
    /// Bytes uploaded by clients in all rounds.
    pub bytes_up: u64,
    /// Bytes downloaded by clients in all rounds.
    pub bytes_down: u64,
    /// Every client whose update was aggregated at least once.
    pub participants: BTreeMap<ClientId, Participant>,
    /// What became of the updates of every client that was selected.
    pub client_updates: BTreeMap<ClientId, ClientUpdates>,
    /// Which clients share a model, round by round; empty under a strategy with one model.
    pub clusters: Vec<Clusters>,
    /// Rounds with an alarm, and their alarms.
    pub alarms: Vec<(u32, String)>,
    /// Hash of the final model.
    pub model_hash: String,
}

/// A client that took part in a run, and its mean weight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Participant {
    /// Its training samples.
    pub size: u64,
    /// Total variation distance (TVD) of its labels to the reference; `None` if unknown.
    pub tvd: Option<f64>,
    /// Mean of its weights over the rounds in which it took part.
    pub weight: f64,
    /// Number of rounds in which it took part.
    pub rounds: u32,
}

/// The content of a run directory.
#[derive(Debug)]
pub enum Found {
    /// A finished run.
    Finished(Box<Record>),
    /// An unfinished run.
    Unfinished(Unfinished),
}

/// An unfinished run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct Unfinished {
    /// The strategy's label.
    pub strategy: String,
    /// The seed.
    pub seed: u64,
    /// Rounds done.
    pub done: usize,
    /// Rounds in total.
    pub rounds: u64,
}

/// Why a run directory cannot be read.
#[derive(Debug, Error)]
pub enum RecordError {
    /// One of its files.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// Its configuration.
    #[error("{path}: {error}")]
    Config {
        /// Which file.
        path: String,
        /// What is wrong.
        error: ConfigError,
    },
    /// Another number of rounds than in the summary.
    #[error("{path} is damaged: it has {got} rounds and its summary says {expected}")]
    Rounds {
        /// Which file.
        path: String,
        /// Rounds found.
        got: usize,
        /// Rounds according to the summary.
        expected: u32,
    },
    /// No final accuracy.
    #[error("{path}: the model was not evaluated in all of the last {LAST} rounds")]
    NotEvaluated {
        /// Which file.
        path: String,
    },
    /// Evaluated on hold-outs only.
    #[error(
        "{path}: the model was evaluated on the clients' hold-outs only (evaluation.test = false); a report is about a test set"
    )]
    NoTest {
        /// Which file.
        path: String,
    },
    /// Predictions of another model.
    #[error(
        "{path} does not belong to this run: its predictions are right for {got:.4} of the test samples, the final model for {expected:.4}"
    )]
    Predictions {
        /// Which file.
        path: String,
        /// Their accuracy.
        got: f64,
        /// That of the final model.
        expected: f64,
    },
}

/// Reads a run directory.
pub fn read(path: &Path) -> Result<Found, RecordError> {
    let directory = RunDirectory::open(path)?;
    let shown = |name: &str| directory.file(name).display().to_string();
    let config = Config::parse(&directory.config()?)
        .map_err(|error| RecordError::Config { path: shown("config.toml"), error })?;
    let (manifest, lines) = (directory.manifest()?, directory.lines()?);
    let Some(summary) = directory.summary()? else {
        let whole = |path| match config.get(path) {
            fedtvd_run::configuration::Value::Whole(whole) => whole,
            _ => 0,
        };
        let (seed, rounds) = (whole("seed"), whole("rounds"));
        return Ok(Found::Unfinished(Unfinished {
            strategy: manifest.strategy,
            seed,
            done: lines.len(),
            rounds,
        }));
    };
    let expected = summary.rounds;
    if lines.len() != expected as usize || lines.is_empty() {
        return Err(RecordError::Rounds { path: shown("rounds.jsonl"), got: lines.len(), expected });
    }
    let test = EvaluationOptions::of(&config).is_ok_and(|options| options.test);
    let unknown = || match (shown("rounds.jsonl"), test) {
        (path, true) => RecordError::NotEvaluated { path },
        (path, false) => RecordError::NoTest { path },
    };
    let mut record = Record::new(config, manifest, summary, &lines).ok_or_else(unknown)?;
    record.class_names = class_names(&directory, &record.config);
    record.client_results = directory.client_results()?;
    let predictions = directory.predictions()?;
    if let (Some(found), Some(expected)) = (&predictions, record.summary.accuracy) {
        let got = found.accuracy();
        if (got - expected).abs() > 1e-9 {
            return Err(RecordError::Predictions { path: shown("predictions.npy"), got, expected });
        }
    }
    record.test_rows = predictions.as_ref().map(TestRows::from);
    Ok(Found::Finished(Box::new(record)))
}

impl Record {
    /// The record of a run with these rounds, at least one; `None` if the model was not evaluated in all of the last rounds.
    pub fn new(config: Config, manifest: Manifest, summary: Summary, lines: &[RoundRecord]) -> Option<Self> {
        let options = EvaluationOptions::of(&config).unwrap_or_default();
        let last = &lines[lines.len().saturating_sub(LAST)..];
        let last: Vec<&RoundRecord> = last.iter().filter(|line| options.due(line.round)).collect();
        let metrics = LastRounds::of(lines, options);
        let measured = Spread::mean_of(last.iter().map(|line| Some(line.validation?.clients)));
        let accuracies = last.iter().map(|line| line.accuracy).collect::<Option<Vec<f64>>>();
        let personal = metrics.personal();
        let held = |value: fn(&RoundRecord) -> Option<f64>| held(lines, &options, value);
        Some(Self {
            last: accuracies.or_else(|| personal.map(|_| Vec::new()))?,
            personal,
            evaluated: lines.iter().map(|line| line.accuracy.is_some()).collect(),
            accuracy: held(|line| line.accuracy),
            balanced: held(|line| Some(line.balanced?.accuracy)),
            macro_f1s: held(|line| line.macro_f1),
            losses: held(|line| line.loss),
            balanced_accuracy: metrics.mean(|round| round.balanced_accuracy),
            macro_f1: metrics.mean(|round| round.macro_f1),
            loss: metrics.mean(|round| round.loss),
            missed_classes: metrics.missed_classes(),
            class_names: None,
            test_rows: None,
            median_accuracy: last
                .iter()
                .map(|line| line.median_accuracy)
                .collect::<Option<Vec<_>>>()
                .map(|medians| crate::stats::statistics::mean(&medians)),
            effective: lines.iter().map(|line| line.effective_clients).collect(),
            drift: lines.iter().map(|line| line.drift).collect(),
            classes: classes(&last),
            clients: measured.or_else(|| Spread::mean_of(last.iter().map(|line| line.client_accuracy))),
            clients_measured: measured.is_some(),
            client_results: None,
            bytes_up: lines.iter().map(|line| line.bytes_up).sum(),
            bytes_down: lines.iter().map(|line| line.bytes_down).sum(),
            participants: participants(lines),
            client_updates: client_updates(lines),
            clusters: clusters(lines),
            alarms: alarms(lines),
            model_hash: lines.last().map(|line| line.model_hash.clone()).unwrap_or_default(),
            config,
            manifest,
            summary,
        })
    }

    /// Mean accuracy of the last rounds; `None` if there is no shared model that could be evaluated.
    pub fn final_accuracy(&self) -> Option<f64> {
        (!self.last.is_empty()).then(|| crate::stats::statistics::mean(&self.last))
    }

    /// Whether its clients were on other machines, which do not report their split.
    pub fn is_federation(&self) -> bool {
        self.manifest.split_hash.is_empty()
    }

    /// The value of `strategy.mode`: `paper` or `hardened`.
    pub fn mode(&self) -> String {
        crate::runs::setting::shown(&self.config.get("strategy.mode"))
    }
}

/// A quantity after every round; for rounds that `evaluation.every` skips, the last value before them.
fn held(
    lines: &[RoundRecord],
    options: &EvaluationOptions,
    value: fn(&RoundRecord) -> Option<f64>,
) -> Vec<Option<f64>> {
    let mut last = None;
    let hold = |line: &RoundRecord| {
        last = if options.due(line.round) { value(line) } else { value(line).or(last) };
        last
    };
    lines.iter().map(hold).collect()
}

/// Mean accuracy of each class over these rounds; `None` unless recorded in every round.
fn classes(lines: &[&RoundRecord]) -> Option<Vec<Option<f64>>> {
    let recorded: Vec<&Vec<Option<f64>>> =
        lines.iter().map(|line| line.class_accuracy.as_ref()).collect::<Option<_>>()?;
    let mean = |class: usize| {
        let values: Vec<f64> = recorded.iter().filter_map(|round| *round.get(class)?).collect();
        (!values.is_empty()).then(|| crate::stats::statistics::mean(&values))
    };
    Some((0..recorded.first()?.len()).map(mean).collect())
}

/// The recorded alarms; for a run of an earlier version, those that it would have raised.
fn alarms(lines: &[RoundRecord]) -> Vec<(u32, String)> {
    let mut detector = Detector::default();
    let alarm = |line: &RoundRecord| {
        let found = detector.observe(line);
        Some((line.round, line.alarm.clone().or(found)?))
    };
    lines.iter().filter_map(alarm).collect()
}

fn participants(lines: &[RoundRecord]) -> BTreeMap<ClientId, Participant> {
    let mut all: BTreeMap<ClientId, Participant> = BTreeMap::new();
    for client in lines.iter().flat_map(|line| &line.clients) {
        if let Some(weight) = client.weight {
            let (size, tvd) = (client.size, client.tvd);
            let entry = all.entry(client.client).or_insert(Participant { size, tvd, weight: 0.0, rounds: 0 });
            entry.rounds += 1;
            entry.weight += (weight - entry.weight) / f64::from(entry.rounds);
        }
    }
    all
}
