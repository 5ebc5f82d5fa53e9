//! The named models: values of core's `Network`, with PyTorch's tensor names.

mod small;

use fedtvd_core::network::{Network, NetworkError, Shape};
use thiserror::Error;

/// A model that has a name.
pub struct Model {
    /// What it is called.
    pub name: &'static str,
    /// One line about it.
    pub about: &'static str,
    /// The input that it was made for.
    pub input: Shape,
    /// The classes that it was made for.
    pub classes: usize,
    build: fn(usize) -> Vec<fedtvd_core::network::Layer>,
}

/// Why there is no such model.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ModelError {
    /// No model has this name.
    #[error("no model is called {name}; there are {known}")]
    Unknown {
        /// The name asked for.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// The model does not fit the input.
    #[error("model {name}: {why}")]
    Misfit {
        /// The model.
        name: String,
        /// Where it fails.
        why: NetworkError,
    },
}

/// All named models.
pub const ALL: &[Model] = &[small::LOGISTIC, small::MLP, small::LENET, small::LENET5];

/// The named model for samples of shape `input` and `classes` classes.
pub fn named(name: &str, input: Shape, classes: usize) -> Result<Network, ModelError> {
    let model = ALL.iter().find(|model| model.name == name).ok_or_else(|| {
        let known: Vec<&str> = ALL.iter().map(|model| model.name).collect();
        ModelError::Unknown { name: name.to_owned(), known: known.join(", ") }
    })?;
    let network = Network { input, classes, layers: (model.build)(classes) };
    network.check().map_err(|why| ModelError::Misfit { name: name.to_owned(), why })?;
    Ok(network)
}
