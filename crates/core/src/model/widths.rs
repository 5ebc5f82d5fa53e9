//! Networks that differ in the widths of their layers only.

use crate::model::{Layer, LayerKind, Layout, ModelDefinition, Network, Role};

/// Greatest number of values of a model with other widths: what a file or a message claims is checked before it is computed with.
const LARGEST: usize = 1 << 31;

impl Layout {
    /// The layout of the same chain of convolutions and linear layers with other numbers of units; `None` if it is no such
    /// chain, or if it would be too large.
    pub fn with_widths(&self, widths: &[usize]) -> Option<Self> {
        let mut tensors = self.tensors().to_vec();
        let (mut below, mut len) = (None, 0usize);
        let mut rest = widths.iter();
        for tensor in &mut tensors {
            let chained = matches!(tensor.kind, LayerKind::Conv | LayerKind::Linear);
            match (tensor.role, tensor.shape.as_mut_slice()) {
                (Role::Weight, [units, channels, ..]) if chained => {
                    let width = *rest.next().filter(|width| (1..=LARGEST).contains(*width))?;
                    if let Some((old, new)) = below {
                        // A linear layer after convolutions reads a whole feature map of each channel.
                        let each: usize = Some(*channels / old).filter(|each| each * old == *channels)?;
                        *channels = each.checked_mul(new)?;
                    }
                    below = Some((*units, width));
                    *units = width;
                }
                (Role::Bias, [units]) if chained => match below {
                    Some((old, new)) if old == *units => *units = new,
                    _ => return None,
                },
                _ => return None,
            }
            let values = tensor.shape.iter().try_fold(1usize, |product, side| product.checked_mul(*side))?;
            len = len.checked_add(values).filter(|len| *len <= LARGEST)?;
        }
        let mut layout = Self::from_tensors(tensors);
        layout.set_widths(widths.to_vec());
        rest.next().is_none().then_some(layout)
    }
}

impl ModelDefinition {
    /// The same model with other widths; a model that is not made of layers keeps its own.
    pub fn with_widths(&self, widths: &[usize]) -> Self {
        match self {
            Self::Network(network) => Self::Network(network.with_widths(widths)),
            Self::Other(_) => self.clone(),
        }
    }
}

impl Network {
    /// The number of output units or channels of each convolution and linear layer, without those in residual blocks.
    pub fn widths(&self) -> Vec<usize> {
        let width = |layer: &Layer| match layer {
            Layer::Conv { out, .. } | Layer::Linear { out, .. } => Some(*out),
            _ => None,
        };
        self.layers.iter().filter_map(width).collect()
    }

    /// The same network with other widths; layers beyond the given ones keep theirs.
    pub fn with_widths(&self, widths: &[usize]) -> Self {
        let mut network = self.clone();
        let outs = network.layers.iter_mut().filter_map(|layer| match layer {
            Layer::Conv { out, .. } | Layer::Linear { out, .. } => Some(out),
            _ => None,
        });
        outs.zip(widths).for_each(|(out, width)| *out = *width);
        network
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Layout;

    #[test]
    fn a_network_takes_other_widths_and_its_layers_still_fit() {
        let conv =
            Layer::Conv { name: "conv1".into(), out: 2, kernel: [3, 3], stride: 1, pad: 0, bias: true };
        let linear = |name: &str, out| Layer::Linear { name: name.into(), out };
        let layers = vec![conv, Layer::Relu, Layer::Flatten, linear("fc1", 5), Layer::Relu, linear("fc2", 3)];
        let network = Network { input: [1, 4, 4], classes: 3, layers };
        assert_eq!(network.widths(), [2, 5, 3]);
        let wide = network.with_widths(&[4, 7, 3]);
        assert_eq!(wide.widths(), [4, 7, 3]);
        let layout = Layout::of(&wide).unwrap();
        let shapes: Vec<&[usize]> = layout.tensors().iter().map(|tensor| tensor.shape.as_slice()).collect();
        assert_eq!(shapes, [&[4, 1, 3, 3][..], &[4], &[7, 16], &[7], &[3, 7], &[3]]);
        assert_eq!(wide.with_widths(&network.widths()), network);

        let other = Layout::of(&network).unwrap().with_widths(&[4, 7, 3]).unwrap();
        assert_eq!(other.tensors(), layout.tensors());
        assert_eq!((layout.widths(), other.widths()), (&[][..], &[4, 7, 3][..]));
        for refused in [&[4, 7][..], &[4, 7, 3, 3], &[0, 7, 3], &[usize::MAX, 7, 3], &[1 << 20, 1 << 20, 3]] {
            assert_eq!(layout.with_widths(refused), None, "{refused:?}");
        }
        assert_eq!(Layout::vector(3).with_widths(&[3]), None);
    }
}
