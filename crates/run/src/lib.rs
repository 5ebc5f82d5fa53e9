//! Federated training on one machine: configuration, the loop over rounds, the fleet of threads.

pub mod axes;
pub mod checkpoint;
pub mod checkpoints;
pub mod config;
pub mod digest;
pub mod directory;
pub mod dropout;
pub mod estimate;
pub mod experiment;
pub mod files;
pub mod fleet;
mod footprint;
pub mod keys;
mod lookup;
pub mod manifest;
pub mod reference;
mod resolved;
pub mod rounds;
pub mod runner;
pub mod setup;
pub mod simulation;
pub mod spool;
pub mod summary;
pub mod threads;
pub mod traffic;
pub mod value;
pub mod verify;
