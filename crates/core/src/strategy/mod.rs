//! Every method, one file each: its formula and paper first, then its rules and its spec.
//!
//! A new method is one new file, its `mod` line and its line in [`ALL`].

mod balanced;
mod bn_scaffold;
mod fedadam;
pub(crate) mod fedavg;
mod feddkw;
mod fedlc;
mod fednova;
mod fedprox;
mod fedtvd;
mod fedtvd_released;
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
    &balanced::SPEC,
    &fedlc::SPEC,
    &fedprox::SPEC,
    &scaffold::SPEC,
    &bn_scaffold::SPEC,
    &fednova::SPEC,
    &median::SPEC,
    &fedadam::SPEC,
];
