//! The paper's theory, measured under its assumptions: a smooth, strongly convex problem and full participation.

pub mod descent;
pub mod dissimilarity;
pub mod experiment;
pub mod logistic;
pub mod reduction;
