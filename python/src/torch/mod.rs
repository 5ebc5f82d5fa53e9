//! The PyTorch backend: `backend.rs` makes trainers, `trainer.rs` calls Python once per pass, `spec.rs` is a pass as Python gets it,
//! `source.rs` a module of the user's own,
//! `check.rs` the suite that every trainer must pass. What Python does is in `fedtvd/torch/`.

mod backend;
mod check;
mod source;
mod spec;
mod trainer;

pub(crate) use check::conformance;
use fedtvd_run::backend::{Backend, BackendError};
use pyo3::prelude::*;
use std::sync::Arc;

/// Makes devices known: `open(name)` gives a device of `fedtvd.torch`, or None if the name is not one of PyTorch's.
#[pyfunction]
pub(crate) fn register_devices(names: Vec<String>, open: Py<PyAny>) {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    fedtvd_run::backend::register(&names, move |name| {
        Python::attach(|py| match open.call1(py, (name,)) {
            Ok(device) if device.is_none(py) => None,
            Ok(device) => Some(Ok(Arc::new(backend::Torch::new(name, device)) as Arc<dyn Backend>)),
            Err(error) => Some(Err(failed(name, &error, py))),
        })
    });
}

/// Makes a model known: `define(name, shape, classes)` gives its definition as JSON, `initial(name, definition, seed)` its values.
#[pyfunction]
pub(crate) fn register_module(name: &str, define: Py<PyAny>, initial: Py<PyAny>) -> PyResult<()> {
    let source = Arc::new(source::Module::new(name, define, initial));
    fedtvd_run::backend::register_model(name, source)
        .map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))
}

/// What Python says went wrong, without its stack.
fn failed(device: &str, error: &PyErr, py: Python<'_>) -> BackendError {
    BackendError::Device { device: device.to_owned(), why: said(error, py) }
}

fn said(error: &PyErr, py: Python<'_>) -> String {
    let text = error.value(py).to_string();
    if text.is_empty() { error.to_string() } else { text }
}
