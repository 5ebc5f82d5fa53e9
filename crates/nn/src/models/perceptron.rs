//! Logistic regression and the multilayer perceptron of McMahan et al. (2017).

use super::{Model, linear};
use fedtvd_core::model::Layer;

pub(super) const LOGISTIC: Model = Model {
    name: "logistic",
    about: "multinomial logistic regression",
    input: [1, 28, 28],
    classes: 10,
    layers: |classes| vec![Layer::Flatten, linear("fc", classes)],
};

pub(super) const MLP: Model = Model {
    name: "mlp",
    about: "two hidden layers of 200",
    input: [1, 28, 28],
    classes: 10,
    layers: |classes| {
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
