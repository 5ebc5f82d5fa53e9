//! One row per strategy: the results of its runs, and the paired difference to the baseline.

use crate::runs::record::Record;
use crate::runs::setting::{Setting, Strategy};
use crate::stats::bootstrap::bootstrap;
use crate::stats::holm::holm;
use crate::stats::statistics::{deviation, interval, mean, paired};
use serde::Serialize;

pub use fedtvd_run::directory::LAST;

/// One strategy over all seeds. Accuracies are fractions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StrategySummary {
    /// The strategy's label.
    pub strategy: String,
    /// Mean over seeds of the mean accuracy of the last rounds.
    pub mean: f64,
    /// Standard deviation over seeds.
    pub std: Option<f64>,
    /// Mean paired difference to the baseline; `None` for the baseline itself.
    pub difference: Option<f64>,
    /// Lower end of its 95 % confidence interval.
    pub low: Option<f64>,
    /// Upper end of its 95 % confidence interval.
    pub high: Option<f64>,
    /// Two-sided p-value of a paired t-test, uncorrected; `None` below six seeds.
    pub p: Option<f64>,
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
    /// The p-value after Holm's correction for the number of strategies; `None` below six shared seeds.
    pub p_holm: Option<f64>,
    /// The same for two or more shared seeds: it decides whether a difference is significant.
    #[serde(skip)]
    pub corrected_p: Option<f64>,
    /// Median of the clients' accuracies in the last rounds, mean over seeds; `None` if the server evaluated the model.
    pub median_accuracy: Option<f64>,
    /// Mean accuracy over clients, each on its own label distribution.
    pub client_mean: Option<f64>,
    /// Its standard deviation over clients.
    pub client_deviation: Option<f64>,
    /// Mean per-client accuracy of the worst tenth of the clients.
    pub worst_decile: Option<f64>,
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

/// Which standard deviation follows the ± of an accuracy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Deviation {
    /// Over seeds, of the means over the last rounds.
    #[default]
    Seeds,
    /// Over seeds in each of the last rounds, averaged over these.
    Rounds,
}

/// How a summary is computed.
#[derive(Clone, Debug, Default)]
pub struct SummaryOptions {
    /// The strategy that the others are compared with; the first one if no strategy has this label.
    pub baseline: String,
    /// The target accuracy; `None` means the baseline's final accuracy.
    pub target: Option<f64>,
    /// Which standard deviation follows the ±.
    pub deviation: Deviation,
}

/// The number of shared seeds from which on p-values and bootstrap intervals are reported.
pub const MIN_SEEDS_FOR_P: usize = 6;

/// Rows of a setting's strategies, in their order.
pub fn rows(setting: &Setting, options: &SummaryOptions) -> Vec<Row> {
    let Some(baseline) = setting.strategy(&options.baseline).or(setting.strategies.first()) else {
        return Vec::new();
    };
    let target = options.target.unwrap_or_else(|| mean(&finals(&baseline.records)));
    let row = |strategy: &Strategy| row(strategy, baseline, target, options.deviation);
    let mut rows: Vec<Row> = setting.strategies.iter().map(row).collect();
    let compared: Vec<usize> = (0..rows.len()).filter(|&place| rows[place].corrected_p.is_some()).collect();
    let adjusted = holm(&compared.iter().filter_map(|&place| rows[place].corrected_p).collect::<Vec<_>>());
    for (place, p) in compared.into_iter().zip(adjusted) {
        rows[place].corrected_p = Some(p);
        rows[place].p_holm = rows[place].line.p.map(|_| p);
    }
    rows
}

fn row(strategy: &Strategy, baseline: &Strategy, target: f64, kind: Deviation) -> Row {
    let records = &strategy.records;
    let accuracies = finals(records);
    let differences = (strategy.label != baseline.label).then(|| differences(records, &baseline.records));
    let ends = differences.as_deref().and_then(interval);
    let tested = differences.as_deref().filter(|pairs| pairs.len() >= MIN_SEEDS_FOR_P);
    let drawn = tested.and_then(bootstrap);
    let round_stds: Vec<f64> = records.iter().filter_map(|run| deviation(&run.last)).collect();
    let effective: Vec<f64> =
        records.iter().flat_map(|run| run.effective.iter().copied().flatten()).collect();
    let fairness: Option<Vec<_>> = records.iter().map(|run| run.clients).collect();
    let fair = |part: fn(&fedtvd_core::round::Spread) -> f64| {
        fairness.as_ref().map(|all| mean(&all.iter().map(part).collect::<Vec<_>>()))
    };
    let medians: Option<Vec<f64>> = records.iter().map(|run| run.median_accuracy).collect();
    let bytes = |part: fn(&Record) -> u64| {
        mean(&records.iter().map(|record| part(record) as f64).collect::<Vec<_>>())
    };
    Row {
        line: StrategySummary {
            strategy: strategy.label.clone(),
            mean: mean(&accuracies),
            std: match kind {
                Deviation::Seeds => deviation(&accuracies),
                Deviation::Rounds => deviation_of_rounds(records),
            },
            difference: differences.as_deref().filter(|pairs| !pairs.is_empty()).map(mean),
            low: ends.map(|[low, _]| low),
            high: ends.map(|[_, high]| high),
            p: tested.map(paired),
            wins: differences.as_deref().map(|pairs| pairs.iter().filter(|d| **d > 0.0).count()),
            rounds_to_target: mean_curve(records).iter().position(|a| *a >= target).map(|place| place + 1),
            round_std: (!round_stds.is_empty()).then(|| mean(&round_stds)),
            effective_clients: (!effective.is_empty()).then(|| mean(&effective)),
            collapsed: records.iter().filter(|run| run.summary.collapsed.is_some()).count(),
        },
        seeds: records.iter().map(|record| record.summary.seed).collect(),
        accuracies,
        pairs: differences.as_ref().map(Vec::len),
        bootstrap_low: drawn.map(|[low, _]| low),
        bootstrap_high: drawn.map(|[_, high]| high),
        p_holm: None,
        corrected_p: differences.as_deref().filter(|pairs| pairs.len() > 1).map(paired),
        median_accuracy: medians.as_deref().map(mean),
        client_mean: fair(|spread| spread.mean),
        client_deviation: fair(|spread| spread.deviation),
        worst_decile: fair(|spread| spread.worst_decile),
        bytes_up: bytes(|record| record.bytes_up),
        bytes_down: bytes(|record| record.bytes_down),
        alarms: records.iter().map(|record| record.alarms.len()).sum(),
        updates: records.iter().map(|record| record.summary.failed.updates).sum(),
        failed_updates: records.iter().map(|record| record.summary.failed.failed_updates).sum(),
    }
}

fn finals(records: &[Record]) -> Vec<f64> {
    records.iter().map(Record::final_accuracy).collect()
}

/// Differences to the baseline over the seeds that both have.
fn differences(own: &[Record], baseline: &[Record]) -> Vec<f64> {
    let other = |seed: u64| baseline.iter().find(|record| record.summary.seed == seed);
    own.iter()
        .filter_map(|record| Some(record.final_accuracy() - other(record.summary.seed)?.final_accuracy()))
        .collect()
}

/// The standard deviation over seeds in each of the last rounds, averaged; `None` for fewer than two seeds.
fn deviation_of_rounds(records: &[Record]) -> Option<f64> {
    let curves: Vec<&[f64]> = records.iter().map(|record| record.last.as_slice()).collect();
    deviation_over_rounds(&curves)
}

fn deviation_over_rounds(curves: &[&[f64]]) -> Option<f64> {
    let rounds = curves.iter().map(|curve| curve.len()).min()?;
    let of = |round: usize| deviation(&curves.iter().map(|curve| curve[round]).collect::<Vec<_>>());
    (0..rounds).map(of).collect::<Option<Vec<f64>>>().map(|all| mean(&all))
}

/// Mean accuracy over seeds in each round; NaN, a gap in the curve, in rounds that were not evaluated.
pub fn mean_curve(records: &[Record]) -> Vec<f64> {
    let rounds = records.iter().map(|record| record.accuracy.len()).min().unwrap_or(0);
    let of = |round| mean(&records.iter().filter_map(|record| record.accuracy[round]).collect::<Vec<_>>());
    (0..rounds).map(of).collect()
}
