//! The server's side of layer-wise matching: one layer per round, and after the last layer a new cycle.
//!
//! ```text
//! round of layer l:  layer l      the atoms of the clients' rows (see `layer.rs`); the class-weighted mean in the last layer
//!                    layer l + 1  its inputs moved to the atoms, then the weighted mean over the clients that have both units
//!                    above        the weighted mean over the clients that have both units
//! ```
//!
//! The layers above are averaged so that there is a model to evaluate after each round, and one to continue from for a client
//! that has lost its own.

use crate::matching::layer::{LayerRows, Matched, Options, matched};
use crate::matching::{Chain, ChainLayer, MatchingStep, Rows, class_shares, class_weighted};
use crate::memory::Memory;
use crate::model::Params;
use crate::round::ClientId;
use crate::stream::Stream;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How a strategy matches networks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Matching {
    /// How units are matched.
    pub options: Options,
    /// Whether clients count in the last layer by their label counts, which they report then; otherwise by their weights.
    pub label_counts: bool,
}

/// Where a run is in a cycle, and which units are whose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cycle {
    /// The layer that is matched next.
    layer: usize,
    /// Number of units of a client in each hidden layer.
    own_units: Vec<usize>,
    /// The places of each client's units in each hidden layer.
    assigned: BTreeMap<ClientId, Vec<Vec<usize>>>,
}

/// A client's trained model, in the shape of the shared one.
pub(crate) struct Sent<'a> {
    pub(crate) client: ClientId,
    pub(crate) values: Vec<f32>,
    pub(crate) weight: f64,
    /// Its label counts, if it reported them.
    pub(crate) counts: Option<&'a [u64]>,
}

impl Cycle {
    /// What the server remembers, or the beginning if that is nothing, or does not fit these layers.
    pub(crate) fn of(memory: &Memory, chain: &Chain) -> Self {
        Self::read(memory, chain).unwrap_or_else(|| {
            let hidden = &chain.layers[..chain.layers.len() - 1];
            let own_units = hidden.iter().map(|layer| layer.units).collect();
            Self { layer: 0, own_units, assigned: BTreeMap::new() }
        })
    }

    fn read(memory: &Memory, chain: &Chain) -> Option<Self> {
        let number = |&number: &u64| usize::try_from(number).ok();
        let &[layer] = memory.u64("layer")? else { return None };
        let own_units: Vec<usize> = memory.u64("own_units")?.iter().map(number).collect::<Option<_>>()?;
        let mut assigned = BTreeMap::new();
        for &client in memory.u64("clients")? {
            let places: Vec<usize> =
                memory.u64(&format!("assigned/{client}"))?.iter().map(number).collect::<Option<_>>()?;
            let mut rest = places.as_slice();
            let mut layers = Vec::new();
            for &units in &own_units {
                let (places, behind) = rest.split_at_checked(units)?;
                layers.push(places.to_vec());
                rest = behind;
            }
            assigned.insert(ClientId::try_from(client).ok()?, layers);
        }
        let cycle = Self { layer: number(&layer)?, own_units, assigned };
        let known = cycle.assigned.keys().all(|client| cycle.step(*client).check(chain).is_ok());
        // A client that is not known has the first units.
        (known && cycle.first().check(chain).is_ok()).then_some(cycle)
    }

    fn memory(&self) -> Memory {
        let numbers = |numbers: &[usize]| numbers.iter().map(|&number| number as u64).collect::<Vec<u64>>();
        let mut memory = Memory::default();
        memory.put("layer", vec![self.layer as u64]);
        memory.put("own_units", numbers(&self.own_units));
        memory.put("clients", self.assigned.keys().map(|client| u64::from(*client)).collect::<Vec<u64>>());
        for (client, layers) in &self.assigned {
            memory.put(&format!("assigned/{client}"), numbers(&layers.concat()));
        }
        memory
    }

    /// What a client needs to know in the next round.
    pub(crate) fn step(&self, client: ClientId) -> MatchingStep {
        let assigned = self.assigned.get(&client).cloned();
        MatchingStep { layer: self.layer, assigned: assigned.unwrap_or_else(|| self.first().assigned) }
    }

    /// The step of a client that never took part: it has the first units of each layer.
    fn first(&self) -> MatchingStep {
        let assigned = self.own_units.iter().map(|units| (0..*units).collect()).collect();
        MatchingStep { layer: self.layer, assigned }
    }

    /// The next shared model, and what the server remembers. `None` if the model is no chain of layers, or if the next
    /// one would be too large.
    pub(crate) fn close(
        self,
        matching: &Matching,
        base: &Params,
        sent: &[Sent<'_>],
        order: &mut Stream,
    ) -> Option<(Params, Memory)> {
        let chain = Chain::of(&base.layout).ok()?;
        let steps: Vec<MatchingStep> = sent.iter().map(|sent| self.step(sent.client)).collect();
        let place = self.layer;
        let layer = &chain.layers[place];
        let rows = sent.iter().zip(&steps).map(|(sent, step)| {
            layer.picked(&sent.values, &step.units(&chain, place), &step.inputs(&chain, place))
        });
        let rows: Vec<Rows> = rows.collect();
        let weights: Vec<f64> = sent.iter().map(|sent| sent.weight).collect();
        if place + 1 == chain.layers.len() {
            let last = class_weighted(&rows, &shares(sent, &weights, layer.units));
            let mut next = base.clone();
            layer.put(&last, &mut next.values);
            return Some((next, Self { layer: 0, ..self }.memory()));
        }
        let prior_mean = vec![0.0; rows[0].columns()];
        let layer_rows = LayerRows { clients: &rows, weights: &weights, prior_mean: &prior_mean };
        let Matched { atoms, assigned, .. } = matched(&layer_rows, &matching.options, order);

        let mut widths: Vec<usize> = chain.layers.iter().map(|layer| layer.units).collect();
        widths[place] = atoms.len();
        let mut next = Params::zeros(Arc::new(base.layout.with_widths(&widths)?));
        let next_chain = Chain::of(&next.layout).ok()?;
        for (number, (old, new)) in chain.layers.iter().zip(&next_chain.layers).enumerate() {
            if number == place {
                new.put(&atoms, &mut next.values);
                continue;
            }
            if number != place + 1 {
                new.put(&old.rows(&base.values), &mut next.values);
            }
            if number > place {
                let parts = sent.iter().zip(&steps).zip(&assigned).map(|((sent, step), assigned)| {
                    let (units, inputs) = (step.units(&chain, number), step.inputs(&chain, number));
                    let rows = old.picked(&sent.values, &units, &inputs);
                    let inputs = if number == place + 1 { assigned.clone() } else { inputs };
                    Part { rows, units, inputs, weight: sent.weight }
                });
                put_means(new, &parts.collect::<Vec<_>>(), &mut next.values);
            }
        }
        let mut cycle = Self { layer: place + 1, ..self };
        for ((sent, step), assigned) in sent.iter().zip(steps).zip(assigned) {
            let mut layers = step.assigned;
            layers[place] = assigned;
            cycle.assigned.insert(sent.client, layers);
        }
        Some((next, cycle.memory()))
    }
}

/// The share of each client in each class.
fn shares(sent: &[Sent<'_>], weights: &[f64], classes: usize) -> Vec<Vec<f64>> {
    let counts: Option<Vec<&[u64]>> = sent.iter().map(|sent| sent.counts).collect();
    match counts.filter(|counts| counts.iter().all(|counts| counts.len() == classes)) {
        Some(counts) => class_shares(&counts, weights),
        None => weights.iter().map(|weight| vec![*weight; classes]).collect(),
    }
}

/// A client's rows of a layer, and where they belong.
struct Part {
    rows: Rows,
    units: Vec<usize>,
    inputs: Vec<usize>,
    weight: f64,
}

/// Replaces each weight of a layer by its weighted mean over the clients that have it; what no client has stays.
fn put_means(layer: &ChainLayer, parts: &[Part], values: &mut [f32]) {
    let columns = layer.inputs() + usize::from(layer.biases.is_some());
    let mut sums = vec![0.0; layer.units * columns];
    let mut weights = vec![0.0; sums.len()];
    for Part { rows, units, inputs, weight } in parts {
        for (unit, row) in units.iter().zip(rows.iter()) {
            let start = unit * columns;
            let read = inputs.iter().flat_map(|input| input * layer.block..(input + 1) * layer.block);
            for (column, &value) in read.chain(layer.inputs()..columns).zip(row) {
                sums[start + column] += weight * f64::from(value);
                weights[start + column] += weight;
            }
        }
    }
    let old = layer.rows(values);
    let mean =
        |((sum, weight), &old): ((&f64, &f64), &f32)| if *weight > 0.0 { (sum / weight) as f32 } else { old };
    let means = sums.iter().zip(&weights).zip(old.iter().flatten()).map(mean);
    layer.put(&Rows::new(columns, means.collect()), values);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matching::AtomValue;
    use crate::model::{Layer, Layout, Network};
    use crate::stream::Purpose;

    /// 3 values, 4 and 3 hidden units, 2 classes.
    fn layout() -> Arc<Layout> {
        let linear = |name: &str, out| Layer::Linear { name: name.into(), out };
        let layers = vec![linear("fc1", 4), Layer::Relu, linear("fc2", 3), Layer::Relu, linear("fc3", 2)];
        Arc::new(Layout::of(&Network { input: [3, 1, 1], classes: 2, layers }).unwrap())
    }

    fn matching(mass: f64) -> Matching {
        let options = Options { mass, value: AtomValue::Mean, sweeps: 2, ..Options::default() };
        Matching { options, label_counts: false }
    }

    fn order() -> Stream {
        Stream::at(1, Purpose::Matching, 0, 0)
    }

    /// The logits of a model for one sample.
    fn logits(params: &Params) -> Vec<f64> {
        let chain = Chain::of(&params.layout).unwrap();
        let mut x = vec![0.3, -0.8, 0.5];
        for (number, layer) in chain.layers.iter().enumerate() {
            let rows = layer.rows(&params.values);
            let unit = |row: &[f32]| {
                let (bias, weights) = row.split_last().unwrap();
                weights.iter().zip(&x).map(|(&w, x)| f64::from(w) * x).sum::<f64>() + f64::from(*bias)
            };
            let last = number + 1 == chain.layers.len();
            x = rows.iter().map(unit).map(|y| if last { y } else { y.max(0.0) }).collect();
        }
        x
    }

    fn near(left: &[f64], right: &[f64]) -> bool {
        // Sums of a few f32 products.
        left.iter().zip(right).all(|(x, y)| (x - y).abs() < 1e-6)
    }

    fn cycle(memory: &Memory, params: &Params) -> Cycle {
        Cycle::of(memory, &Chain::of(&params.layout).unwrap())
    }

    #[test]
    fn clients_that_learn_the_same_keep_their_network_through_two_cycles() {
        let (mut params, mut memory) = (Params::initial(layout(), 1), Memory::default());
        for round in 0..6 {
            let cycle = cycle(&memory, &params);
            assert_eq!(cycle.layer, round % 3);
            let step = cycle.step(0);
            let mut trained = step.own_model(&params, None).unwrap();
            trained.values.iter_mut().for_each(|value| *value += 0.25);
            let (sent, _) = step.sent(&params, &trained).unwrap();
            let client = |client| Sent { client, values: sent.values.clone(), weight: 0.25, counts: None };
            let sent_by_all: Vec<Sent<'_>> = (0..4).map(client).collect();
            let next = cycle.close(&matching(1e-6), &params, &sent_by_all, &mut order()).unwrap();
            (params, memory) = next;
            assert_eq!(params.values, sent.values, "round {round}");
        }
    }

    #[test]
    fn a_client_continues_with_what_it_had_trained_while_the_network_grows() {
        let (mut params, mut memory) = (Params::initial(layout(), 1), Memory::default());
        let mut remembered: [Option<Memory>; 2] = [None, None];
        let mut sent_last = Vec::new();
        // So much mass that every row becomes an atom.
        for (round, widths) in [[8, 3, 2], [8, 6, 2], [8, 6, 2]].into_iter().enumerate() {
            let cycle = cycle(&memory, &params);
            let (mut sent, mut outputs) = (Vec::new(), Vec::new());
            for client in 0..2u32 {
                let step = cycle.step(client);
                let memory = remembered[client as usize].as_ref();
                let mut trained = step.own_model(&params, memory).unwrap();
                let mut noise = Stream::at(3, Purpose::Matching, round as u32, client);
                for tensor in trained.layout.tensors().to_vec() {
                    if !step.is_frozen(&tensor) {
                        let values = &mut trained.values[tensor.range()];
                        values.iter_mut().for_each(|value| *value += 0.5 * noise.normal() as f32);
                    }
                }
                let (own, memory) = step.sent(&params, &trained).unwrap();
                remembered[client as usize] = Some(memory);
                outputs.push(logits(&trained));
                sent.push(Sent { client, values: own.values, weight: 0.5, counts: None });
            }
            (params, memory) = cycle.close(&matching(1e9), &params, &sent, &mut order()).unwrap();
            assert_eq!(params.layout.widths(), widths);
            if round < 2 {
                // The atoms of a client are its own rows: before it trains, it computes what it did.
                for client in 0..2u32 {
                    let step = Cycle::of(&memory, &Chain::of(&params.layout).unwrap()).step(client);
                    let next = step.own_model(&params, remembered[client as usize].as_ref()).unwrap();
                    assert!(
                        near(&logits(&next), &outputs[client as usize]),
                        "client {client}, round {round}"
                    );
                }
            }
            sent_last = outputs;
        }
        // The last layers are averaged over the same features: the logits are the mean.
        let mean: Vec<f64> = sent_last[0].iter().zip(&sent_last[1]).map(|(x, y)| 0.5 * (x + y)).collect();
        assert!(near(&logits(&params), &mean));
        // A new cycle begins with models of the old widths.
        let step = cycle(&memory, &params).step(1);
        let own = step.own_model(&params, remembered[1].as_ref()).unwrap();
        assert_eq!((step.layer, own.layout.widths()), (0, &[4, 3, 2][..]));
        let row = |params: &Params, unit| {
            Chain::of(&params.layout).unwrap().layers[0].rows(&params.values).row(unit).to_vec()
        };
        assert_eq!(row(&own, 2), row(&params, step.assigned[0][2]));
    }

    #[test]
    fn clients_count_in_the_last_layer_by_their_labels() {
        let params = Params::initial(layout(), 1);
        let chain = Chain::of(&params.layout).unwrap();
        let cycle = Cycle { layer: 2, ..Cycle::of(&Memory::default(), &chain) };
        let counts: [&[u64]; 2] = [&[3, 0], &[1, 5]];
        let sent = |client: u32| {
            let mut values = params.values.clone();
            let biases = chain.layers[2].biases.clone().unwrap();
            values[biases].fill(client as f32);
            Sent { client, values, weight: 0.5, counts: Some(counts[client as usize]) }
        };
        let (next, _) = cycle.close(&matching(1.0), &params, &[sent(0), sent(1)], &mut order()).unwrap();
        assert_eq!(next.tensor("fc3.bias").unwrap(), [0.25, 1.0]);
    }

    #[test]
    fn what_the_server_remembers_is_read_again_and_anything_else_begins_anew() {
        let params = Params::initial(layout(), 1);
        let chain = Chain::of(&params.layout).unwrap();
        let beginning = Cycle::of(&Memory::default(), &chain);
        let mut cycle = Cycle { layer: 1, ..beginning.clone() };
        cycle.assigned.insert(7, vec![vec![1, 0, 3, 2], vec![0, 2, 1]]);
        assert_eq!(Cycle::of(&cycle.memory(), &chain), cycle);
        assert_eq!(cycle.step(7).assigned, [vec![1, 0, 3, 2], vec![0, 2, 1]]);
        assert_eq!(cycle.step(8).assigned, [vec![0, 1, 2, 3], vec![0, 1, 2]]);
        for wrong in [vec![1, 1, 3, 2], vec![1, 0, 3, 4]] {
            cycle.assigned.insert(7, vec![wrong, vec![0, 2, 1]]);
            assert_eq!(Cycle::of(&cycle.memory(), &chain), beginning);
        }
    }

    #[test]
    fn a_step_that_does_not_fit_the_model_is_refused() {
        let chain = Chain::of(&layout()).unwrap();
        let step = |layer, assigned: &[&[usize]]| MatchingStep {
            layer,
            assigned: assigned.iter().map(|units| units.to_vec()).collect(),
        };
        assert_eq!(step(2, &[&[3, 1], &[0]]).check(&chain), Ok(()));
        for wrong in [step(3, &[&[0], &[0]]), step(0, &[&[0]]), step(0, &[&[], &[0]]), step(0, &[&[4], &[0]])]
        {
            assert!(wrong.check(&chain).is_err(), "{wrong:?}");
        }
        let why = step(0, &[&[0, 0], &[0]]).check(&chain).unwrap_err();
        assert_eq!(why, "2 units cannot be 4 different ones of the model");
    }

    #[test]
    fn a_client_without_memory_picks_its_units_from_the_shared_model() {
        let params = Params::initial(layout(), 1);
        let step = MatchingStep { layer: 1, assigned: vec![vec![2, 0, 1, 3], vec![2, 1, 0]] };
        let own = step.own_model(&params, None).unwrap();
        // The first layer is matched, and is taken as it is; the units of the second are in another order.
        assert_eq!(own.tensor("fc1.weight"), params.tensor("fc1.weight"));
        assert!(near(&logits(&own), &logits(&params)));
        assert_ne!(own.tensor("fc2.bias"), params.tensor("fc2.bias"));
    }
}
