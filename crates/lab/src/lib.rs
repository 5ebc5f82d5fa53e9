//! From runs to findings: comparisons over seeds, their statistics, tables and charts.

pub mod chart;
pub mod comparison;
pub mod forecast;
pub mod grid;
pub mod page;
pub mod paper;
pub mod preset;
pub mod reproduction;
pub mod shard;
pub mod statistics;
pub mod summary;
pub mod svg;
pub mod sweep;
pub mod theory;
