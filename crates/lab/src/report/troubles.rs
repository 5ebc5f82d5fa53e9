//! Notes for readers about runs that collapsed, raised alarms or lost updates.

use crate::report::heading::seed_count;
use crate::runs::record::Record;
use crate::runs::setting::Strategy;

/// Follows the accuracy of a strategy with collapsed seeds, and precedes the note that says why.
pub(crate) const MARK: char = '†';

/// Runs whose reasons a note gives.
const NAMED: usize = 3;

/// A note for each strategy with collapsed seeds: `† scaffold: 2 of 5 seeds collapsed (seed 1: …; seed 4: …)`.
pub(crate) fn collapsed(strategies: &[Strategy]) -> Vec<String> {
    let note = |Strategy { label, records }: &Strategy| {
        let reason =
            |run: &Record| Some(format!("seed {}: {}", run.summary.seed, run.summary.collapsed.as_ref()?));
        let reasons: Vec<String> = records.iter().filter_map(reason).collect();
        let more = match reasons.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        let named = reasons.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join("; ");
        let seeds = seed_count(records.len());
        (!reasons.is_empty())
            .then(|| format!("{MARK} {label}: {} of {seeds} collapsed ({named}{more})", reasons.len()))
    };
    strategies.iter().filter_map(note).collect()
}

/// A note for each strategy with alarms, and one for each with failed updates.
pub(crate) fn troubles(strategies: &[Strategy]) -> Vec<String> {
    strategies.iter().flat_map(|strategy| [failed(strategy), alarms(strategy)]).flatten().collect()
}

fn failed(Strategy { label, records }: &Strategy) -> Option<String> {
    let first = |run: &Record| Some((run.summary.seed, run.summary.failed.first_failure.clone()?));
    let (seed, first) = records.iter().find_map(first)?;
    let count = |part: fn(&Record) -> u64| records.iter().map(part).sum::<u64>();
    let (failed, all) =
        (count(|run| run.summary.failed.failed_updates), count(|run| run.summary.failed.updates));
    Some(format!("{label}: {failed} of {all} updates failed, first: seed {seed}, {first}"))
}

fn alarms(Strategy { label, records }: &Strategy) -> Option<String> {
    let first =
        |run: &Record| run.alarms.first().map(|(round, alarm)| (run.summary.seed, *round, alarm.clone()));
    let (seed, round, alarm) = records.iter().find_map(first)?;
    let rounds: usize = records.iter().map(|run| run.alarms.len()).sum();
    let rounds = if rounds == 1 { "1 round".to_owned() } else { format!("{rounds} rounds") };
    Some(format!("{label}: {rounds} with an alarm, first: seed {seed}, round {round}: {alarm}"))
}
