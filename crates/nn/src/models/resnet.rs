//! ResNets for small images: a 3x3 stem without pooling, basic blocks, global pooling (He et al., 2016).

use super::{Model, linear};
use fedtvd_core::model::Layer;

const THIN: &[usize] = &[16, 32, 64];
const WIDE: &[usize] = &[64, 128, 256, 512];

const fn model(
    name: &'static str,
    about: &'static str,
    classes: usize,
    layers: fn(usize) -> Vec<Layer>,
) -> Model {
    Model { name, about, input: [3, 32, 32], classes, layers }
}

pub(super) const RESNET8: Model =
    model("resnet8", "widths 16 to 64, one block each", 10, |c| resnet(THIN, &[1, 1, 1], Norm::Batch, c));
pub(super) const RESNET8_GN: Model =
    model("resnet8-gn", "resnet8 with group norm", 10, |c| resnet(THIN, &[1, 1, 1], Norm::Group, c));
pub(super) const RESNET20: Model =
    model("resnet20", "widths 16 to 64, three blocks each", 10, |c| resnet(THIN, &[3, 3, 3], Norm::Batch, c));
pub(super) const RESNET20_GN: Model =
    model("resnet20-gn", "resnet20 with group norm", 10, |c| resnet(THIN, &[3, 3, 3], Norm::Group, c));
pub(super) const RESNET18: Model = model("resnet18", "widths 64 to 512, two blocks each", 10, |c| {
    resnet(WIDE, &[2, 2, 2, 2], Norm::Batch, c)
});
pub(super) const RESNET18_GN: Model =
    model("resnet18-gn", "resnet18 with group norm", 10, |c| resnet(WIDE, &[2, 2, 2, 2], Norm::Group, c));
pub(super) const RESNET34: Model = model("resnet34", "widths 64 to 512, 3, 4, 6 and 3 blocks", 100, |c| {
    resnet(WIDE, &[3, 4, 6, 3], Norm::Batch, c)
});
pub(super) const RESNET34_GN: Model =
    model("resnet34-gn", "resnet34 with group norm", 100, |c| resnet(WIDE, &[3, 4, 6, 3], Norm::Group, c));

#[derive(Clone, Copy)]
enum Norm {
    Batch,
    /// Two groups.
    Group,
}

fn resnet(widths: &[usize], blocks: &[usize], norm: Norm, classes: usize) -> Vec<Layer> {
    let mut layers = vec![conv("conv1", widths[0], 3, 1), norm.layer("bn1"), Layer::Relu];
    let mut width = widths[0];
    for (stage, (&out, &count)) in widths.iter().zip(blocks).enumerate() {
        for number in 0..count {
            let stride = if stage > 0 && number == 0 { 2 } else { 1 };
            let prefix = format!("layer{}.{number}", stage + 1);
            layers.extend([block(&prefix, width, out, stride, norm), Layer::Relu]);
            width = out;
        }
    }
    layers.extend([Layer::GlobalPool, linear("fc", classes)]);
    layers
}

fn block(prefix: &str, width: usize, out: usize, stride: usize, norm: Norm) -> Layer {
    let name = |part: &str| format!("{prefix}.{part}");
    let shortcut = match stride != 1 || width != out {
        true => vec![conv(&name("downsample.0"), out, 1, stride), norm.layer(&name("downsample.1"))],
        false => vec![],
    };
    let body = vec![
        conv(&name("conv1"), out, 3, stride),
        norm.layer(&name("bn1")),
        Layer::Relu,
        conv(&name("conv2"), out, 3, 1),
        norm.layer(&name("bn2")),
    ];
    Layer::Residual { body, shortcut }
}

/// Without bias, and padded so that stride 1 keeps the size.
fn conv(name: &str, out: usize, kernel: usize, stride: usize) -> Layer {
    let pad = kernel / 2;
    Layer::Conv { name: name.to_owned(), out, kernel: [kernel; 2], stride, pad, bias: false }
}

impl Norm {
    fn layer(self, name: &str) -> Layer {
        match self {
            Self::Batch => Layer::BatchNorm { name: name.to_owned() },
            Self::Group => Layer::GroupNorm { name: name.to_owned(), groups: 2 },
        }
    }
}
