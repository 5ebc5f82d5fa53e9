//! A loss far above that of guessing, ln C, in a model that is no better than guessing: training or an attack has destroyed it,
//! whether or not it had learned something before.
//!
//! A round is no better than guessing if its accuracy is at chance level. Where only numbers of correct predictions are known, the
//! accuracy of a destroyed model can be as high as the share of the most frequent class, but it is the same in every round, because
//! the model predicts one class. That of an overconfident model goes up and down: at a high learning rate the loss of a useful model can
//! be 100 times that of guessing.

use super::back_at_chance::{AT_CHANCE, ROUNDS};
use super::level::{Kind, Level, guessing, loss};
use super::recent::magnitude;
use fedtvd_core::round::RoundRecord;

/// A loss is far above that of guessing from this factor on.
pub(super) const FACTOR: f64 = 100.0;

/// The rounds, up to now, whose model was no better than guessing.
#[derive(Clone, Debug, Default)]
pub(super) struct FarFromGuessing {
    since: Option<Since>,
    /// The loss of the last round, if it is far above that of guessing.
    far: Option<f64>,
    /// The accuracy of the last round.
    accuracy: Option<f64>,
}

#[derive(Clone, Copy, Debug)]
struct Since {
    round: u32,
    rounds: usize,
}

impl FarFromGuessing {
    /// The sign of trouble in this round, when the model is first seen to be destroyed.
    pub(super) fn observe(&mut self, record: &RoundRecord) -> Option<String> {
        let before = self.verdict().is_some();
        let level = Level::of(record)?;
        let guessing = guessing(record)?;
        self.far = loss(record).filter(|loss| *loss >= FACTOR * guessing);
        let same = self.accuracy.replace(level.accuracy) == Some(level.accuracy);
        let one_class = level.kind != Kind::Balanced && same && self.far.is_some();
        let no_better = level.excess() < AT_CHANCE || one_class;
        self.since = no_better.then(|| match self.since {
            Some(since) => Since { rounds: since.rounds + 1, ..since },
            None => Since { round: record.round, rounds: 1 },
        });
        self.verdict().filter(|_| !before)
    }

    /// Why the result cannot be used, if the model is destroyed.
    pub(super) fn verdict(&self) -> Option<String> {
        let (Since { round, .. }, loss) = (self.since.filter(|since| since.rounds >= ROUNDS)?, self.far?);
        Some(format!("no better than guessing from round {round} on, with a loss of {}", magnitude(loss)))
    }
}
