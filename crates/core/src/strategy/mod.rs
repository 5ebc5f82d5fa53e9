//! Every method, one file each: its formula and paper first, then its rules and its spec. What several of them share
//! stands in a file of its own (`adaptive.rs`).
//!
//! A new method is one new file, its `mod` line and its line in [`ALL`].

mod adaptive;
mod balanced;
mod bn_scaffold;
mod centred_clipping;
mod cfl;
mod complete;
mod contract;
mod ditto;
#[cfg(test)]
mod example;
mod fedadagrad;
mod fedadam;
mod fedadap;
mod fedala;
pub(crate) mod fedavg;
mod fedavgm;
mod fedbn;
mod feddkw;
mod feddyn;
mod fedexp;
mod fedlc;
mod fedma;
mod fednova;
mod fedper;
mod fedprox;
mod fedrep;
mod fedtvd;
mod fedtvd_released;
mod fedyogi;
mod finetune;
mod geometric_median;
mod ifca;
mod joint;
mod krum;
mod median;
mod multi_krum;
mod prior;
mod registered;
mod scaffold;
mod trimmed_mean;
mod uniform;

pub use contract::Breach;
pub use registered::{RegisterError, all, register};

use crate::rules::spec::Spec;

/// Every method of this crate; [`all`] adds those that the program registered.
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
    &bn_scaffold::SPEC,
    &feddyn::SPEC,
    &fednova::SPEC,
    &fedadap::SPEC,
    &median::SPEC,
    &trimmed_mean::SPEC,
    &krum::SPEC,
    &multi_krum::SPEC,
    &geometric_median::SPEC,
    &centred_clipping::SPEC,
    &fedavgm::SPEC,
    &fedadagrad::SPEC,
    &fedadam::SPEC,
    &fedyogi::SPEC,
    &fedexp::SPEC,
    &complete::SPEC,
    &fedbn::SPEC,
    &fedper::SPEC,
    &fedrep::SPEC,
    &ditto::SPEC,
    &fedala::SPEC,
    &finetune::SPEC,
    &prior::SPEC,
    &cfl::SPEC,
    &ifca::SPEC,
    &fedma::SPEC,
];
