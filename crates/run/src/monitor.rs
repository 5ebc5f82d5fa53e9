//! Follows the metric over a run: its best round, and whether the run stops before its last one.
//!
//! It depends on the records only, so that a resumed run stops where one that was never interrupted does. Only every n-th
//! round counts (`evaluation.every`): the last round of a run is evaluated in any case, and would be another one in a longer run.

use crate::configuration::{EvaluationOptions, Metric};
use fedtvd_core::round::RoundRecord;
use serde::{Deserialize, Serialize};

/// The metric after the rounds so far.
#[derive(Clone, Debug)]
pub(crate) struct Monitor {
    options: EvaluationOptions,
    best: Option<Best>,
    stopped: Option<String>,
}

/// The best round by validation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Best {
    /// The round.
    pub round: u32,
    /// What it was chosen by: the name of the metric.
    pub metric: String,
    /// Its value on the hold-outs.
    pub value: f64,
    /// Accuracy on the test set after that round; null if it was not evaluated there.
    pub test_accuracy: Option<f64>,
    /// The model after that round; null if it is not kept, as after a rollback.
    pub model: Option<String>,
}

impl Monitor {
    pub(crate) fn new(options: EvaluationOptions) -> Self {
        Self { options, best: None, stopped: None }
    }

    /// Takes in the next round; returns whether it is the best so far.
    pub(crate) fn observe(&mut self, record: &RoundRecord) -> bool {
        let EvaluationOptions { metric, every, target, patience, .. } = self.options;
        if !record.round.is_multiple_of(every) {
            return false;
        }
        let judged = judged(metric, record);
        let test = || metric.of_assessment(record).map(|value| (value, "the test set"));
        let reached = |value: f64, target: f64| value == target || metric.better(value, target);
        if let (Some(target), Some((value, on))) = (target, judged.or_else(test))
            && reached(value, target)
        {
            let (value, target) = (metric.shown(value), metric.shown(target));
            let (name, round) = (metric.name(), record.round);
            self.stopped =
                Some(format!("{name} on {on} is {value} after round {round}; the target is {target}"));
        }
        let better = |value: f64| self.best.as_ref().is_none_or(|best| metric.better(value, best.value));
        let gain = judged.filter(|(value, _)| better(*value));
        if let Some((value, _)) = gain {
            let (metric, test_accuracy) = (metric.name().to_owned(), test_accuracy(record));
            self.best = Some(Best { round: record.round, metric, value, test_accuracy, model: None });
        }
        if let (Some(patience), Some(best)) = (patience, &self.best)
            && record.round - best.round >= patience
        {
            self.stopped = Some(format!(
                "no better {} on the hold-outs for {patience} rounds; the best is {} after round {}",
                metric.name(),
                metric.shown(best.value),
                best.round
            ));
        }
        gain.is_some()
    }

    /// The best round so far; `None` without validation.
    pub(crate) fn best(&self) -> Option<&Best> {
        self.best.as_ref()
    }

    /// Why the run stops after the rounds so far; `None` if it does not.
    pub(crate) fn stopped(&self) -> Option<&String> {
        self.stopped.as_ref()
    }
}

/// The metric on the clients' hold-outs, in a simulation or in a federation.
fn judged(metric: Metric, record: &RoundRecord) -> Option<(f64, &'static str)> {
    let by_clients = || metric.of_assessment(record).filter(|_| record.median_accuracy.is_some());
    let value = match &record.validation {
        Some(validation) => metric.of_validation(validation),
        None => by_clients(),
    };
    value.map(|value| (value, "the hold-outs"))
}

/// The accuracy on a test set, which clients that evaluate the model do not have.
fn test_accuracy(record: &RoundRecord) -> Option<f64> {
    record.accuracy.filter(|_| record.median_accuracy.is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedtvd_core::round::{Spread, Validation};

    const OPTIONS: EvaluationOptions = EvaluationOptions {
        every: 1,
        last: 100,
        test: true,
        details: false,
        metric: Metric::Accuracy,
        target: None,
        patience: None,
    };

    /// A round with this accuracy on the hold-outs, and 1 on the test set.
    fn round(round: u32, accuracy: f64) -> RoundRecord {
        let clients = Spread { mean: accuracy, deviation: 0.0, worst_decile: accuracy };
        let loss = Some(1.0 - accuracy);
        let validation =
            Some(Validation { samples: 10, accuracy, loss, balanced: None, macro_f1: None, clients });
        RoundRecord { round, accuracy: Some(1.0), validation, ..RoundRecord::default() }
    }

    /// The round after which a run with these accuracies stops.
    fn stops(options: EvaluationOptions, accuracies: &[f64]) -> Option<u32> {
        let mut monitor = Monitor::new(options);
        (1..).zip(accuracies).find_map(|(n, &accuracy)| {
            monitor.observe(&round(n, accuracy));
            monitor.stopped().map(|_| n)
        })
    }

    #[test]
    fn a_run_stops_at_its_target_on_the_hold_outs_and_not_on_the_test_set() {
        let options = EvaluationOptions { target: Some(0.6), ..OPTIONS };
        assert_eq!(stops(options, &[0.5, 0.59, 0.6, 0.7]), Some(3));
        let loss = EvaluationOptions { target: Some(0.35), metric: Metric::Loss, ..OPTIONS };
        assert_eq!(stops(loss, &[0.5, 0.6, 0.7]), Some(3));
    }

    #[test]
    fn patience_counts_rounds_since_the_best_one() {
        let options = EvaluationOptions { patience: Some(2), ..OPTIONS };
        assert_eq!(stops(options, &[0.5, 0.6, 0.5, 0.7, 0.7, 0.7, 0.9]), Some(6));
        assert_eq!(stops(options, &[0.5, 0.6, 0.5, 0.7]), None);
    }

    #[test]
    fn only_every_nth_round_counts() {
        let options = EvaluationOptions { every: 2, target: Some(0.6), ..OPTIONS };
        assert_eq!(stops(options, &[0.9, 0.1, 0.9, 0.8]), Some(4));
    }

    #[test]
    fn without_hold_outs_a_test_set_reaches_a_target_but_makes_no_round_the_best() {
        let mut monitor = Monitor::new(EvaluationOptions { target: Some(0.9), ..OPTIONS });
        assert!(!monitor.observe(&RoundRecord { validation: None, ..round(1, 0.0) }));
        let reason = "accuracy on the test set is 100.00 % after round 1; the target is 90.00 %";
        assert_eq!((monitor.best(), monitor.stopped().map(String::as_str)), (None, Some(reason)));
    }

    #[test]
    fn the_best_round_names_its_accuracy_on_the_test_set() {
        let mut monitor = Monitor::new(OPTIONS);
        let gains: Vec<bool> =
            [0.5, 0.7, 0.6].iter().zip(1..).map(|(a, n)| monitor.observe(&round(n, *a))).collect();
        assert_eq!(gains, [true, true, false]);
        let best = monitor.best().unwrap();
        assert_eq!((best.round, best.value, best.test_accuracy), (2, 0.7, Some(1.0)));
    }
}
