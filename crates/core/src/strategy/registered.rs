//! Methods that a program registers at run time, beside [`ALL`]. They are named, composed, listed and checked as all others.
//!
//! The list is the only state of this crate. It holds names and rules, and nothing that a round changes.

use crate::rules::spec::Spec;
use crate::strategy::ALL;
use crate::strategy::contract::{self, Breach};
use std::sync::{PoisonError, RwLock};
use thiserror::Error;

static REGISTERED: RwLock<Vec<&'static Spec>> = RwLock::new(Vec::new());

/// Why a method is not registered.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum RegisterError {
    /// A name that cannot be part of a composition.
    #[error(
        "\"{0}\" cannot be the name of a strategy; write lower-case letters, digits and hyphens, such as my-rule"
    )]
    Name(String),
    /// A name of the program.
    #[error("{0} is a strategy of fedtvd itself; choose another name")]
    Taken(&'static str),
    /// Without an origin, nothing could say that its rules have changed.
    #[error("{0} does not say where its rules come from")]
    NoOrigin(&'static str),
    /// Its rules do not keep the contract.
    #[error("{name} cannot be registered: {breach}")]
    Breach {
        /// The method.
        name: &'static str,
        /// What is wrong.
        breach: Breach,
    },
}

/// Registers a method made by [`Spec::outside`], after calling its rules on small examples. One of the same name that was
/// registered before is replaced; strategies that were built from that one keep its rules.
pub fn register(spec: Spec) -> Result<(), RegisterError> {
    let good = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    if !spec.name.starts_with(|first: char| first.is_ascii_lowercase()) || !spec.name.bytes().all(good) {
        return Err(RegisterError::Name(spec.name.to_owned()));
    }
    if let Some(own) = ALL.iter().find(|own| own.name == spec.name) {
        return Err(RegisterError::Taken(own.name));
    }
    if spec.outside.is_none() {
        return Err(RegisterError::NoOrigin(spec.name));
    }
    contract::check(&spec).map_err(|breach| RegisterError::Breach { name: spec.name, breach })?;
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    registered.retain(|other| other.name != spec.name);
    // Strategies refer to it for as long as the program runs.
    registered.push(Box::leak(Box::new(spec)));
    Ok(())
}

/// Every method that can be named: those of [`ALL`], then the registered ones.
pub fn all() -> Vec<&'static Spec> {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    ALL.iter().chain(registered.iter()).copied().collect()
}
