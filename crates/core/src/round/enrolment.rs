//! Checks a client's profile once, at its first contact.

use crate::labels::{Ask, Reference};
use crate::round::{ClientId, Profile, Run};
use thiserror::Error;

/// Why a client is not enrolled.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Refusal {
    /// A size of zero, or above the limit.
    #[error("client {client} claims {size} samples; 1 to {largest} are allowed")]
    Size {
        /// The client.
        client: ClientId,
        /// The claimed value.
        size: u64,
        /// The run's limit.
        largest: u64,
    },
    /// A different statistic from the one that the strategy asks for.
    #[error("client {client} sent {got}; this strategy asks for {asked}")]
    WrongStatistic {
        /// The client.
        client: ClientId,
        /// What was sent.
        got: Ask,
        /// What was asked for.
        asked: Ask,
    },
    /// A distance outside the possible range.
    #[error(
        "client {client} claims distance {distance}; {least} to {greatest} are possible for {size} samples"
    )]
    Distance {
        /// The client.
        client: ClientId,
        /// The claimed value.
        distance: f64,
        /// The least possible.
        least: f64,
        /// The greatest possible.
        greatest: f64,
        /// Its number of samples.
        size: u64,
    },
    /// A distance within the range that no labels of this many samples have.
    #[error(
        "client {client} claims distance {distance}, which is impossible for {size} samples of {classes} classes"
    )]
    Impossible {
        /// The client.
        client: ClientId,
        /// The claimed value.
        distance: f64,
        /// Its number of samples.
        size: u64,
        /// Number of classes of the run.
        classes: usize,
    },
    /// Counts for another number of classes.
    #[error("client {client} sent counts of {got} classes; this run has {classes}")]
    Classes {
        /// The client.
        client: ClientId,
        /// Number of classes sent.
        got: usize,
        /// Number of classes of the run.
        classes: usize,
    },
    /// Counts that do not sum to the size.
    #[error("client {client} sent counts that sum to {sum}, but claims {size} samples")]
    CountsSum {
        /// The client.
        client: ClientId,
        /// What the counts sum to.
        sum: u128,
        /// The claimed value.
        size: u64,
    },
    /// A profile that differs from the enrolled one.
    #[error("client {client} changed its profile, which is fixed for the whole run: {what}")]
    Changed {
        /// The client.
        client: ClientId,
        /// What was enrolled, and what is claimed now.
        what: String,
    },
    /// A new client in a run with a fixed roster.
    #[error("client {client} joined after the first round; this run needs all clients enrolled before it")]
    RosterClosed {
        /// The client.
        client: ClientId,
    },
}

/// Checks that a profile is possible.
pub(crate) fn check(run: &Run, reference: &Reference, profile: &Profile) -> Result<(), Refusal> {
    let Profile { client, size, statistic, .. } = profile;
    let (client, size) = (*client, *size);
    if size == 0 || size > run.largest_size {
        return Err(Refusal::Size { client, size, largest: run.largest_size });
    }
    let asked = run.strategy.asks();
    if statistic.ask() != asked {
        return Err(Refusal::WrongStatistic { client, got: statistic.ask(), asked });
    }
    statistic.check(client, size, reference)
}
