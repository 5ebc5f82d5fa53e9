//! What a client reports about its labels: only what the strategy asks for. A new statistic is a variant of [`Ask`]
//! and of [`Statistic`], with its answer and its check, all in this file.
//!
//! ```text
//! P[c] = h[c] / n                           label distribution of a client with counts h, n = Σ h
//! TVD  = 1/2 Σ |P[c] - Q[c]|                total variation distance to the reference Q
//! d'   = 1/2 Σ |h[c] / (n + 1) - Q[c]|      computed by the authors' public code instead
//!
//! TVD against uniform Q:  n C TVD is an integer, and TVD >= r (C - r) / (n C) with r = n mod C
//! d' against uniform Q:   C (n + 1) d' - C/2 is a non-negative integer
//! ```
//!
//! So "TVD = 0 with 501 samples of 10 classes" is refused. Against other references only the range is checked.

use crate::labels::Reference;
use crate::round::{ClientId, Refusal};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a strategy asks a client about its labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ask {
    /// Nothing beyond the size.
    Nothing,
    /// One number: the total variation distance to the reference.
    Distance,
    /// One number: the distance d' of the authors' public code.
    Released,
    /// The label counts.
    Histogram,
}

impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "no label statistic",
            Self::Distance => "a distance to the reference",
            Self::Released => "the distance of the authors' public code",
            Self::Histogram => "label counts",
        })
    }
}

impl Ask {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Nothing, Self::Distance, Self::Released, Self::Histogram];

    /// The answer of a client with these counts.
    pub fn answer(self, counts: &[u64], reference: &Reference) -> Statistic {
        match self {
            Self::Nothing => Statistic::Nothing,
            Self::Distance => Statistic::Distance(tvd(counts, reference)),
            Self::Released => Statistic::Released(released_distance(counts, reference)),
            Self::Histogram => Statistic::Histogram(counts.to_vec()),
        }
    }
}

/// A client's answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Statistic {
    /// Nothing.
    Nothing,
    /// TVD to the reference.
    Distance(f64),
    /// d' of the authors' public code.
    Released(f64),
    /// Label counts.
    Histogram(Vec<u64>),
}

impl Statistic {
    /// The question that this answers.
    pub fn ask(&self) -> Ask {
        match self {
            Self::Nothing => Ask::Nothing,
            Self::Distance(_) => Ask::Distance,
            Self::Released(_) => Ask::Released,
            Self::Histogram(_) => Ask::Histogram,
        }
    }

    /// Refuses a statistic that is impossible for this many samples.
    pub(crate) fn check(&self, client: ClientId, size: u64, reference: &Reference) -> Result<(), Refusal> {
        match self {
            Self::Nothing => Ok(()),
            Self::Histogram(counts) => check_counts(client, size, counts, reference.classes()),
            Self::Distance(distance) => {
                let (n, classes) = (size as f64, reference.classes() as f64);
                let rest = (size % reference.classes() as u64) as f64;
                let least =
                    if reference.is_uniform() { rest * (classes - rest) / (n * classes) } else { 0.0 };
                let claim = Claim { client, size, distance: *distance, classes: reference.classes() };
                claim.within(least, reference.farthest())?;
                if reference.is_uniform() { claim.integer(n * classes * distance) } else { Ok(()) }
            }
            Self::Released(distance) => {
                let (n, classes) = (size as f64, reference.classes() as f64);
                let claim = Claim { client, size, distance: *distance, classes: reference.classes() };
                // All samples in one class of share q: 1/2 ((n/(n+1) - q) + (1 - q)), largest for the smallest q.
                let greatest = 0.5 * (n / (n + 1.0) - 1.0) + reference.farthest();
                claim.within(0.5 / (n + 1.0), greatest.max(0.5 / (n + 1.0)))?;
                if reference.is_uniform() {
                    claim.integer(classes * (n + 1.0) * distance - classes / 2.0)
                } else {
                    Ok(())
                }
            }
        }
    }
}

fn check_counts(client: ClientId, size: u64, counts: &[u64], classes: usize) -> Result<(), Refusal> {
    if counts.len() != classes {
        return Err(Refusal::Classes { client, got: counts.len(), classes });
    }
    let sum: u128 = counts.iter().map(|&count| u128::from(count)).sum();
    if sum != u128::from(size) {
        return Err(Refusal::CountsSum { client, sum, size });
    }
    Ok(())
}

struct Claim {
    client: ClientId,
    size: u64,
    distance: f64,
    classes: usize,
}

impl Claim {
    fn within(&self, least: f64, greatest: f64) -> Result<(), Refusal> {
        let &Self { client, size, distance, .. } = self;
        // More than the rounding error of a sum of C terms.
        let slack = 1e-12;
        // A bound above 0 stays above 0, because the weights of the released code divide by the distance.
        let low = if least > 0.0 { (least - slack).max(f64::MIN_POSITIVE) } else { 0.0 };
        if (low..=greatest + slack).contains(&distance) {
            return Ok(());
        }
        Err(Refusal::Distance { client, distance, least, greatest, size })
    }

    /// Checks a number that is a non-negative integer for every possible client.
    fn integer(&self, number: f64) -> Result<(), Refusal> {
        let &Self { client, size, distance, classes } = self;
        // The distance is a sum of C terms, each rounded at 2^-53, scaled by n C.
        let slack = 1e-6 + (size as f64) * (classes * classes) as f64 * f64::EPSILON;
        if (number - number.round()).abs() <= slack && number > -0.5 {
            return Ok(());
        }
        Err(Refusal::Impossible { client, distance, size, classes })
    }
}

/// TVD = 1/2 Σ |P - Q| of a client with these counts.
pub fn tvd(counts: &[u64], reference: &Reference) -> f64 {
    distance(counts, size(counts) as f64, reference)
}

/// d' = 1/2 Σ |h / (n + 1) - Q|, the distance of the authors' public code.
pub fn released_distance(counts: &[u64], reference: &Reference) -> f64 {
    distance(counts, size(counts) as f64 + 1.0, reference)
}

/// n = Σ h.
pub fn size(counts: &[u64]) -> u64 {
    counts.iter().sum()
}

fn distance(counts: &[u64], total: f64, reference: &Reference) -> f64 {
    let gaps = counts.iter().zip(reference.shares()).map(|(&h, q)| (h as f64 / total - q).abs());
    0.5 * gaps.sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_three_clients_have_distance_0_and_2_15ths_and_10_33rds() {
        let q = Reference::uniform(3);
        let distances = [[30, 30, 30], [20, 40, 40], [10, 30, 70]].map(|h| tvd(&h, &q));
        for (distance, expected) in distances.iter().zip([0.0, 2.0 / 15.0, 10.0 / 33.0]) {
            assert!((distance - expected).abs() < 1e-15, "{distance} is not {expected}");
        }
    }
}
