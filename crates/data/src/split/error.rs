//! Why a split cannot be made.

use thiserror::Error;

/// Why a split cannot be made.
#[derive(Clone, Debug, PartialEq, Error)]
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
    #[error("{clients} clients with at least {min_size} rows each need {} rows, but there are {rows}", clients * min_size)]
    Rows {
        /// How many clients.
        clients: usize,
        /// How many rows each must have.
        min_size: usize,
        /// How many rows there are.
        rows: usize,
    },
    /// No try gave every client enough rows.
    #[error(
        "in {tries} tries the smallest client had at most {best} rows, and {min_size} are asked for: \
         use a larger alpha, fewer clients or a smaller min_size"
    )]
    Tries {
        /// How many tries.
        tries: u32,
        /// The smallest client of the best try.
        best: usize,
        /// How many rows each client must have.
        min_size: usize,
    },
}
