//! Checks that a state holds finite numbers only, before it becomes the state of a run.

use crate::memory::{Array, Memory};
use crate::round::State;
use thiserror::Error;

/// A value that is NaN or infinite.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("after this round {what} would hold {value} at {place}")]
pub struct NotFinite {
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
    memory("the memory of combining ", &state.combining)?;
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
    let mut values = values.enumerate();
    match values.find(|(_, value)| !value.is_finite()) {
        None => Ok(()),
        Some((place, value)) => Err(NotFinite { what: what.to_owned(), value, place }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels::Reference;
    use crate::model::{LayerKind, Layout, Params, Role, Tensor};
    use std::collections::BTreeMap;
    use std::sync::Arc;

    fn state(values: [f32; 2]) -> State {
        let tensor = |name: &str, kind, role| {
            let (name, shape) = (name.to_owned(), vec![1]);
            Tensor { name, shape, layer: 0, kind, role, start: 0 }
        };
        let layout = Layout::from_tensors(vec![
            tensor("fc.weight", LayerKind::Linear, Role::Weight),
            tensor("bn.running_mean", LayerKind::BatchNorm, Role::RunningMean),
        ]);
        State {
            round: 0,
            params: Arc::new(Params { layout: Arc::new(layout), values: values.to_vec() }),
            own: Arc::default(),
            reference: Reference::uniform(2),
            roster: Vec::new(),
            carried: Arc::default(),
            weighting: Memory::default(),
            combining: Memory::default(),
            server: Memory::default(),
            screening: Memory::default(),
            branches: Vec::new(),
            members: BTreeMap::new(),
            accepted: BTreeMap::new(),
        }
    }

    #[test]
    fn every_part_of_a_state_is_checked() {
        let flaw = |state: &State| check(state).unwrap_err().to_string();
        assert_eq!(check(&state([f32::MAX, -1.0])), Ok(()));
        assert_eq!(flaw(&state([f32::NAN, 0.0])), "after this round fc.weight would hold NaN at 0");
        assert_eq!(
            flaw(&state([0.0, f32::INFINITY])),
            "after this round bn.running_mean would hold inf at 0"
        );
        let memory = |values: Vec<f64>| {
            let mut memory = Memory::default();
            memory.put("v", values);
            memory
        };
        let fine = state([0.0; 2]);
        let server = State { server: memory(vec![0.0, f64::NAN]), ..fine.clone() };
        assert_eq!(flaw(&server), "after this round the server's memory v would hold NaN at 1");
        let weighting = State { weighting: memory(vec![f64::INFINITY]), ..fine.clone() };
        assert_eq!(flaw(&weighting), "after this round the weights' memory v would hold inf at 0");
        let combining = State { combining: memory(vec![f64::INFINITY]), ..fine.clone() };
        assert_eq!(flaw(&combining), "after this round the memory of combining v would hold inf at 0");
        let carried = State { carried: Arc::new(memory(vec![f64::NAN])), ..fine };
        assert_eq!(flaw(&carried), "after this round the carried vector v would hold NaN at 0");
    }
}
