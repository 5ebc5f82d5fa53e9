//! What a site agrees to: `site.toml`. The defaults allow what an ordinary run does and nothing else.
//!
//! A job is checked before anything is allocated or trained. What a policy cannot prevent is listed in `docs/security.md`.

use fedtvd_core::labels::Ask;
use fedtvd_core::rules::notation;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::path::Path;
use thiserror::Error;

/// A site's policy towards the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Policy {
    /// Label statistics that the server may ask for.
    pub statistics: Vec<Ask>,
    /// Reference distributions to which a distance is disclosed, per data set and authority.
    pub references: usize,
    /// Whether counts, means and squared deviations of a table's columns may be sent.
    pub columns: bool,
    /// What is disclosed about an evaluation of the model on the hold-out.
    pub evaluation: Disclosure,
    /// Strategies that the site trains with; all if empty.
    pub strategies: Vec<String>,
    /// Greatest number of epochs per round.
    pub epochs: u32,
    /// Greatest size of a model.
    pub model_megabytes: u64,
    /// Greatest amount of memory that training may take, besides the data.
    pub memory_megabytes: u64,
    /// Updates that are sent per day (UTC).
    pub rounds_per_day: u64,
    /// Number of training samples below which the site does not train.
    pub min_samples: u64,
}

/// What a site tells about an evaluation of the model on its hold-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Disclosure {
    /// Nothing: it claims no hold-out.
    Nothing,
    /// How many samples were classified correctly, of how many, and the loss.
    Counts,
    /// The confusion matrix, from which the label counts of the hold-out follow.
    Confusion,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            statistics: vec![Ask::Distance, Ask::Released],
            references: 1,
            columns: true,
            evaluation: Disclosure::Counts,
            strategies: Vec::new(),
            epochs: 100,
            model_megabytes: 512,
            memory_megabytes: 4096,
            rounds_per_day: 10_000,
            min_samples: 20,
        }
    }
}

/// The keys, in the order of [`Policy`], and what they mean.
const KEYS: [(&str, &str); 10] = [
    (
        "statistics",
        "Label statistics that the server may ask for: \"distance\" and \"released\" are one number each,\n\
         # \"histogram\" is the number of training samples of each class. Every server learns the number of samples.",
    ),
    (
        "references",
        "Reference distributions to which a distance is disclosed, for this data set and the same authority, in all runs\n\
         # together: as many as there are classes amount to a histogram. Remembered in sent.jsonl. No limit with \"histogram\".",
    ),
    ("columns", "Whether count, mean and squared deviations of a table's columns may be sent."),
    (
        "evaluation",
        "What is sent after evaluating a model on the hold-out: \"nothing\", \"counts\" (correct, total, loss), or \"confusion\"\n\
         # (the confusion matrix, which has the label counts of the hold-out; needs \"histogram\" in statistics).",
    ),
    (
        "strategies",
        "Strategies that this site trains with, such as [\"fedavg\", \"fedtvd\", \"balanced\"]; all if empty.",
    ),
    (
        "epochs",
        "Greatest number of epochs over the site's samples per round, of all that a strategy trains there.",
    ),
    ("model-megabytes", "Greatest size of a model."),
    ("memory-megabytes", "Greatest amount of memory that training may take, besides the data."),
    (
        "rounds-per-day",
        "Jobs that are answered per day (UTC), with an update or without, and evaluations of models.",
    ),
    (
        "min-samples",
        "Number of training samples below which this site does not train: an update of few samples reveals them. With class\n\
         # weights of the server, (sum of weights)^2 / (sum of squared weights) over the samples must be at least this.",
    ),
];

/// Why a policy cannot be used.
#[derive(Debug, Error)]
#[error("{path}: {why}")]
pub struct PolicyError {
    /// The file.
    pub path: String,
    /// What is wrong.
    pub why: String,
}

/// A request that the site's policy does not allow.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the site's policy does not allow {asked} ({key} = {allowed})")]
pub struct Violation {
    /// What the server asks for.
    pub asked: String,
    /// The policy's key.
    pub key: &'static str,
    /// The policy's value.
    pub allowed: String,
    /// Whether the same request may be allowed on another day.
    pub passing: bool,
}

impl Violation {
    fn new(asked: String, key: &'static str, allowed: impl ToString) -> Self {
        Self { asked, key, allowed: allowed.to_string(), passing: false }
    }
}

fn unless(allowed: bool, violation: impl FnOnce() -> Violation) -> Result<(), Violation> {
    if allowed { Ok(()) } else { Err(violation()) }
}

impl Policy {
    /// Reads a policy; keys that are left out keep their defaults.
    pub fn read(path: &Path) -> Result<Self, PolicyError> {
        let wrong = |why: String| PolicyError { path: path.display().to_string(), why };
        let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        let policy: Self = toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        if policy.evaluation == Disclosure::Confusion && !policy.histogram() {
            return Err(wrong(
                "evaluation = \"confusion\" discloses the label counts of the hold-out; add \"histogram\" to statistics, or \
                 write evaluation = \"counts\""
                    .to_owned(),
            ));
        }
        for name in &policy.strategies {
            notation::find(name).map_err(|error| wrong(format!("strategies: {error}")))?;
        }
        Ok(policy)
    }

    /// The policy as a file with comments.
    pub fn text(&self) -> String {
        let values = toml::Table::try_from(self).expect("a policy is plain data");
        let mut text = "# What this site agrees to. Keys that are left out keep their defaults.\n".to_owned();
        for (key, about) in KEYS {
            let value = values.get(key).map_or_else(String::new, ToString::to_string);
            let _ = write!(text, "\n# {about}\n{key} = {value}\n");
        }
        text
    }

    /// Its keys and values, one per line.
    pub fn summary(&self) -> String {
        let values = toml::Table::try_from(self).expect("a policy is plain data");
        let value = |key| values.get(key).map_or_else(String::new, ToString::to_string);
        KEYS.iter().map(|(key, _)| format!("  {key} = {}\n", value(*key))).collect()
    }

    /// Whether label counts may be disclosed.
    pub fn histogram(&self) -> bool {
        self.statistics.contains(&Ask::Histogram)
    }

    /// Checks the label statistic that is asked for.
    pub fn check_statistic(&self, ask: Ask) -> Result<(), Violation> {
        let names =
            || toml::Value::try_from(&self.statistics).map_or_else(|_| String::new(), |v| v.to_string());
        unless(ask == Ask::Nothing || self.statistics.contains(&ask), || {
            Violation::new(ask.to_string(), "statistics", names())
        })
    }

    /// Checks a strategy by its label, such as `fedtvd:lambda=0.5+balanced`.
    pub fn check_strategy(&self, label: &str) -> Result<(), Violation> {
        let names = label.split('+').map(|part| part.split(':').next().unwrap_or_default().trim());
        let foreign = names.into_iter().find(|name| !self.strategies.iter().any(|allowed| allowed == name));
        unless(self.strategies.is_empty() || foreign.is_none(), || {
            let foreign = foreign.unwrap_or_default().escape_default();
            Violation::new(format!("the strategy {foreign}"), "strategies", self.strategies.join(", "))
        })
    }

    /// Checks the size of a model, in bytes.
    pub fn check_model(&self, bytes: u128) -> Result<(), Violation> {
        unless(bytes <= u128::from(self.model_megabytes) << 20, || {
            Violation::new(
                format!("a model of {}", megabytes(bytes)),
                "model-megabytes",
                self.model_megabytes,
            )
        })
    }

    /// Checks the memory that training takes, in bytes.
    pub fn check_memory(&self, bytes: u128) -> Result<(), Violation> {
        unless(bytes <= u128::from(self.memory_megabytes) << 20, || {
            let asked = format!("training in {} of memory", megabytes(bytes));
            Violation::new(asked, "memory-megabytes", self.memory_megabytes)
        })
    }

    /// Checks the number of epochs per round, of all that is trained.
    pub fn check_epochs(&self, epochs: u64) -> Result<(), Violation> {
        unless(epochs <= u64::from(self.epochs), || {
            Violation::new(format!("{epochs} epochs"), "epochs", self.epochs)
        })
    }

    /// Checks whether a table's columns may be described.
    pub fn check_columns(&self) -> Result<(), Violation> {
        unless(self.columns, || {
            Violation::new("statistics of the table's columns".to_owned(), "columns", false)
        })
    }

    /// Checks the number of training samples.
    pub fn check_samples(&self, samples: u64) -> Result<(), Violation> {
        unless(samples >= self.min_samples, || {
            Violation::new(format!("training on {samples} samples"), "min-samples", self.min_samples)
        })
    }

    /// Checks one more evaluation, after this many today.
    pub fn check_evaluations(&self, today: u64) -> Result<(), Violation> {
        unless(today < self.rounds_per_day, || Violation {
            passing: true,
            ..Violation::new("another evaluation today".to_owned(), "rounds-per-day", self.rounds_per_day)
        })
    }

    /// Checks class weights that the server has chosen: a few samples with most of the weight are as good as alone.
    pub fn check_effective_samples(&self, samples: f64) -> Result<(), Violation> {
        unless(samples >= self.min_samples as f64, || {
            let asked = format!("class weights by which the samples count as {samples:.1}");
            Violation::new(asked, "min-samples", self.min_samples)
        })
    }

    /// Checks one more answered job, after this many today.
    pub fn check_rounds(&self, today: u64) -> Result<(), Violation> {
        unless(today < self.rounds_per_day, || Violation {
            passing: true,
            ..Violation::new("another update today".to_owned(), "rounds-per-day", self.rounds_per_day)
        })
    }
}

fn megabytes(bytes: u128) -> String {
    format!("{} MB", bytes.div_ceil(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Policy, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("site.toml");
        std::fs::write(&path, text).unwrap();
        Policy::read(&path).map_err(|error| error.why)
    }

    #[test]
    fn the_printed_policy_has_every_key_and_is_read_back_as_itself() {
        let policy = Policy { strategies: vec!["fedavg".to_owned()], epochs: 7, ..Policy::default() };
        assert_eq!(parsed(&policy.text()), Ok(policy.clone()));
        let keys = toml::Table::try_from(&policy).unwrap();
        assert_eq!(keys.len(), KEYS.len(), "{keys:?}");
        assert_eq!(parsed(""), Ok(Policy::default()));
    }

    #[test]
    fn unknown_keys_unknown_strategies_and_a_matrix_without_a_histogram_are_refused() {
        assert!(parsed("epoch = 3").unwrap_err().contains("unknown field `epoch`"));
        assert!(parsed("strategies = [\"fedtv\"]").unwrap_err().contains("fedtvd"));
        let error = parsed("evaluation = \"confusion\"").unwrap_err();
        assert!(error.contains("add \"histogram\" to statistics"), "{error}");
        assert!(parsed("evaluation = \"confusion\"\nstatistics = [\"histogram\"]").is_ok());
    }

    #[test]
    fn the_defaults_allow_an_ordinary_run_and_nothing_else() {
        let policy = Policy::default();
        for ask in [Ask::Nothing, Ask::Distance, Ask::Released] {
            assert_eq!(policy.check_statistic(ask), Ok(()));
        }
        let allowed = [
            policy.check_strategy("fedtvd:lambda=0.5+balanced"),
            policy.check_epochs(4),
            policy.check_model(4 * 21_282_122),
            policy.check_memory(1 << 30),
            policy.check_samples(20),
            policy.check_rounds(300),
            policy.check_columns(),
        ];
        assert_eq!(allowed, [const { Ok(()) }; 7]);
        let refused = [
            policy.check_statistic(Ask::Histogram),
            policy.check_epochs(2_000_000_000),
            policy.check_model(3 << 30),
            policy.check_memory(u128::MAX >> 8),
            policy.check_samples(19),
            policy.check_rounds(10_000),
        ];
        let texts = refused.map(|refusal| refusal.unwrap_err().to_string());
        assert_eq!(
            texts[0],
            "the site's policy does not allow label counts (statistics = [\"distance\", \"released\"])"
        );
        assert_eq!(texts[1], "the site's policy does not allow 2000000000 epochs (epochs = 100)");
        assert_eq!(texts[2], "the site's policy does not allow a model of 3072 MB (model-megabytes = 512)");
    }

    #[test]
    fn every_part_of_a_strategy_must_be_allowed() {
        let policy = Policy { strategies: vec!["fedtvd".into(), "balanced".into()], ..Policy::default() };
        assert_eq!(policy.check_strategy("fedtvd:lambda=1+balanced"), Ok(()));
        let error = policy.check_strategy("balanced+scaffold").unwrap_err().to_string();
        assert_eq!(
            error,
            "the site's policy does not allow the strategy scaffold (strategies = fedtvd, balanced)"
        );
    }
}
