//! Logistic regression, the multilayer perceptron and the two LeNets.

use super::Model;
use fedtvd_core::network::Layer;

pub(super) fn conv(name: &str, out: usize, kernel: usize, pad: usize) -> Layer {
    Layer::Conv { name: name.to_owned(), out, kernel: [kernel; 2], stride: 1, pad, bias: true }
}

pub(super) fn linear(name: &str, out: usize) -> Layer {
    Layer::Linear { name: name.to_owned(), out }
}

pub(super) const POOL: Layer = Layer::MaxPool { size: 2, stride: 2 };

pub(super) const LOGISTIC: Model = Model {
    name: "logistic",
    about: "multinomial logistic regression",
    input: [1, 28, 28],
    classes: 10,
    build: |classes| vec![Layer::Flatten, linear("fc", classes)],
};

pub(super) const MLP: Model = Model {
    name: "mlp",
    about: "two hidden layers of 200",
    input: [1, 28, 28],
    classes: 10,
    build: |classes| {
        vec![
            Layer::Flatten,
            linear("fc1", 200),
            Layer::Relu,
            linear("fc2", 200),
            Layer::Relu,
            linear("fc3", classes),
        ]
    },
};

pub(super) const LENET: Model = Model {
    name: "lenet",
    about: "two 5x5 convolutions without padding, three linear layers",
    input: [1, 28, 28],
    classes: 10,
    build: |classes| lenet(0, classes),
};

pub(super) const LENET5: Model = Model {
    name: "lenet5",
    about: "lenet with the first convolution padded by 2",
    input: [1, 28, 28],
    classes: 10,
    build: |classes| lenet(2, classes),
};

fn lenet(pad: usize, classes: usize) -> Vec<Layer> {
    vec![
        conv("conv1", 6, 5, pad),
        Layer::Relu,
        POOL,
        conv("conv2", 16, 5, 0),
        Layer::Relu,
        POOL,
        Layer::Flatten,
        linear("fc1", 120),
        Layer::Relu,
        linear("fc2", 84),
        Layer::Relu,
        linear("fc3", classes),
    ]
}
