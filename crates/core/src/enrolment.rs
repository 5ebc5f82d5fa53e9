//! Every check of what a client says of itself, once, at its first contact.
//!
//! ```text
//! TVD against uniform Q:  n C TVD is an integer, and TVD >= r (C - r) / (n C) with r = n mod C
//! d' against uniform Q:   C (n + 1) d' - C/2 is a non-negative integer
//! ```
//!
//! So "TVD = 0 with 501 samples of 10 classes" is a lie. Against other references only the range is known.

use crate::profile::{ClientId, Profile};
use crate::run::Run;
use crate::statistic::{Ask, Reference, Statistic};
use thiserror::Error;

/// Why a client is not enrolled.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Refusal {
    /// A size that cannot be or is not believed.
    #[error("client {client} claims {size} samples; 1 to {largest} are allowed")]
    Size {
        /// Who.
        client: ClientId,
        /// What it claims.
        size: u64,
        /// The run's cap.
        largest: u64,
    },
    /// Another statistic than the strategy asks for.
    #[error("client {client} sent {got}; this strategy asks for {asked}")]
    WrongStatistic {
        /// Who.
        client: ClientId,
        /// What came.
        got: Ask,
        /// What was asked.
        asked: Ask,
    },
    /// A distance beyond what any labels have.
    #[error(
        "client {client} claims distance {distance}; {least} to {greatest} are possible for {size} samples"
    )]
    Distance {
        /// Who.
        client: ClientId,
        /// What it claims.
        distance: f64,
        /// The least possible.
        least: f64,
        /// The greatest possible.
        greatest: f64,
        /// Its samples.
        size: u64,
    },
    /// A distance that no counts of this size give.
    #[error("client {client} claims distance {distance}, which no {size} samples of {classes} classes have")]
    Impossible {
        /// Who.
        client: ClientId,
        /// What it claims.
        distance: f64,
        /// Its samples.
        size: u64,
        /// The run's classes.
        classes: usize,
    },
    /// Counts for another number of classes.
    #[error("client {client} sent counts of {got} classes; this run has {classes}")]
    Classes {
        /// Who.
        client: ClientId,
        /// How many came.
        got: usize,
        /// How many there are.
        classes: usize,
    },
    /// Counts that are not those of its samples.
    #[error("client {client} sent counts that sum to {sum}, but claims {size} samples")]
    CountsSum {
        /// Who.
        client: ClientId,
        /// What the counts sum to.
        sum: u128,
        /// What it claims.
        size: u64,
    },
    /// A profile that differs from the one it was enrolled with.
    #[error("client {client} changed what it says of itself; a profile holds for the whole run")]
    Changed {
        /// Who.
        client: ClientId,
    },
    /// A newcomer to a run whose roster was complete.
    #[error("client {client} came after the first round, and this run needs its roster complete")]
    RosterClosed {
        /// Who.
        client: ClientId,
    },
}

/// Checks a profile against what is possible.
pub(crate) fn check(run: &Run, reference: &Reference, profile: &Profile) -> Result<(), Refusal> {
    let Profile { client, size, statistic } = profile;
    let (client, size) = (*client, *size);
    if size == 0 || size > run.largest_size {
        return Err(Refusal::Size { client, size, largest: run.largest_size });
    }
    let asked = run.strategy.weighting.asks();
    if statistic.ask() != asked {
        return Err(Refusal::WrongStatistic { client, got: statistic.ask(), asked });
    }
    match statistic {
        Statistic::Nothing => Ok(()),
        Statistic::Histogram(counts) => check_counts(client, size, counts, reference.classes()),
        Statistic::Distance(distance) => {
            let (n, classes) = (size as f64, reference.classes() as f64);
            let rest = (size % reference.classes() as u64) as f64;
            let least = if reference.is_uniform() { rest * (classes - rest) / (n * classes) } else { 0.0 };
            let claim = Claim { client, size, distance: *distance, classes: reference.classes() };
            claim.within(least, reference.farthest())?;
            if reference.is_uniform() { claim.integer(n * classes * distance) } else { Ok(()) }
        }
        Statistic::Released(distance) => {
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
        // A sum of C rounded terms misses the bound by less than this.
        let slack = 1e-12;
        // What is above 0 for every possible client has an inverse, which the released code's weights take.
        let low = if least > 0.0 { (least - slack).max(f64::MIN_POSITIVE) } else { 0.0 };
        if (low..=greatest + slack).contains(&distance) {
            return Ok(());
        }
        Err(Refusal::Distance { client, distance, least, greatest, size })
    }

    /// Checks a number that is a non-negative integer for every possible client.
    fn integer(&self, number: f64) -> Result<(), Refusal> {
        let &Self { client, size, distance, classes } = self;
        // The distance is a sum of C terms rounded at 2^-53 each, and is scaled by n C.
        let slack = 1e-6 + (size as f64) * (classes * classes) as f64 * f64::EPSILON;
        if (number - number.round()).abs() <= slack && number > -0.5 {
            return Ok(());
        }
        Err(Refusal::Impossible { client, distance, size, classes })
    }
}
