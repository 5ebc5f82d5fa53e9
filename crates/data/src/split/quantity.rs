//! Quantity skew: sizes in proportions ~ Dir(beta, ..., beta), labels IID.
//!
//! Li et al. 2022 (NIID-Bench, arXiv 2102.02079). If no draw gives every client its minimum size, each gets that first
//! and the rest is dealt in proportions ~ Dir(beta, ..., beta).

use super::gamma::{log_gamma, weights};
use super::partition::{cut, first_that_fits};
use super::{Deck, Partition, SplitError};
use fedtvd_core::stream::{Purpose, Stream};

/// The parameters of a split by quantity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantity {
    /// How many clients.
    pub clients: usize,
    /// Concentration: small makes sizes unequal.
    pub beta: f64,
    /// The minimum number of rows of a client.
    pub min_size: usize,
    /// How often to draw before giving up.
    pub tries: u32,
}

impl Quantity {
    /// The training rows dealt to the clients.
    pub fn split(&self, deck: &Deck, seed: u64) -> Result<Partition, SplitError> {
        deck.check(self.clients, self.min_size)?;
        SplitError::unless_positive("beta", self.beta)?;
        first_that_fits(self.tries, self.min_size, |attempt| {
            let (shares, rows) = self.attempt(deck, seed, attempt);
            Some(cut(&rows, &ends(&shares, rows.len())))
        })
    }

    /// The first draw's proportions, applied to the rows left after every client has its minimum.
    pub(crate) fn after_the_least(&self, deck: &Deck, seed: u64) -> Partition {
        let (shares, rows) = self.attempt(deck, seed, 0);
        let (least, rest) = rows.split_at(self.clients * self.min_size);
        let mut clients = cut(rest, &ends(&shares, rest.len()));
        for (client, least) in clients.iter_mut().zip(least.chunks(self.min_size.max(1))) {
            client.extend(least);
        }
        Partition::new(clients)
    }

    fn attempt(&self, deck: &Deck, seed: u64, attempt: u32) -> (Vec<f64>, Vec<u32>) {
        let mut stream = Stream::at(seed, Purpose::Split, attempt, 0);
        let logs: Vec<f64> = (0..self.clients).map(|_| log_gamma(&mut stream, self.beta)).collect();
        let mut rows = deck.rows();
        stream.shuffle(&mut rows);
        (weights(&logs, &vec![true; self.clients]), rows)
    }
}

/// Where each part of a list of `n` ends: floor(cumulated share * n), the last taking the rest.
pub(crate) fn ends(shares: &[f64], n: usize) -> Vec<usize> {
    let total: f64 = shares.iter().sum();
    let last = shares.iter().rposition(|share| *share > 0.0).unwrap_or(0);
    let mut cumulated = 0.0;
    let end = |(place, share): (usize, &f64)| {
        cumulated += share / total;
        if place >= last { n } else { ((cumulated * n as f64) as usize).min(n) }
    };
    shares.iter().enumerate().map(end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Statistics;
    use fedtvd_core::labels::Reference;

    #[test]
    fn sizes_vary_as_the_dirichlet_says_and_labels_do_not() {
        let labels: Vec<u32> = (0..60_000).map(|row| row % 10).collect();
        let deck = Deck { labels: &labels, classes: 10, groups: None };
        let split = Quantity { clients: 100, beta: 4.0, min_size: 2, tries: 1000 };
        let statistics =
            |seed| Statistics::of(&split.split(&deck, seed).unwrap(), &labels, &Reference::uniform(10));
        // The deviation of a gamma(4) number over its mean is 1 / sqrt(4).
        let variation = (0..10).map(|seed| statistics(seed).size_cv).sum::<f64>() / 10.0;
        assert!((variation - 0.5).abs() < 0.05, "{variation}");
        // 600 IID rows of ten classes: about sqrt(2 C / (pi n)) / 2 = 0.05.
        assert!(statistics(1).mean_tvd < 0.08, "{}", statistics(1).mean_tvd);
    }

    #[test]
    fn given_shares_are_cut_as_the_specification_cuts_them() {
        // "quantity_skew" of the golden file.
        assert_eq!(ends(&[0.5, 0.3, 0.2], 100), [50, 80, 100]);
    }
}
