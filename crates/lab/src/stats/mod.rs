//! What a handful of seeds says: means, deviations, intervals, paired tests and their correction, and the sentence that
//! they amount to. `summary` computes a table's row from records; the other files are formulas.

pub mod bootstrap;
pub mod holm;
pub mod normal;
pub mod statistics;
pub mod summary;
pub mod verdict;
