//! Two wider convolutional nets of the federated literature.

use super::{Model, POOL, conv, linear};
use fedtvd_core::model::Layer;

pub(super) const CNN: Model = Model {
    name: "cnn",
    about: "McMahan's CNN: two padded 5x5 convolutions (32, 64), linear 512",
    input: [1, 28, 28],
    classes: 10,
    layers: |classes| {
        vec![
            conv("conv1", 32, 5, 2),
            Layer::Relu,
            POOL,
            conv("conv2", 64, 5, 2),
            Layer::Relu,
            POOL,
            Layer::Flatten,
            linear("fc1", 512),
            Layer::Relu,
            linear("fc2", classes),
        ]
    },
};

pub(super) const CNN_PFL: Model = Model {
    name: "cnn-pfl",
    about: "two 3x3 convolutions (32, 64), one pooling, linear 128, dropout 0.25 and 0.5",
    input: [3, 32, 32],
    classes: 10,
    layers: |classes| {
        vec![
            conv("conv1", 32, 3, 0),
            Layer::Relu,
            conv("conv2", 64, 3, 0),
            Layer::Relu,
            POOL,
            Layer::Dropout { rate: 0.25 },
            Layer::Flatten,
            linear("fc1", 128),
            Layer::Relu,
            Layer::Dropout { rate: 0.5 },
            linear("fc2", classes),
        ]
    },
};
