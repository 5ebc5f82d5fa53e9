//! Federated training on one machine: configuration, the loop over rounds, the fleet of threads.

pub mod config;
pub mod experiment;
pub mod fleet;
pub mod keys;
pub mod setup;
pub mod simulation;
pub mod value;
