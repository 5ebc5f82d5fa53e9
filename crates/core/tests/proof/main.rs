//! Tests of the core: golden vectors, properties, and one contract for every registered strategy.
//!
//! One test program, so that the tiny federation is compiled once and no part of it is unused.

#![cfg(test)]

mod clusters;
mod composition;
mod conformance;
mod contract;
mod enrolment;
mod exact;
mod federation;
mod golden_bn_scaffold;
mod golden_fedadap;
mod golden_fedala;
mod golden_feddyn;
mod golden_fedexp;
mod golden_fednova;
mod golden_fedopt;
mod golden_fedprox;
mod golden_loss;
mod golden_models;
mod golden_personal;
mod golden_robust;
mod golden_scaffold;
mod golden_weights;
mod hardened;
mod identities;
mod in_memory;
mod label_aware;
mod properties;
mod registered;
mod rejection;
mod resume;
mod robust;
mod screening;
mod server_optimisers;
mod vectors;
