//! A row of a setting's table: the results of one strategy over all seeds, as JSON and CSV have them.

use crate::runs::test_rows::TestSets;
use crate::stats::family::Compared;
use serde::Serialize;

/// One strategy over all seeds. Accuracies are fractions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StrategySummary {
    /// The strategy's label.
    pub strategy: String,
    /// Mean over seeds of the mean accuracy of the last rounds; `None` if there is no shared model that could be evaluated.
    pub mean: Option<f64>,
    /// Standard deviation over seeds.
    pub std: Option<f64>,
    /// Mean paired difference to the baseline; `None` for the baseline itself.
    pub difference: Option<f64>,
    /// Lower end of its 95 % confidence interval as a single comparison; `None` below three shared seeds.
    pub low: Option<f64>,
    /// Upper end of it.
    pub high: Option<f64>,
    /// Lower end of its confidence interval together with all comparisons of the setting, which decides the verdict.
    pub simultaneous_low: Option<f64>,
    /// Upper end of it.
    pub simultaneous_high: Option<f64>,
    /// Two-sided p-value of a paired t-test, uncorrected; `None` below three shared seeds.
    pub p: Option<f64>,
    /// The p-value that belongs to the simultaneous interval: corrected by Bonferroni's method.
    pub p_bonferroni: Option<f64>,
    /// Seeds in which it beats the baseline.
    pub wins: Option<usize>,
    /// Round in which the mean curve first reaches the target, which is the baseline's final accuracy unless set.
    pub rounds_to_target: Option<usize>,
    /// Round-to-round standard deviation over the last rounds, averaged over seeds.
    #[serde(rename = "wobble")]
    pub round_std: Option<f64>,
    /// Mean effective number of clients per round.
    pub effective_clients: Option<f64>,
    /// Seeds whose runs collapsed, so that their results cannot be used.
    pub collapsed: usize,
    /// Mean over seeds of the balanced accuracy of the last rounds; `None` unless all runs recorded it.
    pub balanced_accuracy: Option<f64>,
    /// Its standard deviation over seeds.
    pub balanced_std: Option<f64>,
    /// Mean over seeds of the macro F1 of the last rounds; `None` unless all runs recorded it.
    pub macro_f1: Option<f64>,
    /// Its standard deviation over seeds.
    pub macro_f1_std: Option<f64>,
    /// Mean over seeds of the cross-entropy of the last rounds; `None` unless it is known in all runs.
    pub loss: Option<f64>,
    /// Its standard deviation over seeds.
    pub loss_std: Option<f64>,
    /// The classes that it never predicts correctly in the last rounds of at least one seed.
    pub missed_classes: Vec<usize>,
}

/// A summary and what a report adds to it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// What `compare --json` prints too.
    #[serde(flatten)]
    pub line: StrategySummary,
    /// Its seeds.
    pub seeds: Vec<u64>,
    /// Mean accuracy of the last rounds, for each seed.
    pub accuracies: Vec<f64>,
    /// Seeds that it shares with the baseline; `None` for the baseline itself.
    pub pairs: Option<usize>,
    /// Lower end of the difference's 95 % bootstrap interval; `None` below six shared seeds.
    pub bootstrap_low: Option<f64>,
    /// Upper end of it.
    pub bootstrap_high: Option<f64>,
    /// The p-value after Holm's correction for the number of strategies; `None` below three shared seeds.
    pub p_holm: Option<f64>,
    /// Standard error of the difference over seeds; `None` below three shared seeds.
    pub seed_error: Option<f64>,
    /// Standard error over the rows of a test set that all seeds share; `None` if it is not counted.
    pub row_error: Option<f64>,
    /// What is known about the test sets of the shared seeds; `None` for the baseline itself.
    #[serde(skip)]
    pub test_sets: Option<TestSets>,
    /// Median of the clients' accuracies in the last rounds, mean over seeds; `None` if the server evaluated the model.
    pub median_accuracy: Option<f64>,
    /// Mean accuracy over clients, each on its own hold-out, or estimated for its own label distribution.
    pub client_mean: Option<f64>,
    /// Whether it was measured on hold-outs.
    pub clients_measured: bool,
    /// Its standard deviation over clients.
    pub client_deviation: Option<f64>,
    /// Mean per-client accuracy of the worst tenth of the clients.
    pub worst_decile: Option<f64>,
    /// The models that clients use themselves: mean over seeds of their mean accuracy over clients. If other strategies of the setting
    /// have such models, it is the per-client accuracy of the shared model; `None` if none has.
    pub personal: Option<f64>,
    /// Its standard deviation over seeds.
    pub personal_std: Option<f64>,
    /// Its standard deviation over clients.
    pub personal_deviation: Option<f64>,
    /// Mean accuracy of the worst tenth of these models.
    pub personal_worst_decile: Option<f64>,
    /// Rounds of each run.
    pub rounds: Vec<u32>,
    /// Accuracy on the test set of the model that the hold-outs chose, mean over seeds; `None` without hold-outs.
    pub best_accuracy: Option<f64>,
    /// Its standard deviation over seeds.
    pub best_std: Option<f64>,
    /// Bytes that the clients of a run uploaded, mean over seeds.
    pub bytes_up: f64,
    /// Bytes that they downloaded.
    pub bytes_down: f64,
    /// Rounds with an alarm, of all seeds.
    pub alarms: usize,
    /// Updates of all seeds, without clients that did not answer.
    pub updates: u64,
    /// Updates that failed or were rejected.
    pub failed_updates: u64,
}

impl Row {
    /// Takes in how it compares with the baseline.
    pub(super) fn enter(&mut self, compared: &Compared) {
        let ([low, high], [least, most]) = (compared.single, compared.simultaneous);
        (self.line.low, self.line.high) = (Some(low), Some(high));
        (self.line.simultaneous_low, self.line.simultaneous_high) = (Some(least), Some(most));
        (self.line.p, self.line.p_bonferroni) = (Some(compared.p), Some(compared.p_bonferroni));
        self.p_holm = Some(compared.p_holm);
        (self.seed_error, self.row_error) =
            (Some(compared.difference.seed_error), compared.difference.row_error);
    }
}
