//! Shards: rows sorted by label, cut into equal shards, each client given the same number of them at random.
//!
//! McMahan et al. 2017 (arXiv 1602.05629), with two shards per client.

use super::partition::cut;
use super::{Deck, Partition, SplitError};
use fedtvd_core::stream::{Purpose, Stream};

/// The parameters of a split into shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shards {
    /// How many clients.
    pub clients: usize,
    /// Shards of a client.
    pub shards: usize,
}

impl Shards {
    /// The training rows dealt to the clients.
    pub fn split(&self, deck: &Deck, seed: u64) -> Result<Partition, SplitError> {
        if self.shards == 0 {
            return Err(SplitError::range("shards", 0.0, "the numbers from 1"));
        }
        deck.check(self.clients, 1)?;
        let rows = deck.labels.len();
        if self.clients.saturating_mul(self.shards) > rows {
            return Err(SplitError::Shards { clients: self.clients, shards: self.shards, rows });
        }
        let mut stream = Stream::at(seed, Purpose::Split, 0, 0);
        let mut sorted = Vec::new();
        for mut rows in deck.by_class() {
            stream.shuffle(&mut rows);
            sorted.extend(rows);
        }
        let mut shards = cut_equally(&sorted, self.clients * self.shards);
        stream.shuffle(&mut shards);
        Ok(Partition::new(shards.chunks(self.shards).map(<[_]>::concat).collect()))
    }
}

fn cut_equally(sorted: &[u32], count: usize) -> Vec<Vec<u32>> {
    let ends: Vec<usize> = (1..=count).map(|shard| shard * sorted.len() / count).collect();
    cut(sorted, &ends)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_client_has_as_many_labels_as_shards_when_these_fit_the_classes() {
        let labels: Vec<u32> = (0..2000).map(|row| row % 10).collect();
        let deck = Deck { labels: &labels, classes: 10, groups: None };
        let partition = Shards { clients: 10, shards: 2 }.split(&deck, 3).unwrap();
        for rows in &partition.clients {
            assert_eq!(rows.len(), 200);
            let seen: BTreeSet<u32> = rows.iter().map(|row| labels[*row as usize]).collect();
            assert!(seen.len() <= 2, "{seen:?}");
        }
    }

    #[test]
    fn more_shards_than_rows_are_refused_as_such() {
        let deck = Deck { labels: &[0, 1, 0, 1, 0], classes: 2, groups: None };
        assert_eq!(
            Shards { clients: 3, shards: 2 }.split(&deck, 1).unwrap_err().to_string(),
            "3 clients with 2 shards each need 6 rows, one for each shard, but there are 5"
        );
    }

    #[test]
    fn sorted_rows_are_cut_into_shards_as_the_specification_cuts_them() {
        let golden = include_str!("../../tests/golden/dirichlet_partition.json");
        let golden: serde_json::Value = serde_json::from_str(golden).unwrap();
        let lists = |name: &str| golden["shards"][name].clone();
        let labels: Vec<u32> = serde_json::from_value(lists("labels")).unwrap();
        let sorted = Deck { labels: &labels, classes: 3, groups: None }.by_class().concat();
        assert_eq!(sorted, serde_json::from_value::<Vec<u32>>(lists("sorted_order")).unwrap());
        let shards: Vec<Vec<u32>> = serde_json::from_value(lists("shards")).unwrap();
        assert_eq!(cut_equally(&sorted, 6), shards);
    }
}
