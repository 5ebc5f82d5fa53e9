//! The two questions of personalised federated learning: which tensors travel, and which model a client itself uses.

use crate::labels::Reference;
use crate::model::{Layout, Params, Tensor};
use crate::round::ClientData;
use crate::train::{Local, Pass, TrainFailure, Trainer};
use std::fmt::Debug;

/// Which tensors travel between server and clients? The others stay at each client, which remembers them.
pub trait Sharing: Debug + Send + Sync {
    /// Whether a tensor of this model travels. Decided by a tensor's role, kind and layer, never by its name.
    fn travels(&self, layout: &Layout, tensor: &Tensor) -> bool;
    /// What stays at the client, for messages, such as "batch norms"; `None` if everything travels.
    fn stays(&self) -> Option<&'static str>;
}

/// Which model does a client itself use? The answer never leaves the client.
pub trait Personal: Debug + Send + Sync {
    /// Makes the client's model from the one in the task.
    fn own_model(&self, task: &OwnTask<'_>, trainer: &mut dyn Trainer) -> Result<OwnModel, TrainFailure>;
}

/// What a client makes its own model from.
#[derive(Clone, Copy, Debug)]
pub struct OwnTask<'a> {
    /// The newest shared model with the client's own tensors, or the model that its local rule keeps.
    pub model: &'a Params,
    /// The client's data.
    pub client: &'a ClientData,
    /// The reference label distribution Q.
    pub reference: &'a Reference,
    /// Local training settings.
    pub local: &'a Local,
    /// The plain pass on cross-entropy: epochs, key and class weights are set, and there are no offsets.
    pub pass: Pass<'a>,
}

/// A model as a client itself uses it.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnModel {
    /// Its parameters.
    pub params: Params,
    /// Added to its logits for each prediction; one number per class.
    pub offsets: Option<Vec<f32>>,
}
