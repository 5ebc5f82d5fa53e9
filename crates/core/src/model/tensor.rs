//! One tensor of a model: its name, shape and role in its layer.

use crate::model::Layer;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The role of a tensor in its layer. Methods select tensors by role and kind, never by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Kernel or matrix.
    Weight,
    /// Added after the product.
    Bias,
    /// A norm's scale (PyTorch's `weight`).
    Scale,
    /// A norm's shift (PyTorch's `bias`).
    Shift,
    /// Buffer: a batch norm's mean at evaluation.
    RunningMean,
    /// Buffer: a batch norm's variance at evaluation.
    RunningVariance,
    /// Trainable, in a layer that only its backend knows.
    Other,
    /// Not trainable, in a layer that only its backend knows.
    Buffer,
}

impl Role {
    /// Whether it is trainable; the others are buffers.
    pub fn trainable(self) -> bool {
        !matches!(self, Self::RunningMean | Self::RunningVariance | Self::Buffer)
    }
}

/// The kind of layer that a tensor belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LayerKind {
    /// A convolution.
    Conv,
    /// A fully connected layer.
    Linear,
    /// A batch norm.
    BatchNorm,
    /// A group norm.
    GroupNorm,
    /// A layer that only its backend knows.
    Other,
}

/// One tensor of the flat parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tensor {
    /// PyTorch's name, such as `layer1.0.bn1.running_mean`.
    pub name: String,
    /// PyTorch's shape.
    pub shape: Vec<usize>,
    /// Index of its layer among the layers that have tensors.
    pub layer: usize,
    /// The layer's kind.
    pub kind: LayerKind,
    /// Its role in the layer.
    pub role: Role,
    /// Its first index in the flat parameters.
    pub start: usize,
}

impl Tensor {
    /// A tensor without a position yet; a layout assigns it.
    pub fn new(name: &str, shape: Vec<usize>, layer: usize, kind: LayerKind, role: Role) -> Self {
        Self { name: name.to_owned(), shape, layer, kind, role, start: 0 }
    }

    /// The tensors of a layer with this many input channels; empty for a residual block, whose layers have their own.
    pub(crate) fn of_layer(layer: &Layer, channels: usize, number: usize) -> Vec<Self> {
        let weight = |shape| ("weight", Role::Weight, shape);
        let norm = || vec![("weight", Role::Scale, vec![channels]), ("bias", Role::Shift, vec![channels])];
        let (name, kind, own) = match layer {
            Layer::Conv { name, out, kernel, bias, .. } => {
                let bias = bias.then(|| ("bias", Role::Bias, vec![*out]));
                let weight = weight(vec![*out, channels, kernel[0], kernel[1]]);
                (name, LayerKind::Conv, std::iter::once(weight).chain(bias).collect())
            }
            Layer::Linear { name, out } => {
                let own = vec![weight(vec![*out, channels]), ("bias", Role::Bias, vec![*out])];
                (name, LayerKind::Linear, own)
            }
            Layer::BatchNorm { name } => {
                let mean = ("running_mean", Role::RunningMean, vec![channels]);
                let variance = ("running_var", Role::RunningVariance, vec![channels]);
                (name, LayerKind::BatchNorm, norm().into_iter().chain([mean, variance]).collect())
            }
            Layer::GroupNorm { name, .. } => (name, LayerKind::GroupNorm, norm()),
            Layer::Residual { .. }
            | Layer::Relu
            | Layer::MaxPool { .. }
            | Layer::AveragePool { .. }
            | Layer::GlobalPool
            | Layer::Dropout { .. }
            | Layer::Flatten => return Vec::new(),
        };
        let tensor = |(own, role, shape): (&str, Role, Vec<usize>)| {
            Self::new(&format!("{name}.{own}"), shape, number, kind, role)
        };
        own.into_iter().map(tensor).collect()
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its range in the flat parameters.
    pub fn range(&self) -> Range<usize> {
        self.start..self.start + self.len()
    }
}
