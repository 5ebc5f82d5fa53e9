//! A loss far above that of guessing, ln C, in a model that is no better than guessing: training or an attack has destroyed it,
//! whether or not it had learned something before.
//!
//! | accuracy | loss | rounds in a row |
//! |---|---|---|
//! | of each class known | 100 times that of guessing | the last one |
//! | of each class known | 10 times that of guessing | 5 |
//! | numbers of correct predictions known | 100 times that of guessing | 5 |
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
/// A model at chance level in every class whose loss is this many times that of guessing, for several rounds, is destroyed, too.
const SUSTAINED: f64 = 10.0;

/// The rounds, up to now, whose model was no better than guessing.
#[derive(Clone, Debug, Default)]
pub(super) struct FarFromGuessing {
    since: Option<Since>,
    /// The loss of the last round, as a multiple of that of guessing, if it is known.
    loss: Option<Multiple>,
    /// Whether the accuracy of each class was known in the last round.
    balanced: bool,
    /// The rounds, up to now, that were no better than guessing with a loss of at least [`SUSTAINED`] times that of guessing.
    sustained: usize,
    /// The accuracy of the last round.
    accuracy: Option<f64>,
}

#[derive(Clone, Copy, Debug)]
struct Multiple {
    loss: f64,
    of_guessing: f64,
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
        self.loss = loss(record).map(|loss| Multiple { loss, of_guessing: loss / guessing });
        self.balanced = level.kind == Kind::Balanced;
        let same = self.accuracy.replace(level.accuracy) == Some(level.accuracy);
        let far = self.loss.is_some_and(|loss| loss.of_guessing >= FACTOR);
        let one_class = !self.balanced && same && far;
        let no_better = level.excess() < AT_CHANCE || one_class;
        self.since = no_better.then(|| match self.since {
            Some(since) => Since { rounds: since.rounds + 1, ..since },
            None => Since { round: record.round, rounds: 1 },
        });
        let sustained = self.loss.is_some_and(|loss| loss.of_guessing >= SUSTAINED);
        self.sustained = if no_better && sustained { self.sustained + 1 } else { 0 };
        self.verdict().filter(|_| !before)
    }

    /// Why the result cannot be used, if the model is destroyed.
    pub(super) fn verdict(&self) -> Option<String> {
        let (Since { round, rounds }, Multiple { loss, of_guessing }) = (self.since?, self.loss?);
        let far = of_guessing >= FACTOR;
        let destroyed = match self.balanced {
            true => far || self.sustained >= ROUNDS,
            false => far && rounds >= ROUNDS,
        };
        destroyed.then_some(())?;
        Some(format!("no better than guessing from round {round} on, with a loss of {}", magnitude(loss)))
    }
}
