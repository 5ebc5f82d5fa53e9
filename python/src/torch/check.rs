//! Core's conformance suite on a device, as `fedtvd bench` runs it.

use fedtvd_core::model::{ModelDefinition, Params};
use fedtvd_core::stream::{Purpose, Stream};
use fedtvd_core::train::conformance::{Case, check};
use fedtvd_core::train::{Samples, Trainer, Values};
use fedtvd_nn::models;
use fedtvd_run::backend::{BackendError, Device};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::sync::Arc;

/// Networks with and without batch norm and dropout, and an image net without any.
const LINES: [&str; 4] = [
    "flatten, linear",
    "conv 6 5x5, relu, maxpool 2, conv 16 5x5, relu, maxpool 2, flatten, linear 120, relu, linear",
    "conv 6 5x5, batchnorm, relu, maxpool 2, flatten, linear",
    "conv 4 5x5 stride 3, groupnorm 2, relu, dropout 0.5, flatten, linear",
];

/// The first property of a trainer that does not hold on a device, for each network; None if all hold.
#[pyfunction]
pub(crate) fn conformance(py: Python<'_>, device: &str) -> PyResult<Option<String>> {
    py.detach(|| verdict(device)).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}

fn verdict(name: &str) -> Result<Option<String>, BackendError> {
    let device = Device::named(name)?;
    let mut stream = Stream::at(3, Purpose::Split, 0, 0);
    let values = (0..13 * 784).map(|_| stream.normal() as f32).collect();
    let labels = (0..13).map(|row| row % 10).collect();
    let samples =
        Samples::new([1, 28, 28], 10, Values::Floats(values), labels, 11).expect("13 rows of one shape");
    let samples = Arc::new(samples);
    for lines in LINES {
        let parts: Vec<String> = lines.split(", ").map(str::to_owned).collect();
        let network = models::from_lines(&parts, [1, 28, 28], 10).expect("layers that fit");
        let model = ModelDefinition::from(network);
        let start = Params::initial(Arc::new(model.layout()?), 1);
        device.trainer(&model, &samples)?;
        let trainer =
            || -> Box<dyn Trainer> { device.trainer(&model, &samples).expect("one was made before") };
        let case = Case {
            trainer: &trainer,
            start: &start,
            rows: &[5, 1, 0, 7, 2, 9, 10],
            missing: 13,
            classes: 10,
        };
        if let Err(why) = check(&case) {
            return Ok(Some(format!("{lines}: {why}")));
        }
    }
    Ok(None)
}
