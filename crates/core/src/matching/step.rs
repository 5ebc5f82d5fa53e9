//! One client in one round of layer-wise matching: the model that it trains, and what it sends.
//!
//! In the round of layer l the shared model has matched layers below l. A client trains a model of its own widths from l on:
//!
//! ```text
//! layers below l   the shared model's, frozen
//! layer l          the client's own units, reading all units of the layer below
//! layers above l   the client's own units
//! ```
//!
//! Its own values of layer l and above are those that it remembers from the round of the layer before, where its inputs from
//! units that others brought have weight 0. In the first round of a cycle, and if it remembers none, it picks its units out
//! of the shared model. What it sends has the shape of the shared model: its units at their places, and the shared model's
//! values elsewhere.

use crate::matching::{Chain, Rows};
use crate::memory::Memory;
use crate::model::{Layout, Params, Tensor};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What a client needs to know in a round of layer-wise matching.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MatchingStep {
    /// The layer that is matched in this round, counted from 0 among the layers with parameters.
    pub layer: usize,
    /// For each hidden layer, the places of the client's units among those of the shared model.
    pub assigned: Vec<Vec<usize>>,
}

/// The name of a client's own values of the layers that are matched later, in its memory.
const LATER: &str = "later_layers";
/// The name of the first of those layers, in a client's memory.
const FIRST: &str = "first_later_layer";

impl MatchingStep {
    /// Fails, saying why, unless the step fits a model of these layers.
    pub fn check(&self, chain: &Chain) -> Result<(), String> {
        let Self { layer, assigned } = self;
        let layers = chain.layers.len();
        if *layer >= layers || assigned.len() + 1 != layers {
            return Err(format!(
                "layer {layer} of {} is to be matched; the model has {layers}",
                assigned.len() + 1
            ));
        }
        for (own, shared) in assigned.iter().zip(&chain.layers) {
            let mut taken = vec![false; shared.units];
            let fits =
                |unit: &usize| taken.get_mut(*unit).is_some_and(|taken| !std::mem::replace(taken, true));
            if own.is_empty() || !own.iter().all(fits) {
                return Err(format!(
                    "{} units cannot be {} different ones of the model",
                    own.len(),
                    shared.units
                ));
            }
        }
        Ok(())
    }

    /// The places of the units of a layer of the client's model among those of the shared model; those of a layer that was
    /// matched before are all, in order.
    pub(super) fn units(&self, chain: &Chain, layer: usize) -> Vec<usize> {
        match self.assigned.get(layer) {
            Some(assigned) if layer >= self.layer => assigned.clone(),
            _ => (0..chain.layers[layer].units).collect(),
        }
    }

    /// The same for the units that a layer reads.
    pub(super) fn inputs(&self, chain: &Chain, layer: usize) -> Vec<usize> {
        match layer.checked_sub(1) {
            Some(below) => self.units(chain, below),
            None => (0..chain.layers[0].channels()).collect(),
        }
    }

    /// The layout of the model that the client trains.
    fn own_layout(&self, chain: &Chain, shared: &Layout) -> Option<Layout> {
        let widths: Vec<usize> =
            (0..chain.layers.len()).map(|layer| self.units(chain, layer).len()).collect();
        shared.with_widths(&widths)
    }

    /// The model that the client trains.
    pub(crate) fn own_model(&self, shared: &Params, memory: Option<&Memory>) -> Option<Params> {
        let chain = Chain::of(&shared.layout).ok()?;
        let layout = self.own_layout(&chain, &shared.layout)?;
        let own = Chain::of(&layout).ok()?;
        let mut params = Params::zeros(Arc::new(layout));
        for (number, (layer, target)) in chain.layers.iter().zip(&own.layers).enumerate() {
            let (units, inputs) = (self.units(&chain, number), self.inputs(&chain, number));
            target.put(&layer.picked(&shared.values, &units, &inputs), &mut params.values);
        }
        if let Some(values) = memory.and_then(|memory| self.remembered(memory)) {
            self.recall(&chain, &own, values, &mut params.values);
        }
        Some(params)
    }

    /// The client's own values of this round's layer and those above, if it remembers them.
    fn remembered<'a>(&self, memory: &'a Memory) -> Option<&'a [f32]> {
        let first = memory.u64(FIRST)?;
        // A cycle begins with the units of the shared model.
        if self.layer == 0 || first != [self.layer as u64] { None } else { memory.f32(LATER) }
    }

    /// Replaces the layers from this round's on by what the client remembers; leaves them if that has another length.
    fn recall(&self, chain: &Chain, own: &Chain, values: &[f32], params: &mut [f32]) {
        let below = self.layer - 1;
        let assigned = &self.assigned[below];
        let len = |number: usize| {
            let layer = &own.layers[number];
            // The layer that is matched now had the client's own units below it.
            let inputs = if number == self.layer { assigned.len() * layer.block } else { layer.inputs() };
            layer.units * (inputs + usize::from(layer.biases.is_some()))
        };
        let lens: Vec<usize> = (self.layer..own.layers.len()).map(len).collect();
        if lens.iter().sum::<usize>() != values.len() {
            return;
        }
        let mut rest = values;
        for (number, len) in (self.layer..).zip(lens) {
            let layer = &own.layers[number];
            let (values, behind) = rest.split_at(len);
            let mut rows = Rows::new(len / layer.units, values.to_vec());
            if number == self.layer {
                rows = rows.with_inputs(assigned, chain.layers[below].units, layer.block);
            }
            layer.put(&rows, params);
            rest = behind;
        }
    }

    /// Whether a tensor of the client's model stays as it is in this round: those of the layers that were matched before.
    pub(crate) fn is_frozen(&self, tensor: &Tensor) -> bool {
        tensor.layer < self.layer
    }

    /// What the client sends, in the shape of the shared model, and what it remembers.
    pub(crate) fn sent(&self, shared: &Params, trained: &Params) -> Option<(Params, Memory)> {
        let (chain, own) = (Chain::of(&shared.layout).ok()?, Chain::of(&trained.layout).ok()?);
        let mut sent = shared.clone();
        let mut later: Vec<f32> = Vec::new();
        for (number, (target, layer)) in chain.layers.iter().zip(&own.layers).enumerate().skip(self.layer) {
            let rows = layer.rows(&trained.values);
            let (units, inputs) = (self.units(&chain, number), self.inputs(&chain, number));
            target.put_at(&rows, &units, &inputs, &mut sent.values);
            if number > self.layer {
                later.extend(rows.iter().flatten());
            }
        }
        let mut memory = Memory::default();
        memory.put(FIRST, vec![self.layer as u64 + 1]);
        memory.put(LATER, later);
        Some((sent, memory))
    }
}
