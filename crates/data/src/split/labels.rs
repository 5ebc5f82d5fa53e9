//! k labels per client: client i has label i mod C and k - 1 others at random; a label's rows are shared
//! equally by those who have it.
//!
//! Li et al. 2022 (NIID-Bench, arXiv 2102.02079), drawn again until every label has a client.

use super::partition::{cut, even_ends, first_that_fits};
use super::{Deck, Partition, SplitError};
use fedtvd_core::stream::{Purpose, Stream};

/// The parameters of a split by labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Labels {
    /// How many clients.
    pub clients: usize,
    /// Labels of a client.
    pub labels: usize,
    /// The minimum number of rows of a client.
    pub min_size: usize,
    /// How often to draw before giving up.
    pub tries: u32,
}

impl Labels {
    /// The training rows dealt to the clients.
    pub fn split(&self, deck: &Deck, seed: u64) -> Result<Partition, SplitError> {
        let Self { clients, labels, .. } = *self;
        deck.check(clients, self.min_size)?;
        if !(1..=deck.classes).contains(&labels) {
            let range = format!("1 to {}, the number of classes", deck.classes);
            return Err(SplitError::Range { name: "labels", value: labels as f64, range });
        }
        if clients.saturating_mul(labels) < deck.classes {
            return Err(SplitError::Uncovered { clients, labels, classes: deck.classes });
        }
        first_that_fits(self.tries, self.min_size, |attempt| self.attempt(deck, seed, attempt))
    }

    fn attempt(&self, deck: &Deck, seed: u64, attempt: u32) -> Option<Vec<Vec<u32>>> {
        let mut stream = Stream::at(seed, Purpose::Split, attempt, 0);
        let mut holders = vec![Vec::new(); deck.classes];
        for client in 0..self.clients {
            let own = client % deck.classes;
            let mut others: Vec<usize> = (0..deck.classes).filter(|class| *class != own).collect();
            stream.shuffle(&mut others);
            for class in std::iter::once(own).chain(others.into_iter().take(self.labels - 1)) {
                holders[class].push(client);
            }
        }
        let mut clients = vec![Vec::new(); self.clients];
        for (mut rows, holders) in deck.by_class().into_iter().zip(holders) {
            if rows.is_empty() {
                continue;
            }
            if holders.is_empty() {
                return None;
            }
            stream.shuffle(&mut rows);
            for (client, part) in holders.iter().zip(cut(&rows, &even_ends(rows.len(), holders.len()))) {
                clients[*client].extend(part);
            }
        }
        Some(clients)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_client_has_exactly_k_labels() {
        let labels: Vec<u32> = (0..5000).map(|row| row % 10).collect();
        let deck = Deck { labels: &labels, classes: 10, groups: None };
        let split = Labels { clients: 20, labels: 3, min_size: 1, tries: 1000 };
        for rows in split.split(&deck, 1).unwrap().clients {
            let seen: BTreeSet<u32> = rows.iter().map(|row| labels[*row as usize]).collect();
            assert_eq!(seen.len(), 3);
        }
        assert_eq!(
            Labels { clients: 3, ..split }.split(&deck, 1).unwrap_err().to_string(),
            "3 clients with 3 labels each leave some of the 10 classes without a client: \
             use more clients or more labels"
        );
        assert_eq!(
            Labels { labels: 11, ..split }.split(&deck, 1).unwrap_err().to_string(),
            "labels = 11 is outside 1 to 10, the number of classes"
        );
    }
}
