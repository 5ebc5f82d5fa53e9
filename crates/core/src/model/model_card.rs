//! What a model file says about its model, so that it can be used without the run that made it.

use crate::bytes::{ENTRY, Envelope, VERSION};
use crate::model::ModelDefinition;
use safetensors::tensor::SafeTensors;
use serde::{Deserialize, Serialize};

/// A model for tables, and the schema of the tables.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelCard {
    /// The model.
    pub network: ModelDefinition,
    /// How a row becomes its input and what its outputs are called: a schema as TOML.
    pub schema: String,
}

const KIND: &str = "model";

impl ModelCard {
    /// The card of a model file, if it has one.
    pub fn of(file: &[u8]) -> Option<Self> {
        let (_, metadata) = SafeTensors::read_metadata(file).ok()?;
        let text = metadata.metadata().as_ref()?.get(ENTRY)?;
        let envelope: Envelope<Self> = serde_json::from_str(text).ok()?;
        (envelope.kind == KIND && envelope.version == VERSION).then_some(envelope.header)
    }

    /// The entry of the file's metadata.
    pub(crate) fn entry(&self) -> (String, String) {
        let envelope = Envelope { kind: KIND.to_owned(), version: VERSION, header: self };
        let text = serde_json::to_string(&envelope).expect("layers and a schema are plain data");
        (ENTRY.to_owned(), text)
    }
}
