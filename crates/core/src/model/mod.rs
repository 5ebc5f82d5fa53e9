//! A model as data: its layers, the names and positions of its tensors, its parameters, and its file format.
//! Nothing here trains.

pub(crate) mod definition;
pub(crate) mod layout;
pub(crate) mod model_card;
pub(crate) mod model_file;
pub(crate) mod network;
pub(crate) mod other_model;
pub(crate) mod params;
pub(crate) mod parts;
pub(crate) mod tensor;
pub(crate) mod widths;

pub use definition::{DefinitionError, ModelDefinition};
pub use layout::Layout;
pub use model_card::ModelCard;
pub use model_file::ModelFileError;
pub use network::{Layer, Network, NetworkError, Shape};
pub use other_model::{OtherModel, OtherModelError};
pub use params::Params;
pub use parts::{Parts, PartsError};
pub use tensor::{LayerKind, Role, Tensor};
