//! What a reader should know before comparing a setting's strategies: splits and seeds that are not the same for all.

use crate::setting::Strategy;
use std::collections::{BTreeMap, BTreeSet};

/// Seeds whose runs did not all have the same split or data, so that their differences are not paired.
pub(crate) fn odd_splits(strategies: &[Strategy]) -> Vec<String> {
    let mut made: BTreeMap<u64, Vec<(&str, &str)>> = BTreeMap::new();
    for record in strategies.iter().flat_map(|strategy| &strategy.records) {
        let hashes = (record.manifest.split_hash.as_str(), record.manifest.data_checksum.as_str());
        made.entry(record.summary.seed).or_default().push(hashes);
    }
    let odd = made.iter().filter(|(_, hashes)| hashes.iter().any(|own| own != &hashes[0]));
    odd.map(|(seed, _)| {
        format!("The runs with seed {seed} do not all have the same split of the same data: differences between them are not paired.")
    })
    .collect()
}

/// Every seed that any strategy has.
pub(crate) fn all_seeds(strategies: &[Strategy]) -> Vec<u64> {
    let records = strategies.iter().flat_map(|strategy| &strategy.records);
    records.map(|record| record.summary.seed).collect::<BTreeSet<u64>>().into_iter().collect()
}

/// Strategies that do not have all seeds, so that their accuracies are not over the same ones as the others'.
pub(crate) fn fewer_seeds(strategies: &[Strategy]) -> Vec<String> {
    let all = all_seeds(strategies).len();
    let fewer = strategies.iter().filter(|strategy| strategy.records.len() < all);
    fewer
        .map(|Strategy { label, records }| {
            let seeds: Vec<String> = records.iter().map(|record| record.summary.seed.to_string()).collect();
            format!(
                "{label} has {} of {all} seeds ({}): its accuracy is over these alone, a difference over the seeds that \
                 both have.",
                seeds.len(),
                seeds.join(", ")
            )
        })
        .collect()
}
