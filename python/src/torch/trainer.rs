//! A trainer that calls Python once per pass.

use crate::torch::said;
use crate::torch::spec::dictionary;
use fedtvd_core::model::{Layout, Params};
use fedtvd_core::train::{Evaluation, Frozen, Pass, PassReport, Samples, TrainFailure, Trainer};
use numpy::{PyArray1, PyArrayMethods as _, PyReadonlyArray1};
use pyo3::prelude::*;
use std::sync::Arc;

/// A `fedtvd.torch.trainer.Trainer`.
pub(crate) struct TorchTrainer {
    object: Py<PyAny>,
    samples: Arc<Samples>,
    layout: Layout,
    classes: usize,
}

impl TorchTrainer {
    pub(crate) fn new(object: Py<PyAny>, samples: Arc<Samples>, layout: Layout, classes: usize) -> Self {
        Self { object, samples, layout, classes }
    }

    /// Checks what Python could only answer with an exception about tensors.
    fn check(&self, params: &Params, rows: &[u32]) -> Result<(), TrainFailure> {
        if rows.is_empty() {
            return Err(TrainFailure::NoSamples);
        }
        let count = self.samples.rows();
        if let Some(&row) = rows.iter().find(|row| **row as usize >= count) {
            return Err(TrainFailure::NoSuchRow { row, rows: count });
        }
        same("parameters", params.values.len(), self.layout.len())
    }

    fn check_pass(&self, params: &Params, rows: &[u32], pass: &Pass<'_>) -> Result<(), TrainFailure> {
        if pass.batch == 0 {
            return Err(TrainFailure::EmptyBatch);
        }
        self.check(params, rows)?;
        let trainable = self.layout.trainable();
        let buffers = self.layout.len() - trainable;
        let lengths = [
            ("numbers to pull to", pass.pull.map(|pull| pull.anchor.len()), trainable),
            ("numbers to push", pass.push.map(<[f32]>::len), trainable),
            ("offsets to the logits", pass.offsets.map(<[f32]>::len), self.classes),
            ("class weights", pass.class_weights.map(<[f32]>::len), self.classes),
            ("constants of batch statistics", pass.norm.map(|norm| norm.shift.len()), buffers),
            ("parameters of which some are frozen", pass.frozen.map(Frozen::model_len), self.layout.len()),
            ("least variances of batches", pass.norm.map(|norm| norm.floor.len()), buffers),
        ];
        lengths
            .iter()
            .try_for_each(|(what, given, right)| given.map_or(Ok(()), |given| same(what, given, *right)))
    }
}

fn same(what: &str, given: usize, right: usize) -> Result<(), TrainFailure> {
    if given == right {
        return Ok(());
    }
    Err(TrainFailure::Device(format!("{given} {what} were given where the network has {right}")))
}

/// What a failed call says: a loss that is not finite is a failure of its own.
fn failure(error: &PyErr, py: Python<'_>) -> TrainFailure {
    let value = error.value(py);
    let diverged = value.get_type().name().is_ok_and(|name| name == "Diverged");
    let parts = || -> PyResult<(u32, f64)> {
        Ok((value.getattr("epoch")?.extract()?, value.getattr("loss")?.extract()?))
    };
    match parts() {
        Ok((epoch, loss)) if diverged => TrainFailure::Diverged { epoch, loss },
        _ => TrainFailure::Device(said(error, py)),
    }
}

impl Trainer for TorchTrainer {
    fn pass(
        &mut self,
        params: &mut Params,
        rows: &[u32],
        pass: &Pass<'_>,
    ) -> Result<PassReport, TrainFailure> {
        self.check_pass(params, rows, pass)?;
        Python::attach(|py| {
            let mut work = || -> PyResult<PassReport> {
                let values = PyArray1::from_slice(py, &params.values);
                let spec = dictionary(py, pass, rows, &self.samples, &self.layout)?;
                let answer = self.object.call_method1(py, "run", (values.clone(), spec))?;
                let (steps, losses, statistics): (u64, [f64; 2], Option<PyReadonlyArray1<'_, f64>>) =
                    answer.extract(py)?;
                let statistics = statistics.map(|means| means.as_slice().map(<[f64]>::to_vec)).transpose()?;
                params.values.copy_from_slice(values.readonly().as_slice()?);
                Ok(PassReport { steps, losses, statistics })
            };
            work().map_err(|error| failure(&error, py))
        })
    }

    fn gradient(&mut self, params: &Params, rows: &[u32], pass: &Pass<'_>) -> Result<Vec<f32>, TrainFailure> {
        self.check_pass(params, rows, pass)?;
        Python::attach(|py| {
            let work = || -> PyResult<Vec<f32>> {
                let values = PyArray1::from_slice(py, &params.values);
                let spec = dictionary(py, &Pass { epochs: 1, ..*pass }, rows, &self.samples, &self.layout)?;
                let answer = self.object.call_method1(py, "gradient", (values, spec))?;
                let gradient: PyReadonlyArray1<'_, f32> = answer.extract(py)?;
                Ok(gradient.as_slice()?.to_vec())
            };
            work().map_err(|error| failure(&error, py))
        })
    }

    fn evaluate(
        &mut self,
        params: &Params,
        rows: &[u32],
        offsets: Option<&[f32]>,
    ) -> Result<Evaluation, TrainFailure> {
        self.check(params, rows)?;
        offsets.map_or(Ok(()), |offsets| same("offsets to the logits", offsets.len(), self.classes))?;
        Python::attach(|py| {
            let work = || -> PyResult<Evaluation> {
                let values = PyArray1::from_slice(py, &params.values);
                let (rows, offsets) = (
                    PyArray1::from_slice(py, rows),
                    offsets.map(|offsets| PyArray1::from_slice(py, offsets)),
                );
                let answer = self.object.call_method1(py, "evaluate", (values, rows, offsets))?;
                let (loss, confusion): (f64, PyReadonlyArray1<'_, u64>) = answer.extract(py)?;
                Ok(Evaluation { loss, confusion: confusion.as_slice()?.to_vec() })
            };
            work().map_err(|error| failure(&error, py))
        })
    }

    fn logits(&mut self, params: &Params, rows: &[u32]) -> Result<Vec<f32>, TrainFailure> {
        self.check(params, rows)?;
        Python::attach(|py| {
            let work = || -> PyResult<Vec<f32>> {
                let values = PyArray1::from_slice(py, &params.values);
                let rows = PyArray1::from_slice(py, rows);
                let answer = self.object.call_method1(py, "logits", (values, rows))?;
                let logits: PyReadonlyArray1<'_, f32> = answer.extract(py)?;
                Ok(logits.as_slice()?.to_vec())
            };
            work().map_err(|error| failure(&error, py))
        })
    }
}
