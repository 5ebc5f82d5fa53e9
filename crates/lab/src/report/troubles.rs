//! Notes for readers about runs that collapsed, raised alarms or lost updates.

use crate::report::heading::seed_count;
use crate::runs::record::Record;
use crate::runs::setting::Strategy;

/// Follows the accuracy of a strategy with collapsed seeds, and precedes the note that says why.
pub(crate) const MARK: char = '†';

/// A note for each strategy with collapsed seeds: which, and why the first of them cannot be used.
pub(crate) fn collapsed(strategies: &[Strategy]) -> Vec<String> {
    let note = |Strategy { label, records }: &Strategy| {
        let reason = |run: &Record| Some((run.summary.seed, run.summary.collapsed.clone()?));
        let (first, why) = records.iter().find_map(reason)?;
        let seeds: Vec<String> =
            records.iter().filter_map(reason).map(|(seed, _)| seed.to_string()).collect();
        let (some, all, named) = (seeds.len(), seed_count(records.len()), seeds.join(", "));
        Some(format!("{MARK} {label}: {some} of {all} collapsed: {named} (seed {first}: {why})"))
    };
    strategies.iter().filter_map(note).collect()
}

/// A note for each strategy with failed updates or alarms.
pub(crate) fn troubles(strategies: &[Strategy]) -> Vec<String> {
    let note = |strategy: &Strategy| {
        let (failed, first) = failed(strategy).unzip();
        let alarms = alarms(strategy);
        // The first alarm says as much as the first failure, and more.
        let first = first.filter(|_| alarms.is_none()).map(|first| format!("first: {first}"));
        let parts: Vec<String> = [failed, first, left_out(strategy), alarms].into_iter().flatten().collect();
        (!parts.is_empty()).then(|| format!("{}: {}", strategy.label, parts.join(", ")))
    };
    strategies.iter().filter_map(note).collect()
}

/// The number of failed updates, and the first of them.
fn failed(Strategy { records, .. }: &Strategy) -> Option<(String, String)> {
    let first = |run: &Record| Some((run.summary.seed, run.summary.failed.first_failure.clone()?));
    let (seed, first) = records.iter().find_map(first)?;
    let count = |part: fn(&Record) -> u64| records.iter().map(part).sum::<u64>();
    let (failed, all) =
        (count(|run| run.summary.failed.failed_updates), count(|run| run.summary.failed.updates));
    Some((format!("{failed} of {all} updates failed"), format!("seed {seed}, {first}")))
}

/// The clients of which most updates were not used, in the first seed that has any.
fn left_out(Strategy { records, .. }: &Strategy) -> Option<String> {
    let run = records.iter().find(|run| !run.summary.failed.left_out.is_empty())?;
    let clients: Vec<String> = run.summary.failed.left_out.iter().map(|own| own.client.to_string()).collect();
    let (named, more) = clients.split_at(clients.len().min(5));
    let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
    let clients = if clients.len() == 1 { "client" } else { "clients" };
    let (seed, named) = (run.summary.seed, named.join(", "));
    Some(format!("most updates of {clients} {named}{more} were not used (seed {seed})"))
}

/// The number of rounds with an alarm, and the first of them.
fn alarms(Strategy { records, .. }: &Strategy) -> Option<String> {
    let first =
        |run: &Record| run.alarms.first().map(|(round, alarm)| (run.summary.seed, *round, alarm.clone()));
    let (seed, round, alarm) = records.iter().find_map(first)?;
    let rounds: usize = records.iter().map(|run| run.alarms.len()).sum();
    let rounds = if rounds == 1 { "1 round".to_owned() } else { format!("{rounds} rounds") };
    Some(format!("{rounds} with an alarm, first: seed {seed}, round {round}: {alarm}"))
}
