//! A model that is not made of this program's layers: tensors by name, whose meaning only its backend knows.

use crate::model::{Layout, Shape, Tensor};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use thiserror::Error;

/// A model that a backend makes itself, such as a module of PyTorch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherModel {
    /// The name under which its backend knows it.
    pub other: String,
    /// Hash of what it was made from; models of one name with other sources are different models.
    pub source: String,
    /// One sample: channels, height, width.
    pub input: Shape,
    /// Number of classes: the length of the logits.
    pub classes: usize,
    /// Its tensors. A tensor of kind `other` belongs to a layer that is not known.
    pub tensors: Vec<Tensor>,
}

/// Why tensors make no model.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OtherModelError {
    /// No trainable tensor.
    #[error("model {0} has no trainable tensor")]
    NothingToTrain(String),
    /// Two tensors have the same name.
    #[error("two tensors of model {model} are called {tensor}; names must differ")]
    SameName {
        /// The model.
        model: String,
        /// The tensors' name.
        tensor: String,
    },
    /// More numbers than can be addressed.
    #[error("model {model} has more than {LARGEST} numbers, with tensor {tensor} of shape {shape:?}")]
    TooLarge {
        /// The model.
        model: String,
        /// The tensor with which it becomes too large.
        tensor: String,
        /// Its shape.
        shape: Vec<usize>,
    },
}

/// Greatest number of values of a model, as of a tensor of a network.
const LARGEST: u64 = 1 << 31;

impl OtherModel {
    /// The positions of its tensors; fails if they make no model.
    pub fn layout(&self) -> Result<Layout, OtherModelError> {
        let model = || self.other.clone();
        let (mut names, mut numbers) = (BTreeSet::new(), 0u64);
        for Tensor { name, shape, .. } in &self.tensors {
            if !names.insert(name) {
                return Err(OtherModelError::SameName { model: model(), tensor: name.clone() });
            }
            let own = shape.iter().fold(1, |product: u64, &side| product.saturating_mul(side as u64));
            numbers = numbers.saturating_add(own);
            if numbers > LARGEST {
                let (tensor, shape) = (name.clone(), shape.clone());
                return Err(OtherModelError::TooLarge { model: model(), tensor, shape });
            }
        }
        let layout = Layout::from_tensors(self.tensors.clone());
        if layout.trainable() == 0 { Err(OtherModelError::NothingToTrain(model())) } else { Ok(layout) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{LayerKind, ModelDefinition, Role};

    fn model(tensors: &[(&str, &[usize], Role)]) -> OtherModel {
        let tensor = |(layer, (name, shape, role)): (usize, &(&str, &[usize], Role))| {
            Tensor::new(name, shape.to_vec(), layer, LayerKind::Other, *role)
        };
        let tensors = tensors.iter().enumerate().map(tensor).collect();
        OtherModel { other: "mine".into(), source: "5f".into(), input: [2, 1, 1], classes: 2, tensors }
    }

    #[test]
    fn trainable_tensors_come_first_wherever_the_model_has_them() {
        let own = model(&[
            ("position", &[3], Role::Buffer),
            ("w", &[2, 2], Role::Other),
            ("scalar", &[], Role::Other),
        ]);
        let layout = own.layout().unwrap();
        assert_eq!((layout.trainable(), layout.len()), (5, 8));
        assert_eq!(layout.range("position"), Some(5..8));
        assert!(!layout.knows_layers());
    }

    #[test]
    fn tensors_that_make_no_model_are_refused() {
        let why = |own: &OtherModel| own.layout().unwrap_err().to_string();
        assert_eq!(why(&model(&[("b", &[2], Role::Buffer)])), "model mine has no trainable tensor");
        let twice = model(&[("w", &[2], Role::Other), ("w", &[2], Role::Other)]);
        assert_eq!(why(&twice), "two tensors of model mine are called w; names must differ");
        let vast = model(&[("w", &[usize::MAX, usize::MAX], Role::Other)]);
        assert!(why(&vast).starts_with("model mine has more than 2147483648 numbers, with tensor w"));
    }

    #[test]
    fn its_description_round_trips() {
        let own = ModelDefinition::Other(model(&[("w", &[2, 2], Role::Other)]));
        let text = serde_json::to_string(&own).unwrap();
        assert_eq!(ModelDefinition::from_json(&text).unwrap(), own);
        assert_eq!(serde_json::from_str::<ModelDefinition>(&text).unwrap(), own);
    }
}
