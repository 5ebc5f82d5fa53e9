//! A sudden jump of the loss.

use super::far_from_guessing::FACTOR as FACTOR_OVER_GUESSING;
use super::level;
use super::recent::{Recent, magnitude, times};
use crate::directory::LAST;
use fedtvd_core::round::RoundRecord;

/// A loss is far above the usual one from this factor on.
const FACTOR: f64 = 10.0;

/// The losses of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct LossJump {
    recent: Recent<f64, LAST>,
    /// The first of the rounds, up to now, whose loss was not finite.
    since: Option<u32>,
}

impl LossJump {
    /// The sign of trouble in this round.
    pub(super) fn observe(&mut self, record: &RoundRecord) -> Option<String> {
        // A model that was not evaluated has no accuracy either. NaN is null in a record.
        record.accuracy?;
        let Some(loss) = level::loss(record) else {
            let first = self.since.is_none();
            self.since.get_or_insert(record.round);
            return first.then(|| "the loss is not finite".to_owned());
        };
        self.since = None;
        let sign = match (self.recent.usual(), level::guessing(record)) {
            // A small loss can grow by any factor and stay small.
            (Some(usual), guessing)
                if loss >= FACTOR * usual && guessing.is_none_or(|guess| loss > guess) =>
            {
                Some(format!(
                    "the loss is {}, {} that of recent rounds",
                    magnitude(loss),
                    times(loss / usual)
                ))
            }
            (None, Some(guessing)) if loss >= FACTOR_OVER_GUESSING * guessing => {
                Some(format!("the loss is {}, {} that of guessing", magnitude(loss), times(loss / guessing)))
            }
            _ => None,
        };
        self.recent.push(loss);
        sign
    }

    /// Why the result cannot be used, if its loss is not finite.
    pub(super) fn verdict(&self) -> Option<String> {
        self.since.map(|round| format!("the loss is not finite from round {round} on"))
    }
}
