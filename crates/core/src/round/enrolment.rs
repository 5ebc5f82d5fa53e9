//! Every check of what a client says of itself, once, at its first contact.

use crate::labels::{Ask, Reference};
use crate::round::{ClientId, Profile, Run};
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
    statistic.check(client, size, reference)
}
