//! From runs to findings: comparisons over seeds, their statistics, tables and charts.

pub mod chart;
pub mod comparison;
pub mod page;
pub mod statistics;
pub mod summary;
pub mod svg;
