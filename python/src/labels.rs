//! Label statistics and splits on NumPy arrays.

use fedtvd_core::labels::{self, Reference};
use fedtvd_core::train::{Samples, Values};
use fedtvd_data::split::{Deck, Terms};
use fedtvd_run::configuration::{Config, Experiment};
use numpy::{IntoPyArray as _, PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The total variation distance of each client's labels to the reference, or to the uniform distribution.
#[pyfunction]
pub(crate) fn tvd<'py>(
    py: Python<'py>,
    counts: PyReadonlyArray2<'py, u64>,
    reference: Option<Vec<f64>>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    distances(py, &counts, reference, labels::tvd)
}

/// The same by the formula of the paper's authors' code.
#[pyfunction]
pub(crate) fn released_distance<'py>(
    py: Python<'py>,
    counts: PyReadonlyArray2<'py, u64>,
    reference: Option<Vec<f64>>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    distances(py, &counts, reference, labels::released_distance)
}

fn distances<'py>(
    py: Python<'py>,
    counts: &PyReadonlyArray2<'py, u64>,
    reference: Option<Vec<f64>>,
    distance: fn(&[u64], &Reference) -> f64,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let counts = counts.as_array();
    let reference = match reference {
        Some(shares) => Reference::given(shares).map_err(refused)?,
        None => Reference::uniform(counts.ncols()),
    };
    let all: Vec<f64> = counts.rows().into_iter().map(|row| distance(&row.to_vec(), &reference)).collect();
    Ok(all.into_pyarray(py))
}

/// The rows of each client.
type Clients<'py> = Vec<Bound<'py, PyArray1<i64>>>;

/// The rows of each client under the `split.…` settings, each `key=value`, and notes on the split.
#[pyfunction]
pub(crate) fn split<'py>(
    py: Python<'py>,
    labels: PyReadonlyArray1<'py, u32>,
    classes: usize,
    settings: Vec<String>,
) -> PyResult<(Clients<'py>, Vec<String>)> {
    let labels = labels.as_array().to_vec();
    let dealt = py.detach(|| dealt(labels, classes, &settings))?;
    let rows = |rows: Vec<u32>| rows.into_iter().map(i64::from).collect::<Vec<i64>>().into_pyarray(py);
    Ok((dealt.0.into_iter().map(rows).collect(), dealt.1))
}

fn dealt(labels: Vec<u32>, classes: usize, settings: &[String]) -> PyResult<(Vec<Vec<u32>>, Vec<String>)> {
    let mut config = Config::default();
    settings.iter().try_for_each(|setting| config.set(setting)).map_err(refused)?;
    let experiment = Experiment::of(&config).map_err(refused)?;
    let rows = labels.len();
    // A split sees labels only.
    let values = Values::Bytes(vec![0; rows], Vec::new());
    let samples = Samples::new([1, 1, 1], classes, values, labels, rows).map_err(refused)?;
    let deck = Deck::new(&samples, None);
    let reference = experiment.reference.resolve(classes).map_err(refused)?;
    let terms =
        Terms { set: "labels", seed: experiment.split_seed, holdout: 0.0, reference: reference.as_ref() };
    let dealt = experiment.split.deal(&deck, &terms).map_err(refused)?;
    Ok((dealt.clients.into_iter().map(|client| client.train).collect(), dealt.notes))
}

fn refused(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}
