//! Notes for readers who compare a setting's strategies: splits and seeds that are not the same for all.

use crate::runs::record::Record;
use crate::runs::setting::Strategy;
use crate::stats::verdict::listed;
use fedtvd_run::configuration::EvaluationOptions;
use std::collections::{BTreeMap, BTreeSet};

/// Seeds whose runs do not all have the same split and data, so their differences are not paired.
pub(crate) fn odd_splits(strategies: &[Strategy]) -> Vec<String> {
    let mut made: BTreeMap<u64, Vec<(&str, &str)>> = BTreeMap::new();
    for record in strategies.iter().flat_map(|strategy| &strategy.records) {
        let hashes = (record.manifest.split_hash.as_str(), record.manifest.data_checksum.as_str());
        made.entry(record.summary.seed).or_default().push(hashes);
    }
    let odd = made.iter().filter(|(_, hashes)| hashes.iter().any(|own| own != &hashes[0]));
    odd.map(|(seed, _)| {
        format!("The runs with seed {seed} do not all have the same split of the same data, so their differences are not paired.")
    })
    .collect()
}

/// Strategies with runs that stopped before their last round, and what that means for their numbers.
pub(crate) fn stopped_early(strategies: &[Strategy]) -> Vec<String> {
    let note = |Strategy { label, records }: &Strategy| {
        let stopped: Vec<u32> = records
            .iter()
            .filter(|run| run.summary.stopped.is_some())
            .map(|run| run.summary.rounds)
            .collect();
        let (least, most) = (stopped.iter().min()?, stopped.iter().max()?);
        let after = if least == most { format!("round {most}") } else { format!("rounds {least} to {most}") };
        Some(format!("{label}: {} of {} runs stopped early, after {after}.", stopped.len(), records.len()))
    };
    let mut notes: Vec<String> = strategies.iter().filter_map(note).collect();
    let targets = |run: &Record| EvaluationOptions::of(&run.config).is_ok_and(|own| own.target.is_some());
    if strategies
        .iter()
        .flat_map(|strategy| &strategy.records)
        .any(|run| run.summary.stopped.is_some() && targets(run))
    {
        notes.push(
            "Runs that stop at a target are compared by the rounds they need; their accuracies are means over the way there."
                .to_owned(),
        );
    }
    if !notes.is_empty() {
        notes.push("Curves over seeds end with the shortest run.".to_owned());
    }
    notes
}

/// Every seed that any strategy has.
pub(crate) fn all_seeds(strategies: &[Strategy]) -> Vec<u64> {
    let records = strategies.iter().flat_map(|strategy| &strategy.records);
    records.map(|record| record.summary.seed).collect::<BTreeSet<u64>>().into_iter().collect()
}

/// Strategies that lack some seeds, so their accuracies are means over other seeds; one sentence for all strategies with
/// the same seeds.
pub(crate) fn fewer_seeds(strategies: &[Strategy]) -> Vec<String> {
    let all = all_seeds(strategies).len();
    let mut alike: BTreeMap<Vec<u64>, Vec<String>> = BTreeMap::new();
    for Strategy { label, records } in strategies.iter().filter(|strategy| strategy.records.len() < all) {
        let seeds = records.iter().map(|record| record.summary.seed).collect();
        alike.entry(seeds).or_default().push(label.clone());
    }
    alike
        .iter()
        .map(|(seeds, labels)| {
            let named: Vec<String> = seeds.iter().map(u64::to_string).collect();
            format!(
                "{}: only {} of {all} seeds ({}). Accuracy is the mean over these seeds, differences are over the \
                 seeds shared with the baseline.",
                listed(labels, "and"),
                seeds.len(),
                named.join(", ")
            )
        })
        .collect()
}
