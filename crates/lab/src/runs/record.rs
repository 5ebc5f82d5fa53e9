//! What a report keeps of one run directory.

use fedtvd_core::round::{ClientId, Drift, RoundRecord, Spread};
use fedtvd_run::configuration::{Config, ConfigError};
use fedtvd_run::directory::{DirectoryError, LAST, Manifest, RunDirectory, Summary};
use std::collections::BTreeMap;
use std::path::Path;
use thiserror::Error;

/// One finished run.
#[derive(Clone, Debug)]
pub struct Record {
    /// Its configuration.
    pub config: Config,
    /// What it was made with.
    pub manifest: Manifest,
    /// What it came to.
    pub summary: Summary,
    /// Accuracy after every round in which the model was evaluated, from 0 to 1.
    pub accuracy: Vec<Option<f64>>,
    /// Accuracy after each of the last rounds.
    pub last: Vec<f64>,
    /// Effective number of clients of every round that counted any.
    pub effective: Vec<Option<f64>>,
    /// How far the clients' models pulled apart in every round that tells.
    pub drift: Vec<Option<Drift>>,
    /// Accuracy of each class, the mean of the last rounds; `None` where the run did not tell.
    pub classes: Option<Vec<Option<f64>>>,
    /// Accuracy on the clients' own label distributions, the mean of the last rounds.
    pub clients: Option<Spread>,
    /// What clients sent in all rounds.
    pub bytes_up: u64,
    /// What clients were sent in all rounds.
    pub bytes_down: u64,
    /// Every client that ever counted.
    pub counted: BTreeMap<ClientId, Counted>,
    /// Hash of the final model.
    pub model_hash: String,
}

/// A client and how much it counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counted {
    /// Its training samples.
    pub size: u64,
    /// Total variation distance of its labels to the reference, where it is known.
    pub tvd: Option<f64>,
    /// Mean of its weights in the rounds in which it counted.
    pub weight: f64,
    /// In how many rounds it counted.
    pub rounds: u32,
}

/// What a directory holds.
#[derive(Debug)]
pub enum Found {
    /// A run that is done.
    Finished(Box<Record>),
    /// A run that is not.
    Unfinished(Unfinished),
}

/// A run that is not done.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct Unfinished {
    /// The strategy's label.
    pub strategy: String,
    /// The seed.
    pub seed: u64,
    /// Rounds done.
    pub done: usize,
    /// Rounds asked for.
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
    /// Fewer lines than the summary speaks of.
    #[error("{path} is damaged: it has {got} rounds and its summary says {expected}")]
    Rounds {
        /// Which file.
        path: String,
        /// How many lines.
        got: usize,
        /// How many rounds.
        expected: u32,
    },
    /// No accuracy at the end.
    #[error("{path}: the model was not evaluated in every one of the last {LAST} rounds")]
    NotEvaluated {
        /// Which file.
        path: String,
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
    let record = Record::new(config, manifest, summary, &lines);
    let unknown = || RecordError::NotEvaluated { path: shown("rounds.jsonl") };
    Ok(Found::Finished(Box::new(record.ok_or_else(unknown)?)))
}

impl Record {
    /// The record of a run with these rounds, of which there is at least one; `None` unless the model was evaluated in
    /// the last ones.
    pub fn new(config: Config, manifest: Manifest, summary: Summary, lines: &[RoundRecord]) -> Option<Self> {
        let last = &lines[lines.len().saturating_sub(LAST)..];
        Some(Self {
            last: last.iter().map(|line| line.accuracy).collect::<Option<_>>()?,
            accuracy: lines.iter().map(|line| line.accuracy).collect(),
            effective: lines.iter().map(|line| line.effective_clients).collect(),
            drift: lines.iter().map(|line| line.drift).collect(),
            classes: classes(last),
            clients: spread(last),
            bytes_up: lines.iter().map(|line| line.bytes_up).sum(),
            bytes_down: lines.iter().map(|line| line.bytes_down).sum(),
            counted: counted(lines),
            model_hash: lines.last().map(|line| line.model_hash.clone()).unwrap_or_default(),
            config,
            manifest,
            summary,
        })
    }

    /// Mean accuracy of the last rounds.
    pub fn final_accuracy(&self) -> f64 {
        crate::stats::statistics::mean(&self.last)
    }

    /// How the strategy's weights are taken: `paper` or `hardened`.
    pub fn mode(&self) -> String {
        crate::runs::setting::shown(&self.config.get("strategy.mode"))
    }
}

/// Class by class the mean over some rounds; `None` unless every round tells.
fn classes(lines: &[RoundRecord]) -> Option<Vec<Option<f64>>> {
    let told: Vec<&Vec<Option<f64>>> =
        lines.iter().map(|line| line.class_accuracy.as_ref()).collect::<Option<_>>()?;
    let mean = |class: usize| {
        let values: Vec<f64> = told.iter().filter_map(|round| *round.get(class)?).collect();
        (!values.is_empty()).then(|| crate::stats::statistics::mean(&values))
    };
    Some((0..told.first()?.len()).map(mean).collect())
}

/// The mean spread of some rounds; `None` unless every round tells.
fn spread(lines: &[RoundRecord]) -> Option<Spread> {
    let told: Vec<Spread> = lines.iter().map(|line| line.client_accuracy).collect::<Option<_>>()?;
    let mean =
        |part: fn(&Spread) -> f64| crate::stats::statistics::mean(&told.iter().map(part).collect::<Vec<_>>());
    Some(Spread {
        mean: mean(|spread| spread.mean),
        deviation: mean(|spread| spread.deviation),
        worst_decile: mean(|spread| spread.worst_decile),
    })
}

fn counted(lines: &[RoundRecord]) -> BTreeMap<ClientId, Counted> {
    let mut all: BTreeMap<ClientId, Counted> = BTreeMap::new();
    for client in lines.iter().flat_map(|line| &line.clients) {
        if let Some(weight) = client.weight {
            let (size, tvd) = (client.size, client.tvd);
            let entry = all.entry(client.client).or_insert(Counted { size, tvd, weight: 0.0, rounds: 0 });
            entry.rounds += 1;
            entry.weight += (weight - entry.weight) / f64::from(entry.rounds);
        }
    }
    all
}
