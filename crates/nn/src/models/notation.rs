//! A network in text, one short line per layer, from input to logits.
//!
//! ```text
//! conv 6 5x5             6 channels, 5x5; also: conv 16 3x3 stride 2 pad 1 nobias
//! linear 120             the last one may leave out its length: linear
//! relu   flatten   globalpool   batchnorm
//! maxpool 2              also: maxpool 3 stride 2        avgpool 2
//! groupnorm 2            groups
//! dropout 0.25           rate
//! residual {             the layers of the block follow
//! } shortcut {           the layers of its shortcut follow; optional
//! }
//! ```
//!
//! Convolutions, linear layers and norms are called conv1, conv2, …, fc1, fc2, …, norm1, norm2, … in order.

use fedtvd_core::model::{Layer, Layout, Network, NetworkError, Shape};
use thiserror::Error;

/// What is wrong with a line, or with the network that the lines make.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum LayersError {
    /// A line that is not a layer, or does not fit.
    #[error("line {line} ({text}), where the shape is {}x{}x{}: {why}", .shape[0], .shape[1], .shape[2])]
    Line {
        /// Counted from 1.
        line: usize,
        /// Its text.
        text: String,
        /// The shape that reaches it.
        shape: Shape,
        /// What was expected.
        why: String,
    },
    /// A block without an end.
    #[error("line {line} opens a residual block that no }} closes")]
    Open {
        /// Where it opens, counted from 1.
        line: usize,
    },
    /// All lines fit, but the last shape is wrong.
    #[error(transparent)]
    Network(#[from] NetworkError),
}

/// The network that the lines describe, for samples of shape `input` and `classes` classes.
pub fn from_lines(lines: &[String], input: Shape, classes: usize) -> Result<Network, LayersError> {
    let mut reader = Reader { lines, next: 0, classes, convs: 0, linears: 0, norms: 0 };
    let (layers, _) = reader.layers(input, None)?;
    let network = Network { input, classes, layers };
    Layout::of(&network)?;
    Ok(network)
}

struct Reader<'a> {
    lines: &'a [String],
    next: usize,
    classes: usize,
    convs: usize,
    linears: usize,
    norms: usize,
}

/// How a list of layers ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Lines,
    Brace,
    Shortcut,
}

impl Reader<'_> {
    /// Layers up to the end of the lines, or of the block opened at line `opened`.
    fn layers(&mut self, mut shape: Shape, opened: Option<usize>) -> Result<(Vec<Layer>, End), LayersError> {
        let mut layers = Vec::new();
        while let Some(text) = self.lines.get(self.next) {
            let line = self.next + 1;
            self.next += 1;
            let wrong = |why: String| LayersError::Line { line, text: text.trim().to_owned(), shape, why };
            let words: Vec<&str> = text.split_whitespace().collect();
            let layer = match words.as_slice() {
                [] => continue,
                ["}", "shortcut", "{"] if opened.is_some() => return Ok((layers, End::Shortcut)),
                ["}"] if opened.is_some() => return Ok((layers, End::Brace)),
                ["}", ..] => return Err(wrong("no residual block is open here".into())),
                ["residual", "{"] => self.residual(shape, line)?,
                ["residual", ..] => return Err(wrong("a residual block opens with residual {".into())),
                _ => self.layer(&words).map_err(wrong)?,
            };
            shape = layer.output(shape, "").map_err(|error| match error {
                NetworkError::Misfit { why, .. } => wrong(why),
                other => LayersError::Network(other),
            })?;
            layers.push(layer);
        }
        match opened {
            Some(line) => Err(LayersError::Open { line }),
            None => Ok((layers, End::Lines)),
        }
    }

    fn residual(&mut self, shape: Shape, line: usize) -> Result<Layer, LayersError> {
        let (body, end) = self.layers(shape, Some(line))?;
        let shortcut = match end {
            End::Shortcut => self.layers(shape, Some(line))?.0,
            _ => vec![],
        };
        Ok(Layer::Residual { body, shortcut })
    }

    fn layer(&mut self, words: &[&str]) -> Result<Layer, String> {
        let mut words = words.iter().copied();
        let kind = words.next().unwrap_or_default();
        let mut first = || words.next();
        let layer = match kind {
            "conv" => {
                let out = number(first(), "conv needs its output channels, as in conv 6 5x5")?;
                let kernel = window(first())?;
                let (mut stride, mut pad, mut bias) = (1, 0, true);
                while let Some(word) = words.next() {
                    match word {
                        "stride" => stride = number(words.next(), "stride needs a number")?,
                        "pad" => pad = number(words.next(), "pad needs a number")?,
                        "nobias" => bias = false,
                        _ => return Err(format!("{word} is not one of stride, pad, nobias")),
                    }
                }
                self.convs += 1;
                Layer::Conv { name: format!("conv{}", self.convs), out, kernel, stride, pad, bias }
            }
            "linear" => {
                let out = match first() {
                    Some(word) => number(Some(word), "linear needs its length as a number")?,
                    None => self.classes,
                };
                self.linears += 1;
                Layer::Linear { name: format!("fc{}", self.linears), out }
            }
            "maxpool" | "avgpool" => {
                let size = number(first(), "pooling needs the size of its window, as in maxpool 2")?;
                let stride = match words.next() {
                    None => size,
                    Some("stride") => number(words.next(), "stride needs a number")?,
                    Some(word) => return Err(format!("{word} is not stride")),
                };
                match kind {
                    "maxpool" => Layer::MaxPool { size, stride },
                    _ => Layer::AveragePool { size, stride },
                }
            }
            "relu" => Layer::Relu,
            "flatten" => Layer::Flatten,
            "globalpool" => Layer::GlobalPool,
            "batchnorm" => Layer::BatchNorm { name: self.norm() },
            "groupnorm" => {
                let groups = number(first(), "groupnorm needs its number of groups, as in groupnorm 2")?;
                Layer::GroupNorm { name: self.norm(), groups }
            }
            "dropout" => {
                let rate = first().and_then(|word| word.parse().ok());
                Layer::Dropout { rate: rate.ok_or("dropout needs its rate, as in dropout 0.25")? }
            }
            _ => {
                return Err(format!(
                    "{kind} is not one of conv, linear, relu, maxpool, avgpool, globalpool, batchnorm, groupnorm, \
                     dropout, flatten, residual {{"
                ));
            }
        };
        match words.next() {
            Some(word) => Err(format!("unexpected {word} at the end")),
            None => Ok(layer),
        }
    }

    fn norm(&mut self) -> String {
        self.norms += 1;
        format!("norm{}", self.norms)
    }
}

fn number(word: Option<&str>, why: &str) -> Result<usize, String> {
    // Beyond this no layer fits into memory, and sizes would overflow.
    let parsed = word.and_then(|word| word.parse().ok()).filter(|number| *number <= 1 << 20);
    parsed.ok_or_else(|| why.to_owned())
}

fn window(word: Option<&str>) -> Result<[usize; 2], String> {
    let why = "conv needs its window, as in conv 6 5x5";
    let (high, wide) = word.and_then(|word| word.split_once('x')).ok_or(why)?;
    Ok([number(Some(high), why)?, number(Some(wide), why)?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::named;

    fn read(text: &str, input: Shape, classes: usize) -> Result<Network, LayersError> {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        from_lines(&lines, input, classes)
    }

    const LENET: &str = "conv 6 5x5\nrelu\nmaxpool 2\nconv 16 5x5\nrelu\nmaxpool 2\nflatten\nlinear 120\nrelu\n\
                         linear 84\nrelu\nlinear";

    #[test]
    fn lenet_in_lines_is_lenet_by_name() {
        assert_eq!(read(LENET, [1, 28, 28], 10).unwrap(), named("lenet", [1, 28, 28], 10).unwrap());
    }

    #[test]
    fn a_block_has_a_body_and_a_shortcut() {
        let text = "residual {\n conv 8 3x3 stride 2 pad 1 nobias\n groupnorm 2\n} shortcut {\n conv 8 1x1 stride 2\n}\n\
                    residual {\n relu\n}\nglobalpool\nlinear";
        let network = read(text, [4, 6, 6], 3).unwrap();
        assert_eq!(network.layers.len(), 4);
        let Layer::Residual { body, shortcut } = &network.layers[0] else { panic!("{network:?}") };
        assert_eq!((body.len(), shortcut.len()), (2, 1));
        assert_eq!(network.layers[1], Layer::Residual { body: vec![Layer::Relu], shortcut: vec![] });
    }

    #[test]
    fn an_error_names_the_line_and_the_shape_there() {
        let error = |text: &str| read(text, [1, 28, 28], 10).unwrap_err().to_string();
        assert_eq!(
            error("conv 6 5x5\nlinear 10"),
            "line 2 (linear 10), where the shape is 6x24x24: it needs a flat input; put flatten before it"
        );
        assert_eq!(
            error("conv 6 5x5\n\nconv 6 5"),
            "line 3 (conv 6 5), where the shape is 6x24x24: conv needs its window, as in conv 6 5x5"
        );
        assert!(
            error("tanh").starts_with("line 1 (tanh), where the shape is 1x28x28: tanh is not one of conv")
        );
        assert_eq!(error("relu 3"), "line 1 (relu 3), where the shape is 1x28x28: unexpected 3 at the end");
        assert_eq!(error("relu\nresidual {\nrelu"), "line 2 opens a residual block that no } closes");
        assert_eq!(
            error("flatten\n}"),
            "line 2 (}), where the shape is 784x1x1: no residual block is open here"
        );
        assert_eq!(
            error("residual {\nconv 6 5x5\n}"),
            "line 1 (residual {), where the shape is 1x28x28: its body outputs 6x24x24 and its shortcut 1x28x28"
        );
        assert_eq!(
            error("residual"),
            "line 1 (residual), where the shape is 1x28x28: a residual block opens with residual {"
        );
        assert_eq!(error("flatten\nlinear 3"), "the network ends with 3x1x1, but 10 classes need 10x1x1");
        assert!(error("conv 99999999999 1x1").contains("conv needs its output channels"));
    }
}
