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
        // Each shard needs a row.
        deck.check(self.clients, self.shards)?;
        let mut stream = Stream::at(seed, Purpose::Split, 0, 0);
        let mut sorted = Vec::new();
        for mut rows in deck.by_class() {
            stream.shuffle(&mut rows);
            sorted.extend(rows);
        }
        let count = self.clients * self.shards;
        let ends: Vec<usize> = (1..=count).map(|shard| shard * sorted.len() / count).collect();
        let mut shards = cut(&sorted, &ends);
        stream.shuffle(&mut shards);
        Ok(Partition::new(shards.chunks(self.shards).map(<[_]>::concat).collect()))
    }
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
}
