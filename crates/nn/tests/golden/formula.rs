//! Initial weights and samples by the formula that the Python programs of this folder evaluate, too.

use fedtvd_core::model::{LayerKind, Layout, Params, Role, Shape};
use fedtvd_core::train::{Samples, Values};
use std::sync::Arc;

/// frac(43758.5453 sin(k + 1)).
pub(crate) fn unit(k: usize) -> f64 {
    let x = (k as f64 + 1.0).sin() * 43758.5453;
    x - x.floor()
}

/// Samples of the formula.
pub(crate) fn samples(
    shape: Shape,
    classes: usize,
    rows: usize,
    label: impl Fn(usize) -> usize,
) -> Arc<Samples> {
    let size: usize = shape.iter().product();
    let values = (0..rows * size).map(|i| (2.0 * unit(7 + i) - 1.0) as f32).collect();
    let labels = (0..rows).map(|row| label(row) as u32).collect();
    Arc::new(Samples::new(shape, classes, Values::Floats(values), labels, rows).unwrap())
}

/// The formula's weights, PyTorch's bounds.
pub(crate) fn initial(layout: &Arc<Layout>) -> Params {
    let mut params = Params::initial(Arc::clone(layout), 0);
    let (mut number, mut bound) = (0, 0.0);
    for tensor in layout.tensors().iter().filter(|t| matches!(t.kind, LayerKind::Conv | LayerKind::Linear)) {
        if tensor.role == Role::Weight {
            bound = 1.0 / (tensor.shape[1..].iter().product::<usize>() as f64).sqrt();
        }
        for (i, value) in params.values[tensor.range()].iter_mut().enumerate() {
            *value = ((2.0 * unit(1_000_003 * number + i) - 1.0) * bound) as f32;
        }
        number += 1;
    }
    params
}
