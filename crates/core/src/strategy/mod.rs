//! Every method, one file each: its formula and paper first, then its rules and its spec. What several of them share
//! stands in a file of its own (`adaptive.rs`).
//!
//! A new method is one new file, its `mod` line and its line in [`ALL`].

mod adaptive;
mod balanced;
mod complete;
mod fedadagrad;
mod fedadam;
pub(crate) mod fedavg;
mod fedavgm;
mod feddkw;
mod fedlc;
mod fednova;
mod fedprox;
mod fedtvd;
mod fedtvd_released;
mod fedyogi;
mod joint;
mod median;
mod scaffold;
mod uniform;

use crate::rules::spec::Spec;

/// Every method that can be named.
pub const ALL: &[&Spec] = &[
    &fedavg::SPEC,
    &uniform::SPEC,
    &fedtvd::SPEC,
    &fedtvd_released::SPEC,
    &feddkw::SPEC,
    &joint::SPEC,
    &balanced::SPEC,
    &fedlc::SPEC,
    &fedprox::SPEC,
    &scaffold::SPEC,
    &fednova::SPEC,
    &median::SPEC,
    &fedavgm::SPEC,
    &fedadagrad::SPEC,
    &fedadam::SPEC,
    &complete::SPEC,
    &fedyogi::SPEC,
];
