//! Attacks, one file each: what a lying client does differently, as pure functions. `fleet/adversarial.rs` applies
//! them to a simulation, `fedtvd join --attack` to a real client.
//!
//! A new attack is one new file, its `mod` line and its line in [`ALL`].

mod alie;
pub(crate) mod applied;
mod false_evaluation;
mod false_histogram;
mod false_tvd;
mod gaussian;
pub(crate) mod honest;
mod huge;
mod inner_product;
mod label_flip;
mod nan;
mod scale;
mod sign_flip;
pub(crate) mod spec;
mod tiny_reach;
mod vast_reach;

pub use applied::{Attack, LARGEST_SIZE};
pub use honest::Honest;
pub use spec::{Claim, Place, Situation, Spec};

/// Every attack that can be named.
pub const ALL: &[&Spec] = &[
    &huge::SPEC,
    &nan::SPEC,
    &scale::SPEC,
    &sign_flip::SPEC,
    &gaussian::SPEC,
    &alie::SPEC,
    &inner_product::SPEC,
    &label_flip::SPEC,
    &false_tvd::SPEC,
    &false_histogram::SPEC,
    &tiny_reach::SPEC,
    &vast_reach::SPEC,
    &false_evaluation::SPEC,
];

/// The word for no attack.
pub const NONE: &str = "none";

/// The words that `attack.kind` takes: none and every name.
pub(crate) const WORDS: &[&str] = &{
    let mut words = [NONE; ALL.len() + 1];
    let mut place = 0;
    while place < ALL.len() {
        words[place + 1] = ALL[place].name;
        place += 1;
    }
    words
};
