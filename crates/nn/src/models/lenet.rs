//! LeNets: two 5x5 convolutions with pooling, three linear layers.

use super::{Model, POOL, conv, linear};
use fedtvd_core::model::Layer;

pub(super) const LENET: Model = Model {
    name: "lenet",
    about: "two 5x5 convolutions without padding, three linear layers",
    input: [1, 28, 28],
    classes: 10,
    layers: |classes| lenet(0, false, classes),
};

pub(super) const LENET5: Model = Model {
    name: "lenet5",
    about: "lenet with the first convolution padded by 2",
    input: [1, 28, 28],
    classes: 10,
    layers: |classes| lenet(2, false, classes),
};

pub(super) const LENET_BN: Model = Model {
    name: "lenet-bn",
    about: "lenet with batch norm after each convolution",
    input: [1, 28, 28],
    classes: 10,
    layers: |classes| lenet(0, true, classes),
};

fn lenet(pad: usize, normed: bool, classes: usize) -> Vec<Layer> {
    let norm = |name: &str| normed.then(|| Layer::BatchNorm { name: name.to_owned() });
    let mut layers = vec![conv("conv1", 6, 5, pad)];
    layers.extend(norm("bn1"));
    layers.extend([Layer::Relu, POOL, conv("conv2", 16, 5, 0)]);
    layers.extend(norm("bn2"));
    layers.extend([
        Layer::Relu,
        POOL,
        Layer::Flatten,
        linear("fc1", 120),
        Layer::Relu,
        linear("fc2", 84),
        Layer::Relu,
        linear("fc3", classes),
    ]);
    layers
}
