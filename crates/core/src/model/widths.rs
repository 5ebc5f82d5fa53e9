//! Networks that differ in the widths of their layers only.

use crate::model::{Layer, Network};

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
    }
}
