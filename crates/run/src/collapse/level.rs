//! How far a model is above chance after a round, by as much as the record knows.
//!
//! ```text
//! excess = (a - c) / (1 - c)     0 for a model that predicts one class for every sample, 1 for a perfect one
//! ```
//!
//! | known | a | c |
//! |---|---|---|
//! | accuracies of the classes | their mean, the balanced accuracy | 1 / number of classes, exactly what predicting one class gives |
//! | accuracy only | the accuracy; the median over clients if they evaluated the model | 1 / number of classes, at most what predicting the most frequent class gives |
//!
//! Accuracy is not compared with the share of the most frequent class: a useful model of a rare class is often below it.
//! Without a test set, the balanced accuracy is that on the hold-outs. The cross-entropy of guessing is ln C, which does not depend on the shares either.

use fedtvd_core::labels::Statistic;
use fedtvd_core::round::{Balanced, RoundRecord};

/// What an accuracy was computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// From the accuracies of the classes.
    Balanced,
    /// From the numbers of correct predictions, by the server.
    Counts,
    /// From the numbers of correct predictions, by the clients.
    ClientCounts,
}

impl Kind {
    /// Its accuracy in words.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Balanced => "balanced accuracy",
            Self::Counts => "accuracy",
            Self::ClientCounts => "the clients' median accuracy",
        }
    }
}

/// The accuracy after a round and its level of chance.
#[derive(Clone, Copy, Debug)]
pub(super) struct Level {
    pub(super) kind: Kind,
    pub(super) accuracy: f64,
    pub(super) chance: f64,
}

impl Level {
    /// That of a round; `None` if the model was not evaluated, or if the number of classes is unknown.
    pub(super) fn of(record: &RoundRecord) -> Option<Self> {
        let validated = record.validation.filter(|_| record.accuracy.is_none());
        if let Some(Balanced { accuracy, classes }) = validated.and_then(|validation| validation.balanced) {
            return Some(Self { kind: Kind::Balanced, accuracy, chance: 1.0 / classes as f64 });
        }
        // Samples of one class cannot show whether a model tells classes apart.
        let accuracy = record.accuracy.filter(|_| record.chance.is_none_or(|chance| chance < 1.0))?;
        let recorded = record.class_accuracy.as_deref();
        if let Some(Balanced { accuracy, classes }) = record.balanced.or_else(|| Balanced::of(recorded?)) {
            return Some(Self { kind: Kind::Balanced, accuracy, chance: 1.0 / classes as f64 });
        }
        // The median over clients, if they evaluated the model: one of them cannot hide a collapse, nor invent it.
        let (kind, accuracy) = match record.median_accuracy {
            Some(median) => (Kind::ClientCounts, median),
            None => (Kind::Counts, accuracy),
        };
        Some(Self { kind, accuracy, chance: 1.0 / classes(record)? })
    }

    /// How far it is above chance.
    pub(super) fn excess(&self) -> f64 {
        (self.accuracy - self.chance) / (1.0 - self.chance)
    }
}

/// The loss of a round: the median over clients, if they evaluated the model, and that on the hold-outs, if the test set was not
/// evaluated; `None` if it is not finite.
pub(super) fn loss(record: &RoundRecord) -> Option<f64> {
    let validation = || record.validation.filter(|_| record.accuracy.is_none())?.loss;
    record.median_loss.or(record.loss).or_else(validation).filter(|loss| loss.is_finite())
}

/// ln C, the cross-entropy of giving every class the same probability; `None` if the number of classes is unknown.
pub(super) fn guessing(record: &RoundRecord) -> Option<f64> {
    classes(record).map(f64::ln)
}

/// The number of classes, at least two. Records of earlier versions have it if they list accuracies or label counts of the
/// classes; else it is at least 1 / the share of the most frequent class, and that number if all classes are as frequent.
fn classes(record: &RoundRecord) -> Option<f64> {
    let counted = || {
        record.clients.iter().find_map(|client| match &client.statistic {
            Statistic::Histogram(counts) => Some(counts.len()),
            _ => None,
        })
    };
    let listed = || record.class_accuracy.as_ref().map(Vec::len).or_else(counted);
    let known = record.classes.or_else(listed).map(|classes| classes as f64);
    known
        .or_else(|| Some(1.0 / record.chance.filter(|chance| *chance > 0.0)?))
        .map(|classes| classes.max(2.0))
}
