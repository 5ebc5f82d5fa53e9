//! Statistics over a few seeds: means, standard deviations, confidence intervals, paired tests and their correction, and
//! the verdict in one sentence. `summary` computes a table's rows from records; the other files are formulas.

pub mod bootstrap;
pub mod holm;
pub mod normal;
pub mod statistics;
pub mod summary;
pub mod verdict;
