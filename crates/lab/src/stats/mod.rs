//! Statistics over a few seeds: means, standard deviations, paired differences with the uncertainty of seeds and test rows,
//! their confidence intervals and tests together with those of the same table, and the verdict in one sentence. `summary` computes a table's rows from records; the other files are formulas.

pub mod bootstrap;
pub mod difference;
pub mod family;
pub mod holm;
pub mod rank;
pub mod row;
pub mod row_error;
pub mod statistics;
pub mod summary;
pub mod verdict;
