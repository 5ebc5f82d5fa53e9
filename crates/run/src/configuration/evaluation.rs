//! When and on what the model is evaluated, and when a run stops before its last round.

use crate::configuration::experiment::{flag, number, text, whole};
use crate::configuration::{Config, ExperimentError};
use fedtvd_core::round::{RoundRecord, Validation};

/// How a run evaluates its model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EvaluationOptions {
    /// The model is evaluated after every n-th round...
    pub every: u32,
    /// ...and after this one, the last of the run.
    pub last: u32,
    /// Whether a simulation evaluates on the test set, or only on the clients' hold-outs.
    pub test: bool,
    /// Whether records hold accuracy per class and per client.
    pub details: bool,
    /// What validation is judged by.
    pub metric: Metric,
    /// The run stops once the metric reaches this value.
    pub target: Option<f64>,
    /// The run stops after this many rounds without a better value.
    pub patience: Option<u32>,
}

/// A measure of a model's quality.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// The fraction of samples that are classified correctly.
    Accuracy,
    /// The mean of the accuracies of the classes.
    Balanced,
    /// The mean of the F1 scores of the classes.
    MacroF1,
    /// The mean cross-entropy; the lower, the better.
    Loss,
}

/// The words for metrics in a configuration.
pub(crate) const METRICS: &[&str] = &["accuracy", "balanced", "macro_f1", "loss"];

impl EvaluationOptions {
    /// Those of a configuration.
    pub fn of(config: &Config) -> Result<Self, ExperimentError> {
        let metric = Metric::named(&text(config, "evaluation.metric"));
        let target = Some(number(config, "stop.target")).filter(|target| *target > 0.0);
        if let Some(target) = target.filter(|target| metric != Metric::Loss && *target > 1.0) {
            return Err(ExperimentError::Target { target, metric: metric.name() });
        }
        Ok(Self {
            every: whole(config, "evaluation.every") as u32,
            last: whole(config, "rounds") as u32,
            test: flag(config, "evaluation.test"),
            details: flag(config, "evaluation.details"),
            metric,
            target,
            patience: Some(whole(config, "stop.patience") as u32).filter(|rounds| *rounds > 0),
        })
    }

    /// Whether the model is evaluated after this round.
    pub fn due(&self, round: u32) -> bool {
        round.is_multiple_of(self.every) || round == self.last
    }
}

impl Default for EvaluationOptions {
    /// Every round, on the test set.
    fn default() -> Self {
        let (target, patience) = (None, None);
        Self {
            every: 1,
            last: u32::MAX,
            test: true,
            details: false,
            metric: Metric::Accuracy,
            target,
            patience,
        }
    }
}

impl Metric {
    /// By its word; the first one for an unknown word, which the key does not keep.
    fn named(word: &str) -> Self {
        match word {
            "balanced" => Self::Balanced,
            "macro_f1" => Self::MacroF1,
            "loss" => Self::Loss,
            _ => Self::Accuracy,
        }
    }

    /// Its name in sentences.
    pub fn name(self) -> &'static str {
        match self {
            Self::Accuracy => "accuracy",
            Self::Balanced => "balanced accuracy",
            Self::MacroF1 => "macro F1",
            Self::Loss => "loss",
        }
    }

    /// Its value on the hold-outs; `None` if it is not known there.
    pub fn of_validation(self, validation: &Validation) -> Option<f64> {
        match self {
            Self::Accuracy => Some(validation.accuracy),
            Self::Balanced => validation.balanced.map(|balanced| balanced.accuracy),
            Self::MacroF1 => validation.macro_f1,
            Self::Loss => validation.loss,
        }
    }

    /// Its value as the server, or the clients of a federation, evaluated the model.
    pub fn of_assessment(self, record: &RoundRecord) -> Option<f64> {
        match self {
            Self::Accuracy => record.accuracy,
            Self::Balanced => record.balanced.map(|balanced| balanced.accuracy),
            Self::MacroF1 => record.macro_f1,
            Self::Loss => record.loss.filter(|loss| loss.is_finite()),
        }
    }

    /// Whether one value is better than another.
    pub fn better(self, one: f64, other: f64) -> bool {
        if self == Self::Loss { one < other } else { one > other }
    }

    /// A value for people.
    pub fn shown(self, value: f64) -> String {
        if self == Self::Loss { format!("{value:.4}") } else { format!("{:.2} %", 100.0 * value) }
    }
}
