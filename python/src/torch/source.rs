//! A module of the user's own: what it is, and its initial values.

use crate::torch::said;
use fedtvd_core::model::{OtherModel, Shape};
use fedtvd_run::backend::ModelSource;
use numpy::{PyReadonlyArray1, PyUntypedArrayMethods as _};
use pyo3::prelude::*;

/// The functions that describe and initialise it.
pub(crate) struct Module {
    name: String,
    define: Py<PyAny>,
    initial: Py<PyAny>,
}

impl Module {
    pub(crate) fn new(name: &str, define: Py<PyAny>, initial: Py<PyAny>) -> Self {
        Self { name: name.to_owned(), define, initial }
    }
}

impl ModelSource for Module {
    fn define(&self, input: Shape, classes: usize) -> Result<OtherModel, String> {
        let [channels, height, width] = input;
        let text = Python::attach(|py| {
            let shape = (channels, height, width);
            let found = self.define.call1(py, (self.name.as_str(), shape, classes));
            found.and_then(|text| text.extract::<String>(py)).map_err(|error| said(&error, py))
        })?;
        serde_json::from_str(&text).map_err(|error| format!("its definition cannot be read: {error}"))
    }

    fn initial(&self, model: &OtherModel, seed: u64) -> Result<Vec<f32>, String> {
        let definition = serde_json::to_string(model).expect("a model is plain data");
        Python::attach(|py| {
            let found = self.initial.call1(py, (self.name.as_str(), definition, seed));
            let values = found.map_err(|error| said(&error, py))?;
            let values: PyReadonlyArray1<'_, f32> =
                values.extract(py).map_err(|_| "its initial values are no float32 array".to_owned())?;
            let length = values.len();
            values
                .as_slice()
                .map(<[f32]>::to_vec)
                .map_err(|error| format!("{length} initial values: {error}"))
        })
    }
}
