//! One line per strategy: what its curves come to, and how it differs from the first one.

use crate::comparison::Curve;
use crate::statistics::{deviation, interval, mean, paired};
use fedtvd_run::summary::last_accuracy;
use serde::Serialize;

pub use fedtvd_run::summary::LAST;

/// One strategy over all seeds. Accuracies are fractions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    /// The strategy's label.
    pub strategy: String,
    /// Mean over seeds of the mean accuracy of the last rounds.
    pub mean: f64,
    /// Its deviation over seeds.
    pub std: Option<f64>,
    /// Mean paired difference to the first strategy; `None` for the first one itself.
    pub difference: Option<f64>,
    /// Low end of its 95 % interval.
    pub low: Option<f64>,
    /// High end of its 95 % interval.
    pub high: Option<f64>,
    /// Two-sided p of a paired t-test; `None` below six seeds, where no paired test can say anything.
    pub p: Option<f64>,
    /// Seeds in which it beats the first strategy.
    pub wins: Option<usize>,
    /// Round in which the mean curve first reaches the first strategy's final accuracy.
    pub rounds_to_target: Option<usize>,
    /// Deviation between the last rounds, averaged over seeds.
    pub wobble: Option<f64>,
    /// Mean effective number of clients per round.
    pub effective_clients: f64,
}

impl Line {
    /// What a table shows behind the strategy's name: accuracy, difference, wins, rounds, wobble, counted.
    pub fn cells(&self, seeds: usize) -> [String; 6] {
        let points = |share: f64| format!("{:.1}", 100.0 * share);
        let none = || "—".to_owned();
        let spread = self.std.map_or(String::new(), |std| format!(" ± {}", points(std)));
        let versus = match (self.difference, self.low, self.high) {
            (Some(d), Some(low), Some(high)) => {
                format!("{:+.1} [{:+.1}, {:+.1}]", 100.0 * d, 100.0 * low, 100.0 * high)
            }
            (Some(d), ..) => format!("{:+.1}", 100.0 * d),
            _ => none(),
        };
        [
            points(self.mean) + &spread,
            versus,
            self.wins.map_or_else(none, |wins| format!("{wins}/{seeds}")),
            self.rounds_to_target.map_or_else(|| "never".to_owned(), |rounds| rounds.to_string()),
            self.wobble.map_or_else(none, points),
            format!("{:.1}", self.effective_clients),
        ]
    }

    /// Whether the interval of the difference leaves open which of the two is better.
    pub fn undecided(&self) -> bool {
        matches!((self.low, self.high), (Some(low), Some(high)) if low <= 0.0 && high >= 0.0)
    }
}

/// Seeds below which no paired test is made.
const LEAST_FOR_A_TEST: usize = 6;

/// Lines of all strategies, in their order.
pub fn summary(labels: &[String], curves: &[Curve]) -> Vec<Line> {
    let own = |strategy: usize| -> Vec<&Curve> { curves.iter().filter(|c| c.strategy == strategy).collect() };
    let finals =
        |curves: &[&Curve]| -> Vec<f64> { curves.iter().map(|c| last_accuracy(&c.accuracy)).collect() };
    let first = finals(&own(0));
    let target = mean(&first);
    let line = |(strategy, label): (usize, &String)| {
        let curves = own(strategy);
        let accuracies = finals(&curves);
        let differences: Vec<f64> = accuracies.iter().zip(&first).map(|(a, b)| a - b).collect();
        let later = strategy > 0;
        let ends = if later { interval(&differences) } else { None };
        let wobbles: Vec<f64> = curves.iter().filter_map(|curve| deviation(last(&curve.accuracy))).collect();
        let effective: Vec<f64> = curves.iter().flat_map(|curve| curve.effective.iter().copied()).collect();
        Line {
            strategy: label.clone(),
            mean: mean(&accuracies),
            std: deviation(&accuracies),
            difference: later.then(|| mean(&differences)),
            low: ends.map(|[low, _]| low),
            high: ends.map(|[_, high]| high),
            p: (later && differences.len() >= LEAST_FOR_A_TEST).then(|| paired(&differences)),
            wins: later.then(|| differences.iter().filter(|d| **d > 0.0).count()),
            rounds_to_target: mean_curve(&curves).iter().position(|a| *a >= target).map(|place| place + 1),
            wobble: (!wobbles.is_empty()).then(|| mean(&wobbles)),
            effective_clients: mean(&effective),
        }
    };
    labels.iter().enumerate().map(line).collect()
}

/// The last rounds of a curve, or all where there are fewer.
fn last(accuracy: &[f64]) -> &[f64] {
    &accuracy[accuracy.len().saturating_sub(LAST)..]
}

/// Round by round the mean over seeds.
pub fn mean_curve(curves: &[&Curve]) -> Vec<f64> {
    let rounds = curves.iter().map(|curve| curve.accuracy.len()).min().unwrap_or(0);
    (0..rounds).map(|round| mean(&curves.iter().map(|c| c.accuracy[round]).collect::<Vec<_>>())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedtvd_run::summary::Summary;

    fn curve(strategy: usize, seed: u64, accuracy: &[f64]) -> Curve {
        let effective = vec![8.0; accuracy.len()];
        let summary = Summary {
            strategy: String::new(),
            seed,
            rounds: accuracy.len() as u32,
            accuracy: 0.0,
            last10_accuracy: 0.0,
            seconds: 0.0,
            images_per_second: 0.0,
            peak_memory_bytes: None,
            split_hash: String::new(),
            directory: String::new(),
            model: String::new(),
        };
        Curve { strategy, seed, accuracy: accuracy.to_vec(), effective, summary }
    }

    #[test]
    fn differences_are_paired_by_seed() {
        let curves = [
            curve(0, 1, &[0.5, 0.6]),
            curve(0, 2, &[0.1, 0.2]),
            curve(1, 1, &[0.6, 0.7]),
            curve(1, 2, &[0.2, 0.3]),
        ];
        let lines = summary(&["a".into(), "b".into()], &curves);
        assert_eq!((lines[0].difference, lines[0].wins), (None, None));
        // Every round of every seed is 0.1 better, so the interval has no width.
        let [low, high] = [lines[1].low.unwrap(), lines[1].high.unwrap()];
        assert!((low - 0.1).abs() < 1e-12 && (high - 0.1).abs() < 1e-12, "{low} {high}");
        assert_eq!((lines[1].wins, lines[1].p), (Some(2), None));
        // a ends at 0.35 on average; b's mean curve is 0.4, 0.5.
        assert_eq!((lines[0].rounds_to_target, lines[1].rounds_to_target), (Some(2), Some(1)));
    }
}
