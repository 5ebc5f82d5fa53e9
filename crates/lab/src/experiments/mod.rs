//! What to run: grids of cells and their executor (`sweep`), comparisons, the paper's experiments and its theory.
//! Results are run directories, which `runs` reads.

pub mod comparison;
pub mod deviations;
pub mod explanation;
pub mod forecast;
pub mod grid;
pub mod paper;
pub mod preset;
pub mod reproduction;
pub mod shard;
pub mod sweep;
pub mod theory;
pub mod tuning;
