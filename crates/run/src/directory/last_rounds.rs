//! What the last rounds say about a model: means of its metrics, and the classes that it misses in all of them.

use crate::configuration::{EvaluationOptions, Metric};
use crate::directory::LAST;
use fedtvd_core::round::{MissedClass, RoundRecord, Spread};
use std::collections::VecDeque;

/// The metrics of the last rounds, at most [`LAST`]; a long run must not grow with each round. Rounds after which the model was not to be
/// evaluated do not count.
#[derive(Clone, Debug)]
pub struct LastRounds {
    options: EvaluationOptions,
    rounds: VecDeque<Metrics>,
}

/// The metrics of one round; `None` if not recorded.
#[derive(Clone, Debug)]
pub struct Metrics {
    round: u32,
    /// Accuracy.
    pub accuracy: Option<f64>,
    /// Mean of the accuracies of the classes.
    pub balanced_accuracy: Option<f64>,
    /// Mean of the F1 scores of the classes.
    pub macro_f1: Option<f64>,
    /// Mean cross-entropy.
    pub loss: Option<f64>,
    /// The metric that the clients' hold-outs are judged by.
    pub validation: Option<f64>,
    /// Accuracy over clients of the models that they use themselves.
    pub personal: Option<Spread>,
    missed_classes: Option<Vec<MissedClass>>,
}

impl Metrics {
    fn of(record: &RoundRecord, metric: Metric) -> Self {
        Self {
            round: record.round,
            validation: record.validation.as_ref().and_then(|found| metric.of_validation(found)),
            personal: record.personal.map(|personal| personal.clients),
            accuracy: record.accuracy,
            balanced_accuracy: record.balanced.map(|balanced| balanced.accuracy),
            macro_f1: record.macro_f1,
            loss: record.loss,
            missed_classes: record.missed_classes.clone(),
        }
    }
}

impl LastRounds {
    /// Before the first round.
    pub(crate) fn new(options: EvaluationOptions) -> Self {
        Self { options, rounds: VecDeque::new() }
    }

    /// The last of these rounds.
    pub fn of(records: &[RoundRecord], options: EvaluationOptions) -> Self {
        let mut last = Self::new(options);
        records[records.len().saturating_sub(LAST)..].iter().for_each(|record| last.push(record));
        last
    }

    pub(crate) fn push(&mut self, record: &RoundRecord) {
        self.rounds.push_back(Metrics::of(record, self.options.metric));
        if self.rounds.len() > LAST {
            self.rounds.pop_front();
        }
    }

    /// Those after which the model was to be evaluated.
    fn due(&self) -> impl Iterator<Item = &Metrics> {
        self.rounds.iter().filter(|round| self.options.due(round.round))
    }

    /// The last round.
    pub(crate) fn newest(&self) -> Option<&Metrics> {
        self.rounds.back()
    }

    /// Mean of a metric; `None` if one of the rounds lacks it.
    pub fn mean(&self, metric: fn(&Metrics) -> Option<f64>) -> Option<f64> {
        let known: Vec<f64> = self.due().map(metric).collect::<Option<_>>()?;
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    }

    /// Mean of the accuracy over clients of the models that they use themselves; `None` if one of the rounds lacks it.
    pub fn personal(&self) -> Option<Spread> {
        Spread::mean_of(self.due().map(|round| round.personal))
    }

    /// The classes that are missed in all of these rounds; `None` if one of the rounds does not record them.
    pub fn missed_classes(&self) -> Option<Vec<MissedClass>> {
        let all: Vec<&Vec<MissedClass>> =
            self.due().map(|round| round.missed_classes.as_ref()).collect::<Option<_>>()?;
        let missed = |class: &&MissedClass| {
            all.iter().all(|round| round.iter().any(|other| other.class == class.class))
        };
        Some(all.last()?.iter().filter(missed).copied().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A round with these missed classes and this loss.
    fn round(missed: Option<&[usize]>, loss: Option<f64>) -> RoundRecord {
        let missed_classes =
            missed.map(|missed| missed.iter().map(|&class| MissedClass { class, share: 0.1 }).collect());
        RoundRecord { missed_classes, loss, ..RoundRecord::default() }
    }

    #[test]
    fn a_class_counts_as_missed_if_all_of_the_last_rounds_miss_it() {
        let missed = |rounds: &[RoundRecord]| {
            let found = LastRounds::of(rounds, EvaluationOptions::default()).missed_classes();
            found.map(|found| found.iter().map(|missed| missed.class).collect::<Vec<_>>())
        };
        let rounds = [round(Some(&[0, 1, 2]), None), round(Some(&[1, 2]), None), round(Some(&[2, 3]), None)];
        assert_eq!(missed(&rounds), Some(vec![2]));
        assert_eq!(missed(&[round(Some(&[2]), None), round(None, None)]), None);
        // A round before the last ten does not count.
        let many: Vec<RoundRecord> =
            (0..11).map(|place| round(Some(if place == 0 { &[] } else { &[5] }), None)).collect();
        assert_eq!(missed(&many), Some(vec![5]));
    }

    #[test]
    fn a_mean_needs_every_round_and_rounds_pushed_one_by_one_are_those_read_at_once() {
        let rounds: Vec<RoundRecord> = (0..13).map(|place| round(None, Some(f64::from(place)))).collect();
        let mut pushed = LastRounds::new(EvaluationOptions::default());
        rounds.iter().for_each(|record| pushed.push(record));
        // The mean of 3 to 12.
        assert_eq!(pushed.mean(|round| round.loss), Some(7.5));
        assert_eq!(LastRounds::of(&rounds, EvaluationOptions::default()).mean(|round| round.loss), Some(7.5));
        pushed.push(&round(None, None));
        assert_eq!((pushed.mean(|round| round.loss), pushed.mean(|round| round.accuracy)), (None, None));
    }
}
