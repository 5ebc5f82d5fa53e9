//! Accuracy back at chance level after the model had learned something.
//!
//! A model has learned if the mean excess over chance of five rounds in a row reached 0.1, because single rounds go up and
//! down with the cohort. It is back at chance level if the excess of five rounds in a row is below 0.02. Where only numbers of
//! correct predictions are known, predicting one class may be better than 1 / number of classes; so less than a tenth of
//! the best excess is at chance level too.
//!
//! A run that never learned has not collapsed.

use super::level::{Kind, Level};
use super::recent::Recent;
use fedtvd_core::round::RoundRecord;

/// A model is at chance level, or has learned, if this many rounds in a row say so.
pub(super) const ROUNDS: usize = 5;
/// An excess below this is chance.
pub(super) const AT_CHANCE: f64 = 0.02;
const LEARNED: f64 = 0.1;
/// Where only counts are known: a share of the best excess below which nothing is left.
const LEFT: f64 = 0.1;

/// The accuracies of a run, relative to chance. Rounds in which all clients disclosed their matrices are compared with such
/// rounds only.
#[derive(Clone, Debug, Default)]
pub(super) struct BackAtChance {
    balanced: Course,
    counts: Course,
    last: Option<Kind>,
}

/// Accuracies of one kind.
#[derive(Clone, Debug, Default)]
struct Course {
    recent: Recent<Level, ROUNDS>,
    /// The greatest mean excess so far, and the mean accuracy of the same rounds.
    best: Option<Best>,
    /// The rounds at chance level, up to now.
    since: Option<Since>,
}

#[derive(Clone, Copy, Debug)]
struct Best {
    excess: f64,
    accuracy: f64,
}

#[derive(Clone, Copy, Debug)]
struct Since {
    round: u32,
    rounds: usize,
    level: Level,
}

impl BackAtChance {
    /// The sign of trouble in this round, when the model is first seen to be back at chance level.
    pub(super) fn observe(&mut self, record: &RoundRecord) -> Option<String> {
        let level = Level::of(record)?;
        self.last = Some(level.kind);
        let course = self.course_mut(level.kind);
        course.observe(record.round, level);
        course.since.filter(|since| since.rounds == ROUNDS).and_then(|_| course.verdict())
    }

    /// Why the result cannot be used, if it is back at chance level.
    pub(super) fn verdict(&self) -> Option<String> {
        match self.last? {
            Kind::Balanced => self.balanced.verdict(),
            Kind::Counts | Kind::ClientCounts => self.counts.verdict(),
        }
    }

    fn course_mut(&mut self, kind: Kind) -> &mut Course {
        match kind {
            Kind::Balanced => &mut self.balanced,
            Kind::Counts | Kind::ClientCounts => &mut self.counts,
        }
    }
}

impl Course {
    fn observe(&mut self, round: u32, level: Level) {
        self.recent.push(level);
        if self.recent.len() == ROUNDS {
            let mean = |part: fn(&Level) -> f64| self.recent.iter().map(part).sum::<f64>() / ROUNDS as f64;
            let now = Best { excess: mean(Level::excess), accuracy: mean(|level| level.accuracy) };
            self.best = self.best.filter(|best| best.excess >= now.excess).or(Some(now));
        }
        let best = self.best.map_or(0.0, |best| best.excess);
        let bound = match level.kind {
            Kind::Balanced => AT_CHANCE,
            Kind::Counts | Kind::ClientCounts => AT_CHANCE.max(LEFT * best),
        };
        self.since = (level.excess() < bound).then(|| match self.since {
            Some(since) => Since { rounds: since.rounds + 1, level, ..since },
            None => Since { round, rounds: 1, level },
        });
    }

    fn verdict(&self) -> Option<String> {
        let Since { round, level, .. } = self.since.filter(|since| since.rounds >= ROUNDS)?;
        let best = self.best.filter(|best| best.excess >= LEARNED)?;
        let (name, chance, accuracy) = (level.kind.name(), 100.0 * level.chance, 100.0 * best.accuracy);
        Some(format!(
            "{name} back at chance level ({chance:.1} %) from round {round} on, after {accuracy:.1} %"
        ))
    }
}
