//! The proof of the core: golden vectors, properties, and one contract for every registered strategy.
//!
//! One program, so that the tiny federation below is compiled once and nothing in it lies idle.

#![cfg(test)]

mod composition;
mod contract;
mod enrolment;
mod federation;
mod golden_fedadam;
mod golden_fednova;
mod golden_fedprox;
mod golden_loss;
mod golden_models;
mod golden_scaffold;
mod golden_weights;
mod hardened;
mod identities;
mod properties;
mod rejection;
mod resume;
mod vectors;
