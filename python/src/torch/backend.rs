//! Devices of PyTorch as a backend.

use crate::torch::trainer::TorchTrainer;
use crate::torch::{failed, said};
use fedtvd_core::model::{Layout, ModelDefinition};
use fedtvd_core::train::{Optimizer, Samples, Trainer, Values};
use fedtvd_run::backend::{Backend, BackendError, Description};
use fedtvd_run::directory::{DeviceFingerprint, Fingerprint};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A device of `fedtvd.torch`, and the data sets that are on it.
#[derive(Debug)]
pub(crate) struct Torch {
    name: String,
    device: Py<PyAny>,
    /// Trainers of the same samples share one copy on the device.
    data: Mutex<Vec<(Weak<Samples>, Py<PyAny>)>>,
}

impl Torch {
    pub(crate) fn new(name: &str, device: Py<PyAny>) -> Self {
        Self { name: name.to_owned(), device, data: Mutex::default() }
    }

    /// The samples on the device.
    fn data(&self, py: Python<'_>, samples: &Arc<Samples>) -> PyResult<Py<PyAny>> {
        {
            let mut data = self.data.lock().unwrap_or_else(PoisonError::into_inner);
            data.retain(|(own, _)| own.strong_count() > 0);
            let same =
                |(own, _): &&(Weak<Samples>, Py<PyAny>)| std::ptr::eq(own.as_ptr(), Arc::as_ptr(samples));
            if let Some((_, found)) = data.iter().find(same) {
                return Ok(found.clone_ref(py));
            }
        }
        let [channels, height, width] = samples.shape();
        let labels = PyArray1::from_slice(py, samples.labels());
        let shape = (channels, height, width);
        let made = match samples.values() {
            Values::Bytes(bytes, table) => {
                let values = PyArray1::from_slice(py, bytes);
                let table = PyArray1::from_slice(py, table.as_flattened());
                self.device.call_method1(py, "data", (shape, samples.classes(), labels, values, table))?
            }
            Values::Floats(floats) => {
                let values = PyArray1::from_slice(py, floats);
                self.device.call_method1(py, "data", (shape, samples.classes(), labels, values, py.None()))?
            }
        };
        let mut data = self.data.lock().unwrap_or_else(PoisonError::into_inner);
        data.push((Arc::downgrade(samples), made.clone_ref(py)));
        Ok(made)
    }

    /// A definition and the tensors of its layout as JSON.
    fn described(model: &ModelDefinition) -> Result<(String, String, Layout), BackendError> {
        let layout = model.layout()?;
        let definition = serde_json::to_string(model).expect("a model is plain data");
        let tensors = serde_json::to_string(layout.tensors()).expect("tensors are plain data");
        Ok((definition, tensors, layout))
    }

    fn description(&self, py: Python<'_>) -> PyResult<Description> {
        let found = self.device.call_method0(py, "describe")?;
        let found = found.bind(py).cast::<PyDict>()?;
        let entry =
            |name: &str| found.get_item(name).map(|entry| entry.unwrap_or_else(|| py.None().into_bound(py)));
        let fingerprint = Fingerprint::of_device(DeviceFingerprint {
            name: entry("name")?.extract()?,
            hardware: entry("hardware")?.extract()?,
            versions: entry("versions")?.extract()?,
            repeatable: entry("repeatable")?.extract()?,
        });
        Ok(Description { fingerprint, workers: entry("workers")?.extract()? })
    }
}

impl Backend for Torch {
    fn describe(&self) -> Result<Description, BackendError> {
        Python::attach(|py| self.description(py).map_err(|error| failed(&self.name, &error, py)))
    }

    fn training_memory(
        &self,
        model: &ModelDefinition,
        batch: usize,
        optimizer: &Optimizer,
    ) -> Result<u128, BackendError> {
        let (definition, tensors, _) = Self::described(model)?;
        Python::attach(|py| {
            let arguments = (definition, tensors, batch, optimizer.vectors());
            let bytes = self.device.call_method1(py, "training_memory", arguments);
            let bytes = bytes.and_then(|bytes| bytes.extract::<u128>(py));
            bytes.map_err(|error| failed(&self.name, &error, py))
        })
    }

    fn trainer(
        &self,
        model: &ModelDefinition,
        samples: &Arc<Samples>,
    ) -> Result<Box<dyn Trainer>, BackendError> {
        let (definition, tensors, layout) = Self::described(model)?;
        if model.input() != samples.shape() || model.classes() < samples.classes() {
            let why = format!(
                "the model takes {:?} and gives {} classes; the data set has {:?} and {}",
                model.input(),
                model.classes(),
                samples.shape(),
                samples.classes()
            );
            return Err(BackendError::Device { device: self.name.clone(), why });
        }
        Python::attach(|py| {
            let made = self
                .data(py, samples)
                .and_then(|data| self.device.call_method1(py, "trainer", (definition, tensors, data)));
            let object = made
                .map_err(|error| BackendError::Device { device: self.name.clone(), why: said(&error, py) })?;
            let trainer = TorchTrainer::new(object, Arc::clone(samples), layout, model.classes());
            Ok(Box::new(trainer) as Box<dyn Trainer>)
        })
    }
}
