//! A pass as Python gets it: numbers, vectors as arrays, and all that it draws.

use fedtvd_core::model::Layout;
use fedtvd_core::stream::Purpose;
use fedtvd_core::train::{Adam, Optimizer, Pass, Samples, Sgd};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The dictionary that `fedtvd.torch.pass_spec.read` reads.
pub(crate) fn dictionary<'py>(
    py: Python<'py>,
    pass: &Pass<'_>,
    rows: &[u32],
    samples: &Samples,
    layout: &Layout,
) -> PyResult<Bound<'py, PyDict>> {
    let spec = PyDict::new(py);
    spec.set_item("first_epoch", pass.first_epoch)?;
    spec.set_item("batch", pass.batch)?;
    spec.set_item("keep_state", pass.keep_state)?;
    spec.set_item("optimizer", optimizer(py, &pass.optimizer)?)?;
    spec.set_item("clip", pass.clip)?;
    spec.set_item("smoothing", pass.smoothing)?;
    let vector = |name: &str, values: Option<&[f32]>| match values {
        Some(values) => spec.set_item(name, PyArray1::from_slice(py, values)),
        None => Ok(()),
    };
    vector("push", pass.push)?;
    vector("offsets", pass.offsets)?;
    vector("class_weights", pass.class_weights)?;
    vector("shift", pass.norm.map(|norm| norm.shift))?;
    vector("floor", pass.norm.map(|norm| norm.floor))?;
    if let Some(pull) = pass.pull {
        spec.set_item("mu", pull.mu)?;
        vector("anchor", Some(pull.anchor))?;
    }
    if let Some(frozen) = pass.frozen {
        let moving: Vec<(usize, usize)> =
            frozen.moving().iter().map(|range| (range.start, range.end)).collect();
        let buffers = layout.tensors().iter().filter(|tensor| !tensor.role.trainable());
        let still =
            buffers.filter(|tensor| frozen.covers(&tensor.range())).map(|tensor| tensor.name.as_str());
        spec.set_item("moving", moving)?;
        spec.set_item("still", still.collect::<Vec<_>>())?;
    }
    let mut orders = Vec::with_capacity(rows.len() * pass.epochs as usize);
    let (mut draws, mut seeds) = (Vec::new(), Vec::new());
    for epoch in pass.first_epoch..pass.first_epoch + pass.epochs {
        orders.extend(pass.order(epoch, rows));
        // PyTorch draws its own numbers for dropout, from a seed of the epoch's stream.
        seeds.push(pass.stream(Purpose::Dropout, epoch).bits64() >> 1);
        if let Some(augment) = samples.augment() {
            let mut stream = pass.stream(Purpose::Augment, epoch);
            for _ in rows {
                let draw = augment.draw(&mut stream);
                draws.extend([draw.down as u16, draw.right as u16, u16::from(draw.mirrored)]);
            }
        }
    }
    spec.set_item("orders", PyArray1::from_vec(py, orders))?;
    spec.set_item("seeds", seeds)?;
    if let Some(augment) = samples.augment() {
        spec.set_item("draws", PyArray1::from_vec(py, draws))?;
        spec.set_item("crop", augment.crop)?;
    }
    Ok(spec)
}

fn optimizer<'py>(py: Python<'py>, optimizer: &Optimizer) -> PyResult<Bound<'py, PyDict>> {
    let settings = PyDict::new(py);
    settings.set_item("name", optimizer.name())?;
    settings.set_item("lr", optimizer.lr())?;
    match *optimizer {
        Optimizer::Sgd(Sgd { momentum, nesterov, weight_decay, .. }) => {
            settings.set_item("momentum", momentum)?;
            settings.set_item("nesterov", nesterov)?;
            settings.set_item("weight_decay", weight_decay)?;
        }
        Optimizer::Adam(adam) | Optimizer::AdamW(adam) => {
            let Adam { beta1, beta2, eps, weight_decay, .. } = adam;
            settings.set_item("beta1", beta1)?;
            settings.set_item("beta2", beta2)?;
            settings.set_item("eps", eps)?;
            settings.set_item("weight_decay", weight_decay)?;
        }
    }
    Ok(settings)
}
