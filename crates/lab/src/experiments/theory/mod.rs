//! The paper's theory, measured where its assumptions hold: a smooth, strongly convex problem and full participation.

pub mod descent;
pub mod dissent;
pub mod experiment;
pub mod logistic;
pub mod reduction;
