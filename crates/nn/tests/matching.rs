//! Matching whole networks: what comes out must compute what went in.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "golden/formula.rs"]
mod formula;

use fedtvd_core::matching::{
    AtomValue, Chain, LayerRows, Matched, Options, Rows, class_shares, class_weighted, matched,
};
use fedtvd_core::model::{Layout, Network, Params};
use fedtvd_core::stream::{Purpose, Stream};
use fedtvd_core::train::Trainer as _;
use fedtvd_nn::{Cpu, models};
use formula::{initial, samples};
use std::sync::Arc;

/// Matches networks of the same widths layer by layer, and counts them alike. Returns the rows of each layer, and how those of
/// the hidden layers were matched.
fn matched_networks(chain: &Chain, networks: &[Params], options: &Options) -> (Vec<Rows>, Vec<Matched>) {
    let weights = vec![1.0 / networks.len() as f64; networks.len()];
    let mut below: Option<Matched> = None;
    let (mut layers, mut hidden) = (Vec::new(), Vec::new());
    for (number, layer) in chain.layers.iter().enumerate() {
        let rows = networks.iter().enumerate().map(|(k, network)| match &below {
            None => layer.rows(&network.values),
            Some(below) => {
                layer.rows(&network.values).with_inputs(&below.assigned[k], below.atoms.len(), layer.block)
            }
        });
        let rows: Vec<Rows> = rows.collect();
        if number + 1 == chain.layers.len() {
            let counts = vec![1; layer.units];
            let shares = class_shares(&vec![counts.as_slice(); networks.len()], &weights);
            layers.push(class_weighted(&rows, &shares));
        } else {
            let prior_mean = vec![0.0; rows[0].columns()];
            let layer = LayerRows { clients: &rows, weights: &weights, prior_mean: &prior_mean };
            let result = matched(&layer, options, &mut Stream::at(1, Purpose::Matching, 0, number as u32));
            layers.push(result.atoms.clone());
            hidden.push(result.clone());
            below = Some(result);
        }
    }
    (layers, hidden)
}

/// A network of the matched widths with these rows.
fn assembled(network: &Network, layers: &[Rows]) -> (Network, Params) {
    let widths: Vec<usize> = layers.iter().map(Rows::len).collect();
    let network = network.with_widths(&widths);
    let layout = Layout::of(&network).unwrap();
    let chain = Chain::of(&layout).unwrap();
    let mut params = Params::zeros(Arc::new(layout));
    chain.layers.iter().zip(layers).for_each(|(layer, rows)| layer.put(rows, &mut params.values));
    (network, params)
}

/// The same function with its hidden units in another order: unit `order[i]` moves to place i.
fn permuted(chain: &Chain, params: &Params, orders: &[Vec<usize>]) -> Params {
    let mut copy = params.clone();
    let mut below: Option<Vec<usize>> = None;
    for (number, layer) in chain.layers.iter().enumerate() {
        let mut rows = layer.rows(&params.values);
        if let Some(places) = &below {
            rows = rows.with_inputs(places, places.len(), layer.block);
        }
        if let Some(order) = orders.get(number) {
            let values = order.iter().flat_map(|&unit| rows.row(unit)).copied().collect();
            rows = Rows::new(rows.columns(), values);
            let mut places = vec![0; order.len()];
            order.iter().enumerate().for_each(|(place, &unit)| places[unit] = place);
            below = Some(places);
        }
        layer.put(&rows, &mut copy.values);
    }
    copy
}

fn probabilities(network: &Network, params: &Params) -> Vec<Vec<f64>> {
    let mut cpu = Cpu::new(network, samples(network.input, 10, 8, |row| row % 10)).unwrap();
    let logits = cpu.logits(params, &[0, 1, 2, 3, 4, 5, 6, 7]).unwrap();
    logits.chunks(network.classes).map(fedtvd_core::train::probabilities).collect()
}

fn largest_difference(left: &[Vec<f64>], right: &[Vec<f64>]) -> f64 {
    let pairs = left.iter().flatten().zip(right.iter().flatten());
    pairs.fold(0.0, |largest: f64, (x, y)| largest.max((x - y).abs()))
}

/// Averages without a prior; every row of two clients finds its copy.
const AVERAGED: Options = Options {
    row_variance: 1.0,
    atom_variance: 10.0,
    mass: 1.0,
    popularity: 2.0,
    sweeps: 1,
    most_atoms: 10_000,
    value: AtomValue::Mean,
};

#[test]
fn matching_a_network_with_its_permuted_copy_gives_the_permutation_back_and_identical_outputs() {
    for name in ["mlp", "lenet", "cnn"] {
        let network = models::named(name, [1, 28, 28], 10).unwrap();
        let params = initial(&Arc::new(Layout::of(&network).unwrap()));
        let chain = Chain::of_network(&network).unwrap();
        let orders: Vec<Vec<usize>> = (0..chain.layers.len() - 1)
            .map(|number| {
                let mut order: Vec<usize> = (0..chain.layers[number].units).collect();
                Stream::at(3, Purpose::Matching, 0, number as u32).shuffle(&mut order);
                order
            })
            .collect();
        let copy = permuted(&chain, &params, &orders);
        assert_ne!(copy, params, "{name}");
        let outputs = probabilities(&network, &params);
        // Sums of up to 3136 products in another order.
        let difference = largest_difference(&outputs, &probabilities(&network, &copy));
        assert!(difference < 1e-6, "{name}: {difference}");

        let (layers, hidden) = matched_networks(&chain, &[params.clone(), copy], &AVERAGED);
        for (result, order) in hidden.iter().zip(&orders) {
            assert_eq!(result.assigned[1], *order, "{name}");
        }
        let (same, merged) = assembled(&network, &layers);
        assert_eq!(same, network);
        assert_eq!(probabilities(&same, &merged), outputs, "{name}");
    }
}

#[test]
fn networks_that_share_no_unit_become_a_wider_one_whose_logits_are_their_mean() {
    let network = models::named("lenet", [1, 28, 28], 10).unwrap();
    let layout = Arc::new(Layout::of(&network).unwrap());
    let chain = Chain::of(&layout).unwrap();
    let networks = [Params::initial(Arc::clone(&layout), 1), Params::initial(layout, 2)];
    // So many atoms are expected that each row makes its own.
    let apart = Options { mass: 1e100, ..AVERAGED };
    let (wide, params) = assembled(&network, &matched_networks(&chain, &networks, &apart).0);
    assert_eq!(wide.widths(), [12, 32, 240, 168, 10]);
    let [first, second] = networks.map(|params| probabilities(&network, &params));
    let mean = first.iter().zip(&second).map(|(first, second)| {
        let roots: Vec<f64> = first.iter().zip(second).map(|(p, q)| (p * q).sqrt()).collect();
        let sum: f64 = roots.iter().sum();
        roots.into_iter().map(|root| root / sum).collect()
    });
    let mean: Vec<Vec<f64>> = mean.collect();
    let difference = largest_difference(&mean, &probabilities(&wide, &params));
    assert!(difference < 1e-6, "{difference}");
}
