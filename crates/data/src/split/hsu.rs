//! Hsu's per-client Dirichlet: every client has the same size and its own label distribution q ~ Dir(alpha p).
//!
//! p is the data set's label distribution, so alpha is the *total* concentration: alpha / C per class. Rows
//! are drawn without replacement; a class that is used up leaves the distributions of those who still draw.
//!
//! Hsu, Qi and Brown 2019 (arXiv 1909.06335). Their alpha is about C times that of `dirichlet.rs` at equal
//! skew: with ten classes their 0.1 is ten times more extreme.

use super::gamma::{log_gamma, weights};
use super::partition::even_ends;
use super::{Deck, Partition, SplitError};
use fedtvd_core::stream::{Purpose, Stream};

/// The parameters of Hsu's split.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hsu {
    /// How many clients.
    pub clients: usize,
    /// Total concentration: small is skewed.
    pub alpha: f64,
}

impl Hsu {
    /// The training rows dealt to the clients.
    pub fn split(&self, deck: &Deck, seed: u64) -> Result<Partition, SplitError> {
        deck.check(self.clients, 1)?;
        SplitError::unless_positive("alpha", self.alpha)?;
        let mut left = deck.by_class();
        let n = deck.labels.len();
        let shapes: Vec<f64> = left.iter().map(|rows| self.alpha * rows.len() as f64 / n as f64).collect();
        for (class, rows) in left.iter_mut().enumerate() {
            // Round 1 of the address, since round 0 is the clients'.
            Stream::at(seed, Purpose::Split, 1, class as u32).shuffle(rows);
        }
        let mut clients = Vec::new();
        let mut start = 0;
        for (client, end) in even_ends(n, self.clients).into_iter().enumerate() {
            let mut stream = Stream::at(seed, Purpose::Split, 0, client as u32);
            clients.push(drawn(&mut left, &shapes, end - start, &mut stream));
            start = end;
        }
        Ok(Partition::new(clients))
    }
}

/// `size` rows, their classes drawn from one Dir(shapes), taken out of `left`.
fn drawn(left: &mut [Vec<u32>], shapes: &[f64], size: usize, stream: &mut Stream) -> Vec<u32> {
    // A class without rows has shape 0 and no gamma number; it is never open.
    let log = |shape: &f64| if *shape > 0.0 { log_gamma(stream, *shape) } else { f64::NEG_INFINITY };
    let logs: Vec<f64> = shapes.iter().map(log).collect();
    let mut q = open_weights(&logs, left);
    let mut rows = Vec::with_capacity(size);
    while rows.len() < size {
        let class = chosen(&q, stream.unit());
        rows.extend(left[class].pop());
        if left[class].is_empty() {
            q = open_weights(&logs, left);
        }
    }
    rows
}

fn open_weights(logs: &[f64], left: &[Vec<u32>]) -> Vec<f64> {
    weights(logs, &left.iter().map(|rows| !rows.is_empty()).collect::<Vec<_>>())
}

/// The class at `unit` of the cumulated weights.
fn chosen(weights: &[f64], unit: f64) -> usize {
    let mut rest = unit * weights.iter().sum::<f64>();
    let mut last = 0;
    for (class, &weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
        if rest < weight {
            return class;
        }
        rest -= weight;
        last = class;
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Statistics;
    use fedtvd_core::labels::Reference;

    #[test]
    fn sizes_are_equal_and_the_skew_is_that_of_a_concentration_divided_by_the_classes() {
        let labels: Vec<u32> = (0..60_000).map(|row| row % 10).collect();
        let deck = Deck { labels: &labels, classes: 10, groups: None };
        let mean = |alpha| {
            let split = |seed| Hsu { clients: 100, alpha }.split(&deck, seed).unwrap();
            let statistics = |seed| Statistics::of(&split(seed), &labels, &Reference::uniform(10));
            (0..5).map(|seed| statistics(seed).mean_tvd).sum::<f64>() / 5.0
        };
        let split = Hsu { clients: 7, alpha: 0.1 }.split(&deck, 1).unwrap();
        assert_eq!(split.clients.iter().map(Vec::len).max(), Some(8572));
        assert_eq!(split.clients.iter().map(Vec::len).min(), Some(8571));
        // E[TVD] of Dir_10(0.1, ...) is 0.7106; the last clients take what is left, which
        // moves the mean by a few hundredths.
        assert!((mean(1.0) - 0.7106).abs() < 0.04, "{}", mean(1.0));
        // Theirs at 0.1 is 0.86 to 0.9, the far more extreme one.
        assert!((mean(0.1) - 0.87).abs() < 0.03, "{}", mean(0.1));
    }
}
