//! Rows that a client holds out from training, to evaluate a model on.

use crate::hex;
use crate::split::Partition;
use fedtvd_core::stream::{Purpose, Stream};
use sha2::{Digest, Sha256};

/// A client's rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientRows {
    /// Those that it trains on, ascending; at least one.
    pub train: Vec<u32>,
    /// Those that it holds out, ascending.
    pub holdout: Vec<u32>,
}

/// For each client its rows, with a fraction of them held out: floor(n * share), at random, never all.
///
/// `share` is from 0 to below 1.
pub fn keep_back(partition: &Partition, share: f64, seed: u64) -> Vec<ClientRows> {
    let divided = |(client, rows): (usize, &Vec<u32>)| {
        let kept = kept(rows.len(), share);
        let mut train = rows.clone();
        if kept > 0 {
            Stream::at(seed, Purpose::Holdout, 0, client as u32).shuffle(&mut train);
        }
        let mut holdout = train.split_off(rows.len() - kept);
        train.sort_unstable();
        holdout.sort_unstable();
        ClientRows { train, holdout }
    };
    partition.clients.iter().enumerate().map(divided).collect()
}

/// How many of `size` rows are held out.
fn kept(size: usize, share: f64) -> usize {
    ((size as f64 * share + 1e-9) as usize).min(size.saturating_sub(1))
}

/// The minimum size of a client that has `min_size` rows left to train on.
pub(crate) fn rows_for(min_size: usize, share: f64) -> usize {
    (min_size..).find(|size| size - kept(*size, share) >= min_size).unwrap_or(usize::MAX)
}

/// The hash that identifies a split in results: the partition's hash if nothing is held out, otherwise the SHA-256 of
/// that hash and of the rows that each client holds out.
pub(crate) fn hash(partition: &Partition, clients: &[ClientRows]) -> String {
    if clients.iter().all(|rows| rows.holdout.is_empty()) {
        return partition.hash();
    }
    let mut hash = Sha256::new();
    hash.update(b"fedtvd partition with hold-out 1\n");
    hash.update(partition.hash());
    for ClientRows { holdout, .. } in clients {
        hash.update((holdout.len() as u64).to_le_bytes());
        holdout.iter().for_each(|row| hash.update(row.to_le_bytes()));
    }
    hex(&hash.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_kept_back_and_something_is_left_to_train_on() {
        let partition = Partition { clients: vec![(0..100).collect(), vec![100, 101], vec![102]] };
        let rows = keep_back(&partition, 0.15, 1);
        let sizes: Vec<(usize, usize)> = rows.iter().map(|r| (r.train.len(), r.holdout.len())).collect();
        assert_eq!(sizes, [(85, 15), (2, 0), (1, 0)]);
        let mut all = [rows[0].train.clone(), rows[0].holdout.clone()].concat();
        all.sort_unstable();
        assert_eq!(all, partition.clients[0]);
        assert_ne!(keep_back(&partition, 0.15, 2), rows);
        assert_eq!(keep_back(&partition, 1.0 - 1e-12, 1)[1].train.len(), 1);
    }

    #[test]
    fn the_hash_depends_on_the_hold_out_and_is_the_partitions_own_without_one() {
        let partition = Partition { clients: vec![(0..100).collect(), (100..150).collect()] };
        let hash = |share, seed| hash(&partition, &keep_back(&partition, share, seed));
        assert_eq!(hash(0.0, 1), partition.hash());
        assert_ne!(hash(0.1, 1), partition.hash());
        assert_ne!(hash(0.1, 1), hash(0.2, 1));
        assert_ne!(hash(0.1, 1), hash(0.1, 2));
    }

    #[test]
    fn the_least_rows_leave_enough_to_train_on() {
        for (min_size, share, rows) in [(2, 0.0, 2), (2, 0.5, 3), (10, 0.2, 12), (1, 0.9, 1), (5, 0.9, 41)] {
            assert_eq!(rows_for(min_size, share), rows, "{min_size} with {share}");
            assert!(rows == min_size || rows - 1 - kept(rows - 1, share) < min_size);
        }
    }
}
