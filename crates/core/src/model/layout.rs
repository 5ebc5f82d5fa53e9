//! The position of each tensor in the flat parameters: trainable tensors first, batch-norm buffers last.

use crate::model::{Layer, LayerKind, Network, NetworkError, Role, Shape, Tensor};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// All tensors of a network, in their order in the flat parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    tensors: Vec<Tensor>,
    trainable: usize,
    len: usize,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    widths: Vec<usize>,
}

impl Layout {
    /// The layout of a network; fails if its layers do not fit together.
    pub fn of(network: &Network) -> Result<Self, NetworkError> {
        network.check()?;
        let mut tensors = Vec::new();
        let mut layer_number = 0;
        collect(&network.layers, network.input, &mut layer_number, &mut tensors)?;
        let mut names: Vec<&str> = tensors.iter().map(|t| t.name.as_str()).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            let layer = pair[0].rsplit_once('.').map_or(pair[0], |(layer, _)| layer);
            return Err(NetworkError::SameName(layer.to_owned()));
        }
        Ok(Self::from_tensors(tensors))
    }

    /// The layout of one trainable vector, for problems without a network.
    pub fn vector(len: usize) -> Self {
        Self::from_tensors(vec![Tensor::new("vector", vec![len], 0, LayerKind::Linear, Role::Weight)])
    }

    /// Sorts the tensors and assigns each its position.
    pub fn from_tensors(mut tensors: Vec<Tensor>) -> Self {
        tensors.sort_by_key(|t| !t.role.trainable());
        let mut len = 0;
        let mut trainable = 0;
        for tensor in &mut tensors {
            tensor.start = len;
            len += tensor.len();
            if tensor.role.trainable() {
                trainable = len;
            }
        }
        Self { tensors, trainable, len, widths: Vec::new() }
    }

    /// The widths of its layers, if they are not those of the network that a run began with: see [`Layout::with_widths`].
    pub fn widths(&self) -> &[usize] {
        &self.widths
    }

    pub(crate) fn set_widths(&mut self, widths: Vec<usize>) {
        self.widths = widths;
    }

    /// Whether the layers of all tensors are known: what depends on layers needs them.
    pub fn knows_layers(&self) -> bool {
        self.tensors.iter().all(|tensor| tensor.kind != LayerKind::Other)
    }

    /// The tensors, trainable ones first.
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// Number of trainable parameters, which come first.
    pub fn trainable(&self) -> usize {
        self.trainable
    }

    /// Number of flat parameters, buffers included.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Range of the tensor of this name.
    pub fn range(&self, name: &str) -> Option<Range<usize>> {
        self.tensors.iter().find(|t| t.name == name).map(Tensor::range)
    }
}

fn collect(
    layers: &[Layer],
    mut shape: Shape,
    number: &mut usize,
    tensors: &mut Vec<Tensor>,
) -> Result<Shape, NetworkError> {
    for layer in layers {
        if let Layer::Residual { body, shortcut } = layer {
            collect(body, shape, number, tensors)?;
            collect(shortcut, shape, number, tensors)?;
        }
        let own = Tensor::of_layer(layer, shape[0], *number);
        *number += usize::from(!own.is_empty());
        tensors.extend(own);
        shape = layer.output(shape, "")?;
    }
    Ok(shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Network {
        let conv = |name: &str, bias| Layer::Conv {
            name: name.into(),
            out: 2,
            kernel: [3, 3],
            stride: 1,
            pad: 1,
            bias,
        };
        Network {
            input: [2, 4, 4],
            classes: 3,
            layers: vec![
                Layer::Residual {
                    body: vec![conv("block.conv1", false), Layer::BatchNorm { name: "block.bn1".into() }],
                    shortcut: vec![],
                },
                conv("conv", true),
                Layer::Flatten,
                Layer::Linear { name: "fc".into(), out: 3 },
            ],
        }
    }

    #[test]
    fn trainable_tensors_come_first_and_buffers_last_without_gaps() {
        let layout = Layout::of(&small()).unwrap();
        let names: Vec<&str> = layout.tensors().iter().map(|t| t.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "block.conv1.weight",
                "block.bn1.weight",
                "block.bn1.bias",
                "conv.weight",
                "conv.bias",
                "fc.weight",
                "fc.bias",
                "block.bn1.running_mean",
                "block.bn1.running_var"
            ]
        );
        // 2*2*9 + 2 + 2 + 2*2*9 + 2 + 3*32 + 3 trainable, 2 + 2 buffers.
        assert_eq!((layout.trainable(), layout.len()), (177, 181));
        let mut next = 0;
        for tensor in layout.tensors() {
            assert_eq!(tensor.start, next);
            next += tensor.len();
        }
        assert_eq!(next, layout.len());
        assert_eq!(layout.range("fc.bias"), Some(174..177));
    }

    #[test]
    fn two_layers_with_the_same_name_are_refused() {
        let mut network = small();
        network.layers.insert(1, Layer::BatchNorm { name: "conv".into() });
        assert_eq!(Layout::of(&network), Err(NetworkError::SameName("conv".into())));
    }
}
