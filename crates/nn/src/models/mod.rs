//! The named models: values of core's `Network`, with PyTorch's tensor names.

mod cnn;
mod lenet;
mod notation;
mod perceptron;
mod resnet;

pub use notation::{LayersError, from_lines};

use fedtvd_core::model::{Layer, Network, NetworkError, Shape};
use thiserror::Error;

/// A model that has a name.
pub struct Model {
    /// What it is called.
    pub name: &'static str,
    /// One line about it.
    pub about: &'static str,
    /// The input that it was made for.
    pub input: Shape,
    /// The classes that it was made for.
    pub classes: usize,
    layers: fn(usize) -> Vec<Layer>,
}

/// All named models.
pub const ALL: &[Model] = &[
    perceptron::LOGISTIC,
    perceptron::MLP,
    lenet::LENET,
    lenet::LENET5,
    lenet::LENET_BN,
    cnn::CNN,
    cnn::CNN_PFL,
    resnet::RESNET8,
    resnet::RESNET8_GN,
    resnet::RESNET20,
    resnet::RESNET20_GN,
    resnet::RESNET18,
    resnet::RESNET18_GN,
    resnet::RESNET34,
    resnet::RESNET34_GN,
];

/// Why a model cannot be made.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ModelError {
    /// No model has this name.
    #[error("no model is called {name}; there are {known}")]
    Unknown {
        /// The requested name.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// The model does not fit the input.
    #[error("model {name}: {why}")]
    Misfit {
        /// The model.
        name: String,
        /// Where it fails.
        why: NetworkError,
    },
}

/// The named model for samples of shape `input` and `classes` classes.
pub fn named(name: &str, input: Shape, classes: usize) -> Result<Network, ModelError> {
    let model = ALL.iter().find(|model| model.name == name).ok_or_else(|| {
        let known: Vec<&str> = ALL.iter().map(|model| model.name).collect();
        ModelError::Unknown { name: name.to_owned(), known: known.join(", ") }
    })?;
    let network = Network { input, classes, layers: (model.layers)(classes) };
    network.check().map_err(|why| ModelError::Misfit { name: name.to_owned(), why })?;
    Ok(network)
}

fn conv(name: &str, out: usize, kernel: usize, pad: usize) -> Layer {
    Layer::Conv { name: name.to_owned(), out, kernel: [kernel; 2], stride: 1, pad, bias: true }
}

fn linear(name: &str, out: usize) -> Layer {
    Layer::Linear { name: name.to_owned(), out }
}

const POOL: Layer = Layer::MaxPool { size: 2, stride: 2 };

#[cfg(test)]
mod tests {
    use super::*;
    use fedtvd_core::model::Layout;

    #[test]
    fn parameter_counts_are_the_golden_ones() {
        let golden: serde_json::Value =
            serde_json::from_str(include_str!("../../tests/golden/model_param_counts.json")).unwrap();
        let resnets = &golden["resnets"];
        for (name, right) in [
            ("cnn", &golden["mcmahan_cnn_28x28x1"]),
            ("lenet", &golden["fedeasy_Net_lenet_like_28x28x1_valid_conv"]),
            ("lenet5", &golden["lenet5_pad2_28x28x1"]),
            ("resnet18", &resnets["resnet18_10cls_cifar3x3"]["trainable"]),
            ("resnet34", &resnets["resnet34_100cls_cifar3x3"]["trainable"]),
        ] {
            let model = ALL.iter().find(|model| model.name == name).unwrap();
            let layout = Layout::of(&named(name, model.input, model.classes).unwrap()).unwrap();
            assert_eq!(Some(layout.trainable() as u64), right.as_u64(), "{name}");
        }
    }

    #[test]
    fn parameter_counts_are_the_published_ones() {
        // By hand from the layers' sizes; PyTorch's modules have the same.
        for (name, trainable, buffers) in [
            ("logistic", 7_850, 0),
            ("mlp", 199_210, 0),
            ("lenet", 44_426, 0),
            ("lenet5", 61_706, 0),
            ("lenet-bn", 44_426 + 2 * 22, 2 * 22),
            ("cnn", 1_663_370, 0),
            ("cnn-pfl", 1_626_442, 0),
            ("resnet8", 78_042, 2 * 336),
            ("resnet18", 11_173_962, 9_600),
            ("resnet34", 21_328_292, 17_024),
            ("resnet18-gn", 11_173_962, 0),
        ] {
            let model = ALL.iter().find(|model| model.name == name).unwrap();
            let layout = Layout::of(&named(name, model.input, model.classes).unwrap()).unwrap();
            assert_eq!(
                (layout.trainable(), layout.len() - layout.trainable()),
                (trainable, buffers),
                "{name}"
            );
        }
    }

    #[test]
    fn a_model_takes_any_input_and_any_number_of_classes_that_fit() {
        for model in ALL {
            let network = named(model.name, [3, 40, 36], 7).unwrap();
            assert_eq!((network.input, network.classes), ([3, 40, 36], 7));
        }
        let error = named("lenet", [1, 8, 8], 10).unwrap_err().to_string();
        assert_eq!(
            error,
            "model lenet: layer 4 (conv) cannot take 6x2x2: its 5x5 window does not fit into 2x2"
        );
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let error = named("lenett", [1, 28, 28], 10).unwrap_err().to_string();
        assert!(error.starts_with("no model is called lenett; there are logistic, mlp, lenet"), "{error}");
    }
}
