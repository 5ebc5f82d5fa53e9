//! A network is data: a list of layers with their sizes, interpreted by the trainers.
//!
//! The named models are values of [`Network`], and users can write their own in TOML. A layer's name is the prefix of
//! its tensors' names, spelled as in PyTorch (`layer1.0.conv1`).

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Channels, height and width of one sample at some point in a network; a flat vector is `[n, 1, 1]`.
pub type Shape = [usize; 3];

/// The layers with the input shape and the number of classes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Network {
    /// One sample: channels, height, width.
    pub input: Shape,
    /// Number of classes: the length of the logits.
    pub classes: usize,
    /// The layers, from input to logits.
    pub layers: Vec<Layer>,
}

/// One layer. Layers with parameters have a name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "layer")]
pub enum Layer {
    /// 2-d convolution: zero padding, square stride.
    Conv {
        /// Prefix of the tensors.
        name: String,
        /// Output channels.
        out: usize,
        /// Height and width of the kernel.
        kernel: [usize; 2],
        /// Step between windows, in both directions.
        stride: usize,
        /// Zeros added on every side.
        pad: usize,
        /// Whether a bias is added per channel.
        bias: bool,
    },
    /// Fully connected layer with bias, on a flat input.
    Linear {
        /// Prefix of the tensors.
        name: String,
        /// Output length.
        out: usize,
    },
    /// max(x, 0).
    Relu,
    /// Largest value of each window, no padding; an incomplete window at the edge is dropped.
    MaxPool {
        /// Height and width of the window.
        size: usize,
        /// Step between windows.
        stride: usize,
    },
    /// Mean of each window, no padding.
    AveragePool {
        /// Height and width of the window.
        size: usize,
        /// Step between windows.
        stride: usize,
    },
    /// Mean over height and width; the result is flat.
    GlobalPool,
    /// Batch normalisation per channel: eps 1e-5, running statistics with momentum 0.1.
    BatchNorm {
        /// Prefix of the tensors.
        name: String,
    },
    /// Group normalisation: eps 1e-5.
    GroupNorm {
        /// Prefix of the tensors.
        name: String,
        /// Number of groups; divides the channels.
        groups: usize,
    },
    /// While training, sets a fraction of the values to zero and scales up the others.
    Dropout {
        /// The fraction, from 0 to below 1.
        rate: f64,
    },
    /// Flattens the sample, channel by channel.
    Flatten,
    /// body(x) + shortcut(x); an empty shortcut is x itself.
    Residual {
        /// The main path.
        body: Vec<Layer>,
        /// The shortcut path.
        shortcut: Vec<Layer>,
    },
}

/// Why layers do not fit together.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum NetworkError {
    /// A layer cannot take the output of the previous one.
    #[error("layer {at} ({layer}) cannot take {}x{}x{}: {why}", .shape[0], .shape[1], .shape[2])]
    Misfit {
        /// Position in the list, counted from 1; inside a residual block "3.1".
        at: String,
        /// The layer's kind.
        layer: &'static str,
        /// The layer's input shape.
        shape: Shape,
        /// What would have been right.
        why: String,
    },
    /// The last layer does not output one number per class.
    #[error("the network ends with {}x{}x{}, but {classes} classes need {classes}x1x1", .shape[0], .shape[1], .shape[2])]
    Classes {
        /// The last shape.
        shape: Shape,
        /// Number of classes.
        classes: usize,
    },
    /// A layer that no machine could hold.
    #[error("layer {at} ({layer}) is too large: {numbers} numbers in {what}; at most {LARGEST} are possible")]
    TooLarge {
        /// Position in the list, counted from 1.
        at: String,
        /// The layer's kind.
        layer: &'static str,
        /// What is too large.
        what: &'static str,
        /// Its size, or as much of it as can be counted.
        numbers: u64,
    },
    /// Two layers have the same name.
    #[error("two layers are called {0}; names must differ")]
    SameName(String),
}

/// Greatest number of values of one feature map of one sample, padding included, and of one tensor. Positions are counted
/// in 32 bits.
const LARGEST: u64 = 1 << 31;

impl Layer {
    /// The kind's name, for messages.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Conv { .. } => "conv",
            Self::Linear { .. } => "linear",
            Self::Relu => "relu",
            Self::MaxPool { .. } => "maxpool",
            Self::AveragePool { .. } => "avgpool",
            Self::GlobalPool => "globalpool",
            Self::BatchNorm { .. } => "batchnorm",
            Self::GroupNorm { .. } => "groupnorm",
            Self::Dropout { .. } => "dropout",
            Self::Flatten => "flatten",
            Self::Residual { .. } => "residual",
        }
    }

    /// Fails if the layer's input with its padding, its output or its weights are too large to count.
    fn check_size(&self, [channels, height, width]: Shape, at: &str) -> Result<(), NetworkError> {
        let product = |sides: [usize; 3]| sides.iter().map(|&side| side as u64).fold(1, u64::saturating_mul);
        let (padded, out, weights) = match self {
            Self::Conv { out, kernel, pad, .. } => {
                let sides = [height, width].map(|side| side.saturating_add(pad.saturating_mul(2)));
                let window = product([channels, kernel[0], kernel[1]]);
                (
                    [channels, sides[0], sides[1]],
                    [*out, sides[0], sides[1]],
                    window.saturating_mul(*out as u64),
                )
            }
            Self::Linear { out, .. } => {
                ([channels, height, width], [*out, 1, 1], product([channels, *out, 1]))
            }
            _ => ([channels, height, width], [1, 1, 1], 1),
        };
        let sizes = [("its input", product(padded)), ("its output", product(out)), ("its weights", weights)];
        match sizes.into_iter().find(|(_, numbers)| *numbers > LARGEST) {
            None => Ok(()),
            Some((what, numbers)) => {
                Err(NetworkError::TooLarge { at: at.to_owned(), layer: self.word(), what, numbers })
            }
        }
    }

    /// The output shape for an input of `shape`; `at` is the layer's position, for the error.
    pub fn output(&self, shape: Shape, at: &str) -> Result<Shape, NetworkError> {
        let misfit = |why: String| NetworkError::Misfit { at: at.to_owned(), layer: self.word(), shape, why };
        let [channels, height, width] = shape;
        let windows = |size: [usize; 2], stride: usize, pad: usize| {
            if stride == 0 || size.contains(&0) {
                return Err(misfit("window and stride must be at least 1".into()));
            }
            let (high, wide) = (height + 2 * pad, width + 2 * pad);
            if size[0] > high || size[1] > wide {
                return Err(misfit(format!(
                    "its {}x{} window does not fit into {high}x{wide}",
                    size[0], size[1]
                )));
            }
            Ok(((high - size[0]) / stride + 1, (wide - size[1]) / stride + 1))
        };
        match self {
            Self::Conv { out, kernel, stride, pad, .. } => {
                if *out == 0 {
                    return Err(misfit("it needs at least 1 output channel".into()));
                }
                let (high, wide) = windows(*kernel, *stride, *pad)?;
                Ok([*out, high, wide])
            }
            Self::MaxPool { size, stride } | Self::AveragePool { size, stride } => {
                let (high, wide) = windows([*size; 2], *stride, 0)?;
                Ok([channels, high, wide])
            }
            Self::Linear { out, .. } => match (out, height, width) {
                (0, ..) => Err(misfit("it needs at least 1 output".into())),
                (_, 1, 1) => Ok([*out, 1, 1]),
                _ => Err(misfit("it needs a flat input; put flatten before it".into())),
            },
            Self::GroupNorm { groups, .. } if *groups == 0 || channels % groups != 0 => {
                Err(misfit(format!("{groups} groups do not divide {channels} channels")))
            }
            Self::Dropout { rate } if !(0.0..1.0).contains(rate) => {
                Err(misfit(format!("its rate {rate} is outside 0 to below 1")))
            }
            Self::Relu | Self::BatchNorm { .. } | Self::GroupNorm { .. } | Self::Dropout { .. } => Ok(shape),
            Self::GlobalPool => Ok([channels, 1, 1]),
            Self::Flatten => Ok([channels * height * width, 1, 1]),
            Self::Residual { body, shortcut } => {
                let long = outputs(body, shape, &format!("{at}."))?;
                let short = outputs(shortcut, shape, &format!("{at}.shortcut."))?;
                if long == short {
                    Ok(long)
                } else {
                    Err(misfit(format!(
                        "its body outputs {}x{}x{} and its shortcut {}x{}x{}",
                        long[0], long[1], long[2], short[0], short[1], short[2]
                    )))
                }
            }
        }
    }
}

fn outputs(layers: &[Layer], input: Shape, prefix: &str) -> Result<Shape, NetworkError> {
    layers.iter().enumerate().try_fold(input, |shape, (i, layer)| {
        let at = format!("{prefix}{}", i + 1);
        layer.check_size(shape, &at)?;
        layer.output(shape, &at)
    })
}

impl Network {
    /// Checks that the layers fit together and end with one number per class.
    pub fn check(&self) -> Result<(), NetworkError> {
        let shape = outputs(&self.layers, self.input, "")?;
        if shape != [self.classes, 1, 1] {
            return Err(NetworkError::Classes { shape, classes: self.classes });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conv(out: usize, kernel: usize, stride: usize, pad: usize) -> Layer {
        Layer::Conv { name: "conv1".into(), out, kernel: [kernel; 2], stride, pad, bias: true }
    }

    #[test]
    fn shapes_follow_kernel_stride_and_padding() {
        assert_eq!(conv(6, 5, 1, 0).output([1, 28, 28], "1"), Ok([6, 24, 24]));
        assert_eq!(conv(6, 3, 2, 1).output([3, 32, 32], "1"), Ok([6, 16, 16]));
        assert_eq!(Layer::MaxPool { size: 2, stride: 2 }.output([6, 5, 5], "1"), Ok([6, 2, 2]));
        assert_eq!(Layer::Flatten.output([16, 4, 4], "1"), Ok([256, 1, 1]));
    }

    #[test]
    fn a_misfit_names_the_layer_the_shape_and_what_it_needs() {
        let network = Network {
            input: [1, 28, 28],
            classes: 10,
            layers: vec![conv(6, 5, 1, 0), Layer::Linear { name: "fc".into(), out: 10 }],
        };
        assert_eq!(
            network.check().unwrap_err().to_string(),
            "layer 2 (linear) cannot take 6x24x24: it needs a flat input; put flatten before it"
        );
        let error = conv(6, 5, 1, 0).output([1, 4, 4], "1").unwrap_err().to_string();
        assert_eq!(error, "layer 1 (conv) cannot take 1x4x4: its 5x5 window does not fit into 4x4");
    }

    #[test]
    fn layers_whose_sizes_overflow_are_refused() {
        let network = |layer: Layer| {
            let last = Layer::Linear { name: "fc".into(), out: 10 };
            Network { input: [1, 28, 28], classes: 10, layers: vec![layer, Layer::Flatten, last] }
        };
        for layer in [conv(usize::MAX, 1, 1, 0), conv(1, 1, 1 << 62, usize::MAX / 2), conv(1 << 28, 28, 1, 0)]
        {
            let error = network(layer).check().unwrap_err().to_string();
            assert!(error.starts_with("layer 1 (conv) is too large: "), "{error}");
        }
        // 2^22 channels of 28x28 are too many for the layer that reads them.
        let wide = network(conv(1 << 22, 1, 1, 0)).check().unwrap_err().to_string();
        assert_eq!(
            wide,
            "layer 1 (conv) is too large: 3288334336 numbers in its output; at most 2147483648 are possible"
        );
    }

    #[test]
    fn body_and_shortcut_of_a_residual_block_must_have_the_same_output_shape() {
        let block = Layer::Residual { body: vec![conv(8, 3, 2, 1)], shortcut: vec![] };
        let error = block.output([4, 8, 8], "3").unwrap_err().to_string();
        assert_eq!(
            error,
            "layer 3 (residual) cannot take 4x8x8: its body outputs 8x4x4 and its shortcut 4x8x8"
        );
    }
}
