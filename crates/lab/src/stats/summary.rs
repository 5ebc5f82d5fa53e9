//! Computes one row per strategy: the results of its runs, and the paired difference to the baseline.

use crate::runs::record::Record;
use crate::runs::setting::{Setting, Strategy};
use crate::runs::test_rows::{TestSets, test_sets};
use crate::stats::bootstrap::bootstrap;
use crate::stats::difference::Difference;
use crate::stats::family::compared;
use crate::stats::row::{Row, StrategySummary};
use crate::stats::row_error::{PairedRows, row_error};
use crate::stats::statistics::{deviation, mean};
use fedtvd_core::round::Spread;
use std::collections::BTreeSet;

pub use fedtvd_run::directory::LAST;

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

/// The number of shared seeds from which on bootstrap intervals are reported.
pub const MIN_SEEDS_FOR_BOOTSTRAP: usize = 6;

/// Rows of a setting's strategies, in their order.
pub fn rows(setting: &Setting, options: &SummaryOptions) -> Vec<Row> {
    let Some(baseline) = setting.strategy(&options.baseline).or(setting.strategies.first()) else {
        return Vec::new();
    };
    let finals = finals(&baseline.records);
    let target = options.target.unwrap_or(if finals.is_empty() { f64::INFINITY } else { mean(&finals) });
    let personal =
        setting.strategies.iter().flat_map(|strategy| &strategy.records).any(|run| run.personal.is_some());
    let row = |strategy: &Strategy| row(strategy, baseline, target, options.deviation, personal);
    let (mut rows, differences): (Vec<Row>, Vec<Option<Difference>>) =
        setting.strategies.iter().map(row).unzip();
    let tested: Vec<usize> = (0..rows.len()).filter(|&place| differences[place].is_some()).collect();
    for (place, compared) in
        tested.into_iter().zip(compared(&differences.into_iter().flatten().collect::<Vec<_>>()))
    {
        rows[place].enter(&compared);
    }
    rows
}

fn row(
    strategy: &Strategy,
    baseline: &Strategy,
    target: f64,
    kind: Deviation,
    personal: bool,
) -> (Row, Option<Difference>) {
    let records = &strategy.records;
    let accuracies = finals(records);
    let pairs = (strategy.label != baseline.label).then(|| pairs(records, &baseline.records));
    let differences: Option<Vec<f64>> = pairs.as_ref().map(|pairs| {
        pairs
            .iter()
            .filter_map(|[own, other]| Some(own.final_accuracy()? - other.final_accuracy()?))
            .collect()
    });
    let test_sets = pairs.as_ref().map(|pairs| test_sets(pairs.iter().flatten().copied()));
    let shared = pairs.as_ref().filter(|_| matches!(test_sets, Some(TestSets::Shared(_))));
    let row_error = shared.and_then(|pairs| row_error(&paired_rows(pairs)));
    let difference = differences.as_deref().and_then(|all| Difference::of(all, row_error));
    let drawn = differences.as_deref().filter(|all| all.len() >= MIN_SEEDS_FOR_BOOTSTRAP).and_then(bootstrap);
    let round_stds: Vec<f64> = records.iter().filter_map(|run| deviation(&run.last)).collect();
    let effective: Vec<f64> =
        records.iter().flat_map(|run| run.effective.iter().copied().flatten()).collect();
    // Measured and estimated accuracies are not averaged together.
    let alike = records.iter().all(|run| run.clients_measured == records[0].clients_measured);
    let fairness: Option<Vec<_>> = records.iter().map(|run| run.clients.filter(|_| alike)).collect();
    let fair = |part: fn(&fedtvd_core::round::Spread) -> f64| {
        fairness.as_ref().map(|all| mean(&all.iter().map(part).collect::<Vec<_>>()))
    };
    // Who uses the shared model has its accuracy.
    let own_models: Option<Vec<Spread>> =
        records.iter().map(|run| run.personal.or(run.clients.filter(|_| personal))).collect();
    let own = |part: fn(&Spread) -> f64| -> Option<Vec<f64>> {
        own_models.as_ref().map(|all| all.iter().map(part).collect())
    };
    let personal = own(|spread| spread.mean);
    let medians: Option<Vec<f64>> = records.iter().map(|run| run.median_accuracy).collect();
    let bytes = |part: fn(&Record) -> u64| {
        mean(&records.iter().map(|record| part(record) as f64).collect::<Vec<_>>())
    };
    let over_seeds = |part: fn(&Record) -> Option<f64>| -> (Option<f64>, Option<f64>) {
        let known: Option<Vec<f64>> = records.iter().map(part).collect();
        (known.as_deref().map(mean), known.as_deref().and_then(deviation))
    };
    let (balanced_accuracy, balanced_std) = over_seeds(|run| run.balanced_accuracy);
    let (macro_f1, macro_f1_std) = over_seeds(|run| run.macro_f1);
    let (loss, loss_std) = over_seeds(|run| run.loss);
    let (best_accuracy, best_std) = over_seeds(|run| run.summary.best.as_ref()?.test_accuracy);
    let row = Row {
        line: StrategySummary {
            strategy: strategy.label.clone(),
            mean: (!accuracies.is_empty()).then(|| mean(&accuracies)),
            std: match kind {
                Deviation::Seeds => deviation(&accuracies),
                Deviation::Rounds => deviation_of_rounds(records),
            },
            difference: differences.as_deref().filter(|pairs| !pairs.is_empty()).map(mean),
            low: None,
            high: None,
            simultaneous_low: None,
            simultaneous_high: None,
            p: None,
            p_bonferroni: None,
            wins: differences.as_deref().map(|pairs| pairs.iter().filter(|d| **d > 0.0).count()),
            rounds_to_target: mean_curve(records)
                .iter()
                .position(|a| a.is_some_and(|a| a >= target))
                .map(|place| place + 1),
            round_std: (!round_stds.is_empty()).then(|| mean(&round_stds)),
            effective_clients: (!effective.is_empty()).then(|| mean(&effective)),
            collapsed: records.iter().filter(|run| run.summary.collapsed.is_some()).count(),
            balanced_accuracy,
            balanced_std,
            macro_f1,
            macro_f1_std,
            loss,
            loss_std,
            missed_classes: missed_classes(records),
        },
        seeds: records.iter().map(|record| record.summary.seed).collect(),
        accuracies,
        pairs: differences.as_ref().map(Vec::len),
        bootstrap_low: drawn.map(|[low, _]| low),
        bootstrap_high: drawn.map(|[_, high]| high),
        p_holm: None,
        seed_error: None,
        row_error: None,
        test_sets,
        median_accuracy: medians.as_deref().map(mean),
        rounds: records.iter().map(|record| record.summary.rounds).collect(),
        best_accuracy,
        best_std,
        client_mean: fair(|spread| spread.mean),
        clients_measured: records.iter().all(|record| record.clients_measured),
        client_deviation: fair(|spread| spread.deviation),
        worst_decile: fair(|spread| spread.worst_decile),
        personal: personal.as_deref().map(mean),
        personal_std: personal.as_deref().and_then(deviation),
        personal_deviation: own(|spread| spread.deviation).as_deref().map(mean),
        personal_worst_decile: own(|spread| spread.worst_decile).as_deref().map(mean),
        bytes_up: bytes(|record| record.bytes_up),
        bytes_down: bytes(|record| record.bytes_down),
        alarms: records.iter().map(|record| record.alarms.len()).sum(),
        updates: records.iter().map(|record| record.summary.failed.updates).sum(),
        failed_updates: records.iter().map(|record| record.summary.failed.failed_updates).sum(),
    };
    (row, difference)
}

/// The classes that the model misses in the last rounds of at least one run.
fn missed_classes(records: &[Record]) -> Vec<usize> {
    let missed = records.iter().flat_map(|run| run.missed_classes.iter().flatten());
    missed.map(|missed| missed.class).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Their final accuracies; empty if there is no shared model that could be evaluated.
fn finals(records: &[Record]) -> Vec<f64> {
    records.iter().map(Record::final_accuracy).collect::<Option<_>>().unwrap_or_default()
}

/// The runs of each seed that both have: the strategy's and the baseline's.
fn pairs<'a>(own: &'a [Record], baseline: &'a [Record]) -> Vec<[&'a Record; 2]> {
    let other = |seed: u64| baseline.iter().find(|record| record.summary.seed == seed);
    let evaluated = |pair: &[&Record; 2]| pair.iter().all(|record| !record.last.is_empty());
    own.iter().filter_map(|record| Some([record, other(record.summary.seed)?])).filter(evaluated).collect()
}

/// Which test rows both models of each seed classify correctly.
fn paired_rows<'a>(pairs: &[[&'a Record; 2]]) -> Vec<PairedRows<'a>> {
    let right = |record: &'a Record| Some(record.test_rows.as_ref()?.right.as_slice());
    pairs.iter().filter_map(|[own, other]| Some([right(own)?, right(other)?])).collect()
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

/// Mean accuracy over seeds in each round, up to the end of the shortest run; `None`, a gap in the curve, where it is unknown.
pub fn mean_curve(records: &[Record]) -> Vec<Option<f64>> {
    let rounds = records.iter().map(|record| record.accuracy.len()).min().unwrap_or(0);
    let of = |round| {
        let known: Vec<f64> = records.iter().filter_map(|record: &Record| record.accuracy[round]).collect();
        (!known.is_empty()).then(|| mean(&known))
    };
    (0..rounds).map(of).collect()
}
