//! Federated training on one machine: configuration, the loop over rounds, the fleet of threads.

pub mod config;
pub mod keys;
pub mod value;
