//! What a model is: layers, which every backend can train, or tensors, which only the backend that made it can.

use crate::model::{Layout, Network, NetworkError, OtherModel, OtherModelError, Shape};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A model as data. As JSON, a network is the network itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ModelDefinition {
    /// Layers.
    Network(Network),
    /// Tensors whose meaning only a backend knows.
    Other(OtherModel),
}

/// Why a definition makes no model.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum DefinitionError {
    /// The layers do not fit together.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// The tensors make no model.
    #[error(transparent)]
    Other(#[from] OtherModelError),
}

impl From<Network> for ModelDefinition {
    fn from(network: Network) -> Self {
        Self::Network(network)
    }
}

impl ModelDefinition {
    /// Reads a definition; an error is about the kind of model that the text is of.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct Kind {
            other: Option<String>,
        }
        match serde_json::from_str::<Kind>(text) {
            Ok(Kind { other: Some(_) }) => serde_json::from_str(text).map(Self::Other),
            _ => serde_json::from_str(text).map(Self::Network),
        }
    }

    /// The position of each tensor; fails if it makes no model.
    pub fn layout(&self) -> Result<Layout, DefinitionError> {
        Ok(match self {
            Self::Network(network) => Layout::of(network)?,
            Self::Other(other) => other.layout()?,
        })
    }

    /// One sample: channels, height, width.
    pub fn input(&self) -> Shape {
        match self {
            Self::Network(network) => network.input,
            Self::Other(other) => other.input,
        }
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        match self {
            Self::Network(network) => network.classes,
            Self::Other(other) => other.classes,
        }
    }

    /// Its layers, if they are known.
    pub fn network(&self) -> Option<&Network> {
        match self {
            Self::Network(network) => Some(network),
            Self::Other(_) => None,
        }
    }

    /// Hash of what a backend made it from; empty for layers, which say themselves what they are.
    pub fn source(&self) -> &str {
        match self {
            Self::Network(_) => "",
            Self::Other(other) => &other.source,
        }
    }
}
