//! Matching the units of networks that were trained apart, before they are averaged.
//!
//! A unit is an output neuron of a linear layer or an output channel of a convolution. Networks whose hidden units are
//! permuted compute the same function, so averaging them unit by unit destroys what they learned. Here units of several
//! networks are assigned to common ones, the atoms, one layer at a time: [`matched`] matches the rows of a layer,
//! [`Rows::with_inputs`] moves the inputs of the next layer to the atoms, and [`class_weighted`] combines last layers,
//! whose units are the classes and are not permuted. [`Chain`] says which numbers of a network belong to which unit.
//!
//! Wang et al., "Federated Learning with Matched Averaging", ICLR 2020.

pub(crate) mod assignment;
pub(crate) mod chain;
pub(crate) mod cycle;
pub(crate) mod last_layer;
pub(crate) mod layer;
pub(crate) mod rows;
pub(crate) mod step;

pub use assignment::best_columns;
pub use chain::{Chain, ChainError, ChainLayer};
pub use cycle::Matching;
pub(crate) use cycle::{Cycle, Sent};
pub use last_layer::{class_shares, class_weighted};
pub use layer::{AtomValue, LayerRows, Matched, Options, matched};
pub use rows::Rows;
pub use step::MatchingStep;
