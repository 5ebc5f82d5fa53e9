//! Rules in Python: each call passes plain numbers and arrays to an adapter (`fedtvd/_rules.py`), which calls the user's class and
//! checks what it answers. An exception is noted as the failure of the strategy and kept, so that it can be raised again.

use fedtvd_core::labels::{self, Ask, Reference, Statistic};
use fedtvd_core::memory::{Array, Memory};
use fedtvd_core::model::Params;
use fedtvd_core::round::{Accepted, Profile, ReadFailure, UpdatePart};
use fedtvd_core::rules::{
    Combine, Combined, Loss, Origin, Outside, Recipe, ServerRule, Settings, Shares, Spec, Step, Weighting,
};
use fedtvd_core::settings::{Param, ParamKind, Range};
use fedtvd_core::strategy;
use numpy::{IntoPyArray as _, PyArray1, PyArrayMethods as _, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use std::sync::{Arc, Mutex, PoisonError};

/// The last exception of a rule, with the sentence that was noted.
static RAISED: Mutex<Option<(String, PyErr)>> = Mutex::new(None);

/// The exception behind a failure, if a rule raised one.
pub(crate) fn raised(py: Python<'_>, why: &str) -> Option<Py<PyAny>> {
    let mut raised = RAISED.lock().unwrap_or_else(PoisonError::into_inner);
    let (_, error) = raised.take_if(|(sentence, _)| why.contains(sentence.as_str()))?;
    Some(error.into_value(py).into_any())
}

/// Registers a method: `params` are (name, default, least, greatest, help), `rules` the names of its methods, and `make` makes an
/// adapter from its parameters.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "called by one function in Python")]
pub(crate) fn register(
    name: String,
    about: String,
    paper: String,
    asks: &str,
    suggests: Option<String>,
    params: Vec<(String, Bound<'_, PyAny>, f64, f64, String)>,
    source: String,
    rules: Vec<String>,
    make: Py<PyAny>,
) -> PyResult<()> {
    let asks = ask(asks)?;
    let params: Vec<Param> = params.into_iter().map(param).collect::<PyResult<_>>()?;
    // Registered methods stay for as long as the program runs.
    let params: &'static [Param] = params.leak();
    let build = move |settings: &Settings, outside: &Outside| {
        let made = Python::attach(|py| adapter(py, &make, settings, params));
        match made {
            Err(error) => {
                note(outside, error);
                Recipe::default()
            }
            Ok(adapter) => {
                let rule = Arc::new(Rule { adapter, asks, outside: outside.clone() });
                let has = |name: &str| rules.iter().any(|own| own == name);
                Recipe {
                    weighting: has("shares").then(|| Arc::clone(&rule) as Arc<dyn Weighting>),
                    loss: has("offsets").then(|| Arc::clone(&rule) as Arc<dyn Loss>),
                    combine: has("combine").then(|| Arc::clone(&rule) as Arc<dyn Combine>),
                    server: has("step").then(|| Arc::clone(&rule) as Arc<dyn ServerRule>),
                    ..Recipe::default()
                }
            }
        }
    };
    let origin = Origin { source, build: Box::new(build) };
    let spec = Spec::outside(name.leak(), about.leak(), paper.leak(), origin);
    let spec = Spec { params, suggests: suggests.map(|name| &*name.leak()), ..spec };
    strategy::register(spec).map_err(|error| PyValueError::new_err(error.to_string()))
}

fn ask(word: &str) -> PyResult<Ask> {
    Ok(match word {
        "nothing" => Ask::Nothing,
        "distance" => Ask::Distance,
        "counts" => Ask::Histogram,
        other => {
            let why = format!("asks = \"{other}\" is not allowed; it must be nothing, distance or counts");
            return Err(PyValueError::new_err(why));
        }
    })
}

fn param((name, default, low, high, about): (String, Bound<'_, PyAny>, f64, f64, String)) -> PyResult<Param> {
    let (name, about): (&'static str, &'static str) = (name.leak(), about.leak());
    let whole = |bound: f64, end: u64| if bound.is_finite() { bound as u64 } else { end };
    let kind = if let Ok(default) = default.extract::<bool>() {
        ParamKind::Flag { default }
    } else if let Ok(default) = default.extract::<u64>() {
        // Numbers are stored as doubles in documents.
        ParamKind::Whole { default, low: whole(low, 0), high: whole(high, 1 << 53) }
    } else {
        ParamKind::Number { default: default.extract()?, range: Range { low, high, open: false } }
    };
    Ok(Param { name, kind, about })
}

/// The adapter of a class with these parameters.
fn adapter(py: Python<'_>, make: &Py<PyAny>, settings: &Settings, params: &[Param]) -> PyResult<Py<PyAny>> {
    let given = PyDict::new(py);
    for param in params {
        match param.kind {
            ParamKind::Flag { .. } => given.set_item(param.name, settings.flag(param.name))?,
            ParamKind::Whole { .. } => given.set_item(param.name, settings.whole(param.name))?,
            _ => given.set_item(param.name, settings.number(param.name))?,
        }
    }
    make.call1(py, (given,))
}

/// Notes an exception as the failure of a strategy.
fn note(outside: &Outside, error: PyErr) {
    let sentence = Python::attach(|py| {
        let kind = error.get_type(py).name().map_or_else(|_| "exception".to_owned(), |kind| kind.to_string());
        let text = error
            .value(py)
            .str()
            .map_or_else(|_| String::new(), |text: Bound<'_, PyString>| text.to_string());
        if text.is_empty() { kind } else { format!("{kind}: {text}") }
    });
    outside.fail(&sentence);
    *RAISED.lock().unwrap_or_else(PoisonError::into_inner) = Some((sentence, error));
}

/// A user's rules behind their adapter.
struct Rule {
    adapter: Py<PyAny>,
    asks: Ask,
    outside: Outside,
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rule").field("outside", &self.outside).finish_non_exhaustive()
    }
}

impl Rule {
    /// What the adapter answers, or `otherwise` after an exception.
    fn answer<T>(
        &self,
        ask: impl FnOnce(Python<'_>, &Py<PyAny>) -> PyResult<T>,
        otherwise: impl FnOnce() -> T,
    ) -> T {
        Python::attach(|py| ask(py, &self.adapter)).unwrap_or_else(|error| {
            note(&self.outside, error);
            otherwise()
        })
    }
}

impl Weighting for Rule {
    fn asks(&self) -> Ask {
        self.asks
    }

    fn shares(&self, profiles: &[&Profile], reference: &Reference, _: &mut Memory) -> Shares {
        let total: f64 = profiles.iter().map(|profile| profile.size as f64).sum();
        let size: Vec<f64> = profiles.iter().map(|profile| profile.size as f64 / total).collect();
        let ask = |py: Python<'_>, adapter: &Py<PyAny>| {
            let clients: Vec<u32> = profiles.iter().map(|profile| profile.client).collect();
            let sizes: Vec<u64> = profiles.iter().map(|profile| profile.size).collect();
            let distances = |profile: &&&Profile| match &profile.statistic {
                Statistic::Distance(distance) => Some(*distance),
                Statistic::Histogram(counts) => Some(labels::tvd(counts, reference)),
                _ => None,
            };
            let distances: Vec<f64> = profiles.iter().map_while(|profile| distances(&profile)).collect();
            let counts = |profile: &&Profile| match &profile.statistic {
                Statistic::Histogram(counts) => counts.clone(),
                _ => Vec::new(),
            };
            let counts: Vec<u64> = profiles.iter().flat_map(counts).collect();
            let answer = adapter.call_method1(
                py,
                "shares",
                (
                    clients.into_pyarray(py),
                    sizes.into_pyarray(py),
                    distances.into_pyarray(py),
                    counts.into_pyarray(py),
                    reference.shares().to_vec().into_pyarray(py),
                ),
            )?;
            let (weight, quality): (PyReadonlyArray1<'_, f64>, Option<PyReadonlyArray1<'_, f64>>) =
                answer.extract(py)?;
            Ok((weight.to_vec()?, quality.map(|quality| quality.to_vec()).transpose()?))
        };
        let (weight, quality) = self.answer(ask, || (size.clone(), None));
        Shares { quality, size, weight }
    }
}

impl Loss for Rule {
    fn offsets(&self, counts: &[u64], reference: &Reference) -> Vec<f64> {
        let ask = |py: Python<'_>, adapter: &Py<PyAny>| {
            let (counts, reference) = (counts.to_vec(), reference.shares().to_vec());
            let answer =
                adapter.call_method1(py, "offsets", (counts.into_pyarray(py), reference.into_pyarray(py)))?;
            numbers(py, &answer)
        };
        self.answer(ask, || vec![0.0; counts.len()])
    }
}

impl Combine for Rule {
    fn combine(
        &self,
        base: &Params,
        accepted: &mut Accepted<'_>,
        weights: &[f64],
        _: &mut Memory,
    ) -> Result<Combined, ReadFailure> {
        let (clients, len) = (weights.len(), base.values.len());
        let mut updates = vec![0.0f32; clients * len];
        accepted.blocks(UpdatePart::Model, 0..len, |start, blocks| {
            for (update, block) in updates.chunks_mut(len).zip(blocks) {
                update[start..start + block.len()].copy_from_slice(block);
            }
        })?;
        let ask = |py: Python<'_>, adapter: &Py<PyAny>| {
            let updates = updates.into_pyarray(py).reshape([clients, len])?;
            let (base, given) = (base.values.clone(), weights.to_vec());
            let answer = adapter.call_method1(
                py,
                "combine",
                (base.into_pyarray(py), updates, given.into_pyarray(py)),
            )?;
            let (values, counted): (PyReadonlyArray1<'_, f64>, Option<PyReadonlyArray1<'_, f64>>) =
                answer.extract(py)?;
            let counted = counted.map_or_else(|| Ok(weights.to_vec()), |counted| counted.to_vec())?;
            Ok(Combined { values: values.to_vec()?, counted })
        };
        let unchanged = || base.values.iter().map(|&value| f64::from(value)).collect();
        Ok(self.answer(ask, || Combined { values: unchanged(), counted: weights.to_vec() }))
    }
}

impl ServerRule for Rule {
    fn step(&self, step: &Step<'_>, memory: &mut Memory) -> Vec<f32> {
        let ask = |py: Python<'_>, adapter: &Py<PyAny>| {
            let remembered = PyDict::new(py);
            for (name, array) in memory.arrays() {
                match array {
                    Array::F32(values) => remembered.set_item(name, PyArray1::from_slice(py, values))?,
                    Array::F64(values) => remembered.set_item(name, PyArray1::from_slice(py, values))?,
                    Array::U64(values) => remembered.set_item(name, PyArray1::from_slice(py, values))?,
                }
            }
            let (base, aggregate) = (step.base.to_vec(), step.aggregate.to_vec());
            let answer = adapter.call_method1(
                py,
                "step",
                (base.into_pyarray(py), aggregate.into_pyarray(py), &remembered),
            )?;
            let mut next = Memory::default();
            for (name, array) in &remembered {
                next.put(&name.extract::<String>()?, remembered_array(&array)?);
            }
            let values: PyReadonlyArray1<'_, f32> = answer.extract(py)?;
            Ok((values.to_vec()?, next))
        };
        let (values, next) = self.answer(ask, || (step.base.to_vec(), Memory::default()));
        *memory = next;
        values
    }
}

fn numbers(py: Python<'_>, answer: &Py<PyAny>) -> PyResult<Vec<f64>> {
    Ok(answer.extract::<PyReadonlyArray1<'_, f64>>(py)?.to_vec()?)
}

/// An array of a memory; the adapter has made it one of the three types.
fn remembered_array(array: &Bound<'_, PyAny>) -> PyResult<Array> {
    if let Ok(values) = array.extract::<PyReadonlyArray1<'_, f32>>() {
        return Ok(values.to_vec()?.into());
    }
    if let Ok(values) = array.extract::<PyReadonlyArray1<'_, u64>>() {
        return Ok(values.to_vec()?.into());
    }
    Ok(array.extract::<PyReadonlyArray1<'_, f64>>()?.to_vec()?.into())
}
