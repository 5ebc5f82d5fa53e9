//! Checks that a state holds finite numbers only, before it becomes the state of a run.

use crate::memory::{Array, Memory};
use crate::round::State;
use thiserror::Error;

/// A value that is NaN or infinite.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("{what} of the next model would hold {value} at {place}")]
pub(crate) struct NotFinite {
    what: String,
    value: f64,
    place: usize,
}

/// Finds the first value of the model, the carried vectors or the rules' memories that is not finite.
pub(crate) fn check(state: &State) -> Result<(), NotFinite> {
    let params = &state.params;
    for tensor in params.layout.tensors() {
        let values = params.values.get(tensor.range()).unwrap_or_default();
        first(&tensor.name, values.iter().map(|&value| f64::from(value)))?;
    }
    memory("the carried vector ", &state.carried)?;
    memory("the weights' memory ", &state.weighting)?;
    memory("the server's memory ", &state.server)
}

fn memory(owner: &str, memory: &Memory) -> Result<(), NotFinite> {
    for (name, array) in memory.arrays() {
        let what = format!("{owner}{name}");
        match array {
            Array::F32(values) => first(&what, values.iter().map(|&value| f64::from(value)))?,
            Array::F64(values) => first(&what, values.iter().copied())?,
            Array::U64(_) => {}
        }
    }
    Ok(())
}

fn first(what: &str, values: impl Iterator<Item = f64>) -> Result<(), NotFinite> {
    match { values }.enumerate().find(|(_, value)| !value.is_finite()) {
        None => Ok(()),
        Some((place, value)) => Err(NotFinite { what: what.to_owned(), value, place }),
    }
}
