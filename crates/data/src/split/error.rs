//! Why a split cannot be made.

use super::{Deck, FileError};
use thiserror::Error;

/// Why a split cannot be made.
#[derive(Debug, Error)]
pub enum SplitError {
    /// A parameter outside its range.
    #[error("{name} = {value} is outside {range}")]
    Range {
        /// Which parameter.
        name: &'static str,
        /// What it is.
        value: f64,
        /// What it may be.
        range: String,
    },
    /// Too few rows for the clients.
    #[error("{clients} clients with at least {min_size} rows each need {} rows, but there are {rows}",
        clients.saturating_mul(*min_size))]
    Rows {
        /// How many clients.
        clients: usize,
        /// How many rows each must have.
        min_size: usize,
        /// How many rows there are.
        rows: usize,
    },
    /// Fewer rows than shards.
    #[error(
        "{clients} clients with {shards} shards each need {} rows, one for each shard, but there are {rows}",
        clients.saturating_mul(*shards)
    )]
    Shards {
        /// How many clients.
        clients: usize,
        /// How many shards each has.
        shards: usize,
        /// How many rows there are.
        rows: usize,
    },
    /// No try gave every client enough rows.
    #[error(
        "in {tries} tries the smallest client had at most {best} rows, but min_size is {min_size}: \
         make the split less skewed, or use fewer clients or a smaller min_size"
    )]
    Tries {
        /// How many tries.
        tries: u32,
        /// The smallest client of the best try.
        best: usize,
        /// How many rows each client must have.
        min_size: usize,
    },
    /// Too few rows besides those that clients hold out.
    #[error(
        "with split.holdout = {holdout} a client needs {rows} rows to have {min_size} to train on: {error}"
    )]
    Holdout {
        /// The fraction that is held out.
        holdout: f64,
        /// How many rows each client must have.
        rows: usize,
        /// How many of them it must train on.
        min_size: usize,
        /// What failed.
        error: Box<SplitError>,
    },
    /// No try came near the rank correlation.
    #[error(
        "in {tries} tries the rank correlation of size and TVD was at best {nearest:.3}, but {asked} (within \
         {tolerance}) was requested: request less, or use a smaller spread, fewer clients or a larger min_size, since a \
         client of a few rows cannot be even"
    )]
    Correlation {
        /// The requested value.
        asked: f64,
        /// What came nearest.
        nearest: f64,
        /// How near it must be.
        tolerance: f64,
        /// How many tries.
        tries: u32,
    },
    /// Sizes or skews without any variation.
    #[error(
        "the rank correlation of size and TVD is undefined for one client, or for clients of equal size or skew: use more clients, \
         a spread above 0, or alpha_even above alpha"
    )]
    NoCorrelation,
    /// A drawn split that fails on data whose owners are known.
    #[error(
        "{error}; the data has {} natural owners ({}): split.kind = natural makes each a client",
        names.len(),
        some(names)
    )]
    Owners {
        /// What failed.
        error: Box<SplitError>,
        /// The owners' names.
        names: Vec<String>,
    },
    /// Fewer places for labels than classes.
    #[error(
        "{clients} clients with {labels} labels each leave some of the {classes} classes without a client: \
         use more clients or more labels"
    )]
    Uncovered {
        /// How many clients.
        clients: usize,
        /// How many labels each has.
        labels: usize,
        /// How many classes there are.
        classes: usize,
    },
    /// A natural split of data without owners.
    #[error("this data set has no natural owners: choose another kind, or name a column with data.group")]
    NoGroups,
    /// An owner without training rows.
    #[error("{name} has no training rows, so it cannot be a client")]
    EmptyGroup {
        /// Who.
        name: String,
    },
    /// `split.kind = "file"` without a file.
    #[error("split.kind = \"file\" needs split.file, the path of a partition.json")]
    NoFile,
    /// A saved partition that cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
}

impl SplitError {
    pub(crate) fn range(name: &'static str, value: f64, range: &str) -> Self {
        Self::Range { name, value, range: range.to_owned() }
    }

    /// The same, saying that clients need more rows because they hold some out.
    pub(crate) fn beside_holdout(self, min_size: usize, rows: usize, holdout: f64) -> Self {
        match self {
            Self::Tries { min_size: least, .. } | Self::Rows { min_size: least, .. }
                if least == rows && rows > min_size =>
            {
                Self::Holdout { rows, holdout, min_size, error: Box::new(self) }
            }
            other => other,
        }
    }

    /// The same, naming the owners that the data has.
    pub(crate) fn beside_owners(self, deck: &Deck) -> Self {
        match (&self, deck.groups) {
            (Self::Tries { .. } | Self::Rows { .. } | Self::Holdout { .. }, Some(groups)) => {
                Self::Owners { error: Box::new(self), names: groups.names.clone() }
            }
            _ => self,
        }
    }

    /// Refuses what is not a finite number above 0.
    pub(crate) fn unless_positive(name: &'static str, value: f64) -> Result<(), Self> {
        if value.is_finite() && value > 0.0 {
            return Ok(());
        }
        Err(Self::range(name, value, "the numbers above 0"))
    }
}

/// The first few of the names.
fn some(names: &[String]) -> String {
    let more = if names.len() > 4 { ", …" } else { "" };
    names.iter().take(4).map(String::as_str).collect::<Vec<_>>().join(", ") + more
}
