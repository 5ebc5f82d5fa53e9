//! Rows that a client keeps back from training, to judge a model by.

use crate::split::Partition;
use fedtvd_core::stream::{Purpose, Stream};

/// A client's rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    /// Those that it trains on, ascending; at least one.
    pub train: Vec<u32>,
    /// Those that it keeps back, ascending.
    pub holdout: Vec<u32>,
}

/// For each client its rows with a share of them kept back: floor(n * share), at random, never all.
///
/// `share` is from 0 to below 1.
pub fn keep_back(partition: &Partition, share: f64, seed: u64) -> Vec<Rows> {
    let divided = |(client, rows): (usize, &Vec<u32>)| {
        let kept = ((rows.len() as f64 * share + 1e-9) as usize).min(rows.len().saturating_sub(1));
        let mut train = rows.clone();
        if kept > 0 {
            Stream::at(seed, Purpose::Holdout, 0, client as u32).shuffle(&mut train);
        }
        let mut holdout = train.split_off(rows.len() - kept);
        train.sort_unstable();
        holdout.sort_unstable();
        Rows { train, holdout }
    };
    partition.clients.iter().enumerate().map(divided).collect()
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
}
