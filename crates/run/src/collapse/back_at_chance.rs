//! Accuracy back at chance level after the model had learned something.
//!
//! The excess of an accuracy over chance is (accuracy − chance) / (1 − chance): 0 for a model that always predicts the
//! most frequent class, 1 for a perfect one. A model has learned if the mean excess of five rounds in a row reached 0.1,
//! because single rounds go up and down with the cohort; it is back at chance level if five rounds in a row are below 0.02.
//! A model that never learned anything was destroyed if its loss is also far above that of guessing.

use super::loss_jump::FACTOR_OVER_GUESSING;
use super::recent::{Recent, magnitude};
use fedtvd_core::labels::Statistic;
use fedtvd_core::round::RoundRecord;

const ROUNDS: usize = 5;
const LEARNED: f64 = 0.1;
const AT_CHANCE: f64 = 0.02;

/// The accuracies of a run, relative to chance.
#[derive(Clone, Debug, Default)]
pub(super) struct BackAtChance {
    recent: Recent<Accuracy, ROUNDS>,
    /// The greatest mean excess so far, and the mean accuracy of the same rounds.
    best: Option<Accuracy>,
    /// The rounds at chance level, up to now.
    since: Option<Since>,
    /// The loss of the last round, if it is far above that of guessing.
    exploded: Option<f64>,
}

#[derive(Clone, Copy, Debug)]
struct Accuracy {
    excess: f64,
    accuracy: f64,
}

#[derive(Clone, Copy, Debug)]
struct Since {
    round: u32,
    rounds: usize,
    chance: f64,
}

impl BackAtChance {
    /// The sign of trouble in this round, when the model is first seen to be back at chance level.
    pub(super) fn observe(&mut self, record: &RoundRecord) -> Option<String> {
        // The median over clients, if they evaluated the model: one of them cannot hide a collapse, nor invent it.
        let accuracy = record.median_accuracy.or(record.accuracy)?;
        let chance = chance(record).filter(|chance| *chance < 1.0)?;
        self.exploded = record.loss.filter(|loss| *loss >= FACTOR_OVER_GUESSING * -chance.ln());
        let excess = (accuracy - chance) / (1.0 - chance);
        self.recent.push(Accuracy { excess, accuracy });
        if self.recent.len() == ROUNDS {
            let mean = |part: fn(&Accuracy) -> f64| self.recent.iter().map(part).sum::<f64>() / ROUNDS as f64;
            let now = Accuracy { excess: mean(|one| one.excess), accuracy: mean(|one| one.accuracy) };
            self.best = self.best.filter(|best| best.excess >= now.excess).or(Some(now));
        }
        self.since = (excess < AT_CHANCE).then(|| match self.since {
            Some(since) => Since { rounds: since.rounds + 1, chance, ..since },
            None => Since { round: record.round, rounds: 1, chance },
        });
        self.since.filter(|since| since.rounds == ROUNDS).and_then(|_| self.verdict())
    }

    /// Why the result cannot be used, if it is at chance level.
    pub(super) fn verdict(&self) -> Option<String> {
        let since = self.since.filter(|since| since.rounds >= ROUNDS)?;
        let (chance, round) = (100.0 * since.chance, since.round);
        if let Some(loss) = self.exploded {
            let loss = magnitude(loss);
            return Some(format!(
                "accuracy at chance level ({chance:.1} %) from round {round} on, with a loss of {loss}"
            ));
        }
        let best = self.best.filter(|best| best.excess >= LEARNED)?;
        Some(format!(
            "accuracy back at chance level ({chance:.1} %) from round {round} on, after {:.1} %",
            100.0 * best.accuracy
        ))
    }
}

/// The accuracy of always predicting the most frequent class. Records of earlier versions do not have it; with as many
/// samples of each class it follows from the number of classes, if that is known.
fn chance(record: &RoundRecord) -> Option<f64> {
    let counted = || {
        record.clients.iter().find_map(|client| match &client.statistic {
            Statistic::Histogram(counts) => Some(counts.len()),
            _ => None,
        })
    };
    let classes = || record.class_accuracy.as_ref().map(Vec::len).or_else(counted);
    record.chance.or_else(|| classes().map(|classes| 1.0 / classes as f64))
}
