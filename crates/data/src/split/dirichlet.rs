//! Per-class Dirichlet: each class is cut over the clients in proportions p ~ Dir(alpha, ..., alpha).
//!
//! for c ascending: p ~ Dir_N(alpha); where self-balancing, p_k = 0 for |client k| > n / N, renormalised;
//! client k gets the rows of c from floor(n_c (p_1 + ... + p_{k-1})) to floor(n_c (p_1 + ... + p_k)).
//! All is drawn again until every client has min_size rows.
//!
//! Yurochkin et al. 2019 (arXiv 1905.12022), with the balancing of Flower and NIID-Bench. The alpha of Hsu
//! et al. 2019 is another quantity, about C times this one: see `hsu.rs`.

use super::gamma::{log_gamma, weights};
use super::partition::{cut, first_that_fits};
use super::quantity::ends;
use super::{Deck, Partition, SplitError};
use fedtvd_core::stream::{Purpose, Stream};

/// The parameters of a per-class Dirichlet split.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dirichlet {
    /// How many clients.
    pub clients: usize,
    /// Concentration: small is skewed.
    pub alpha: f64,
    /// The minimum number of rows of a client.
    pub min_size: usize,
    /// Whether a client above the mean size gets nothing of the classes that follow.
    pub self_balancing: bool,
    /// How often to draw before giving up.
    pub tries: u32,
}

impl Default for Dirichlet {
    fn default() -> Self {
        Self { clients: 100, alpha: 0.1, min_size: 2, self_balancing: true, tries: 1000 }
    }
}

impl Dirichlet {
    /// The training rows dealt to the clients.
    pub fn split(&self, deck: &Deck, seed: u64) -> Result<Partition, SplitError> {
        deck.check(self.clients, self.min_size)?;
        SplitError::unless_positive("alpha", self.alpha)?;
        let rows = deck.by_class();
        first_that_fits(self.tries, self.min_size, |attempt| Some(self.attempt(&rows, seed, attempt)))
    }

    fn attempt(&self, classes: &[Vec<u32>], seed: u64, attempt: u32) -> Vec<Vec<u32>> {
        let mut shuffled = Vec::new();
        let mut logs = Vec::new();
        for (class, rows) in classes.iter().enumerate() {
            let mut stream = Stream::at(seed, Purpose::Split, attempt, class as u32);
            logs.push((0..self.clients).map(|_| log_gamma(&mut stream, self.alpha)).collect::<Vec<_>>());
            let mut rows = rows.clone();
            stream.shuffle(&mut rows);
            shuffled.push(rows);
        }
        deal(&shuffled, self.clients, self.self_balancing, |class, open| weights(&logs[class], open))
    }
}

/// Cuts each class in proportion to the weights that `weights` gives for it and for the clients still open.
fn deal(
    classes: &[Vec<u32>],
    clients: usize,
    self_balancing: bool,
    weights: impl Fn(usize, &[bool]) -> Vec<f64>,
) -> Vec<Vec<u32>> {
    let mean = classes.iter().map(Vec::len).sum::<usize>() as f64 / clients as f64;
    let mut dealt = vec![Vec::new(); clients];
    for (class, rows) in classes.iter().enumerate() {
        let open: Vec<bool> =
            dealt.iter().map(|rows: &Vec<u32>| !self_balancing || rows.len() as f64 <= mean).collect();
        let ends = ends(&kept(&weights(class, &open), &open), rows.len());
        for (client, part) in dealt.iter_mut().zip(cut(rows, &ends)) {
            client.extend(part);
        }
    }
    dealt
}

/// The weights of open clients; equal if these are all 0.
fn kept(weights: &[f64], open: &[bool]) -> Vec<f64> {
    let only_open = |(weight, open): (&f64, &bool)| if *open { *weight } else { 0.0 };
    let kept: Vec<f64> = weights.iter().zip(open).map(only_open).collect();
    if kept.iter().any(|weight| *weight > 0.0) {
        return kept;
    }
    open.iter().map(|open| f64::from(u8::from(*open))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    // Made by the generator of the specification: proportions given, so that no random numbers need agree.
    const GOLDEN: &str = include_str!("../../tests/golden/dirichlet_partition.json");

    fn lists<T: serde::de::DeserializeOwned>(value: &Value) -> Vec<Vec<T>> {
        serde_json::from_value(value.clone()).unwrap()
    }

    #[test]
    fn given_proportions_are_cut_as_the_specification_cuts_them() {
        let golden: Value = serde_json::from_str(GOLDEN).unwrap();
        let classes = lists::<u32>(&golden["class_indices"]);
        let dealt = |proportions: &Value, self_balancing| {
            let proportions = lists::<f64>(proportions);
            deal(&classes, 3, self_balancing, |class, _| proportions[class].clone())
        };
        let tie = &golden["tie_case"];
        assert_eq!(dealt(&golden["proportions"], false), lists::<u32>(&golden["no_balancing"]));
        assert_eq!(dealt(&golden["proportions"], true), lists::<u32>(&golden["self_balancing_flower_gt"]));
        // NIID-Bench closes a client at the mean size, we above it: the same unless a client has exactly the mean.
        assert_eq!(dealt(&golden["proportions"], true), lists::<u32>(&golden["self_balancing_niidbench_ge"]));
        assert_eq!(dealt(&tie["proportions"], true), lists::<u32>(&tie["flower_gt"]));
        assert_ne!(dealt(&tie["proportions"], true), lists::<u32>(&tie["niidbench_ge"]));
    }

    #[test]
    fn a_closed_last_client_gets_no_row_from_rounding() {
        let ends = |weights: &[f64], open: &[bool]| ends(&kept(weights, open), 10);
        assert_eq!(ends(&[0.1, 0.2, 0.3, 9.0], &[true, true, true, false]), [1, 5, 10, 10]);
        assert_eq!(ends(&[0.0, 0.0, 1.0], &[true, true, false]), [5, 10, 10]);
    }

    #[test]
    fn ten_clients_can_be_dealt_with_alpha_a_hundredth() {
        let labels: Vec<u32> = (0..60_000).map(|row| row % 10).collect();
        for seed in 0..5 {
            let split = Dirichlet { clients: 10, alpha: 0.01, ..Dirichlet::default() };
            let deck = Deck { labels: &labels, classes: 10, groups: None };
            let partition = split.split(&deck, seed).unwrap();
            assert_eq!(partition.clients.iter().map(Vec::len).sum::<usize>(), 60_000);
        }
    }

    #[test]
    fn a_hopeless_request_is_refused_with_what_would_help() {
        let labels: Vec<u32> = (0..100).map(|row| row % 2).collect();
        let refused = |split: Dirichlet| {
            split.split(&Deck { labels: &labels, classes: 2, groups: None }, 1).unwrap_err().to_string()
        };
        let split = Dirichlet { clients: 10, ..Dirichlet::default() };
        assert_eq!(refused(Dirichlet { alpha: 0.0, ..split }), "alpha = 0 is outside the numbers above 0");
        assert_eq!(
            refused(Dirichlet { min_size: 11, ..split }),
            "10 clients with at least 11 rows each need 110 rows, but there are 100"
        );
        assert_eq!(
            refused(Dirichlet { alpha: 0.001, min_size: 10, tries: 3, ..split }),
            "in 3 tries the smallest client had at most 0 rows, but min_size is 10: \
             make the split less skewed, or use fewer clients or a smaller min_size"
        );
    }
}
