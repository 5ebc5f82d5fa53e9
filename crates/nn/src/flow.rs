//! From a network to a list of operations: which reads what, and which are fused.
//!
//! 1. `flow` lists operations and the feature maps between them, residual blocks unrolled.
//! 2. `merge` fuses a ReLU into the layer before it, and an addition into the norm before it.
//!
//! `bind` then makes the layers.

use fedtvd_core::model::{Layer as Kind, Network, NetworkError, Shape};

/// An operation on feature maps, which are numbered.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    pub(crate) input: usize,
    pub(crate) output: usize,
    /// A second input, added to the result.
    pub(crate) added: Option<usize>,
    /// Whether a ReLU is fused into it.
    pub(crate) relu: bool,
    /// Whether its own backward pass includes that ReLU's; otherwise the next layer's does.
    pub(crate) masks: bool,
    /// Whether the input comes from a ReLU whose backward pass is left to this node.
    pub(crate) masks_input: bool,
}

/// Operations in order, and the shape of every map; map 0 is the input.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) nodes: Vec<Node>,
    pub(crate) shapes: Vec<Shape>,
    pub(crate) end: usize,
}

impl Flow {
    /// The operations of a network, merged.
    pub(crate) fn of(network: &Network) -> Result<Self, NetworkError> {
        network.check()?;
        let mut flow = Self { nodes: vec![], shapes: vec![network.input], end: 0 };
        flow.end = flow.extend(&network.layers, 0)?;
        flow.merge();
        Ok(flow)
    }

    fn extend(&mut self, layers: &[Kind], mut at: usize) -> Result<usize, NetworkError> {
        for layer in layers {
            at = match layer {
                Kind::Residual { body, shortcut } => {
                    // The shortcut first: the body's last norm can then add it.
                    let short = self.extend(shortcut, at)?;
                    let long = self.extend(body, at)?;
                    let shape = self.shapes[long];
                    self.push(layer.clone(), long, Some(short), shape)
                }
                _ => {
                    let shape = layer.output(self.shapes[at], "")?;
                    self.push(layer.clone(), at, None, shape)
                }
            };
        }
        Ok(at)
    }

    fn push(&mut self, kind: Kind, input: usize, added: Option<usize>, shape: Shape) -> usize {
        let output = self.shapes.len();
        self.shapes.push(shape);
        let node = Node { kind, input, output, added, relu: false, masks: false, masks_input: false };
        self.nodes.push(node);
        output
    }

    /// How many nodes read a map; the loss reads the last one.
    fn readers(&self, map: usize) -> usize {
        let reads = |node: &Node| usize::from(node.input == map) + usize::from(node.added == Some(map));
        self.nodes.iter().map(reads).sum::<usize>() + usize::from(self.end == map)
    }

    fn merge(&mut self) {
        let mut at = 1;
        while at < self.nodes.len() {
            let (before, node) = (&self.nodes[at - 1], &self.nodes[at]);
            let alone = before.output == node.input && self.readers(node.input) == 1;
            let normed = matches!(before.kind, Kind::BatchNorm { .. } | Kind::GroupNorm { .. });
            let free = !before.relu && before.added.is_none();
            let (output, added) = (node.output, node.added);
            // A norm's input and what it adds have one gradient buffer each.
            let apart = added != Some(node.input) && added != Some(before.input);
            match node.kind {
                Kind::Residual { .. } if alone && normed && free && apart => {
                    self.nodes[at - 1].added = added;
                }
                Kind::Relu if alone && ends_with_relu(before) => {
                    self.nodes[at - 1].relu = true;
                    self.nodes[at - 1].masks = true;
                }
                Kind::MaxPool { .. } if alone && before.relu && !normed && !is_sum(before) => {
                    self.nodes[at - 1].masks = false;
                    self.nodes[at].masks_input = true;
                    at += 1;
                    continue;
                }
                _ => {
                    at += 1;
                    continue;
                }
            }
            self.nodes[at - 1].output = output;
            self.nodes.remove(at);
        }
    }
}

/// Whether a ReLU can be fused into a node.
fn ends_with_relu(node: &Node) -> bool {
    !node.relu
        && matches!(
            node.kind,
            Kind::Conv { .. }
                | Kind::Linear { .. }
                | Kind::BatchNorm { .. }
                | Kind::GroupNorm { .. }
                | Kind::Residual { .. }
        )
}

fn is_sum(node: &Node) -> bool {
    matches!(node.kind, Kind::Residual { .. })
}
