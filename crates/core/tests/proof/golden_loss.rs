//! Golden balanced loss and FedLC: offsets, loss and gradient, and the posterior that all clients share.

use crate::exact::{Exact, Regression};
use crate::federation::{Federation, Site, local, run, strategy, vector};
use crate::vectors::{counts, numbers, read, rows, same, same_f32};
use fedtvd_core::labels::Reference;
use fedtvd_core::round::plan;
use fedtvd_core::train::{Samples, Values};
use serde_json::Value;
use std::sync::Arc;

fn golden() -> Value {
    read(include_str!("../golden/balanced_loss.json"))
}

/// The golden cases with their strategy and reference.
fn cases() -> [(&'static str, &'static str, Reference); 6] {
    let uniform = || Reference::uniform(4);
    let prior = Reference::given(vec![0.4, 0.3, 0.2, 0.1]).unwrap();
    [
        ("plain", "fedavg", uniform()),
        ("balanced_uniform", "balanced", uniform()),
        ("balanced_tau_half", "balanced:tau=0.5", uniform()),
        ("balanced_prior", "balanced", prior),
        ("balanced_floor_1e-2", "balanced:floor=0.01", uniform()),
        ("fedlc_half", "fedlc", uniform()),
    ]
}

#[test]
fn offsets_are_the_golden_ones() {
    let golden = golden();
    for (key, label, reference) in cases() {
        let offsets = strategy(label).loss.offsets(&counts(&golden["counts"]), &reference);
        same(&offsets, &golden[key]["offsets"], key);
    }
}

#[test]
fn a_clients_first_step_follows_the_golden_loss_and_gradient() {
    let golden = golden();
    let logits = rows(&golden["logits"]);
    let labels = counts(&golden["labels"]).into_iter().map(|label| label as u32).collect();
    // Row i is the i-th unit vector, so weight (c, i) is row i's logit of class c and has its gradient.
    let units = Values::Floats(vec![1., 0., 0., 0., 1., 0., 0., 0., 1.]);
    let samples = Arc::new(Samples::new([1, 1, 3], 4, units, labels, 3).unwrap());
    let by_class = |rows: &[Vec<f64>]| (0..12).map(|at| rows[at % 3][at / 3]).collect::<Vec<_>>();
    let start = by_class(&logits);
    for (key, label, reference) in cases() {
        let site = Site { id: 0, rows: vec![0, 1, 2], counts: counts(&golden["counts"]) };
        let trainer = Box::new(Exact::new(Regression(Arc::clone(&samples))));
        let order = run(label, local(1, 3, 1.0, 0.0));
        let mut federation = Federation::new(order, vector(&start), reference, vec![site], trainer);
        let jobs = plan(&federation.run, &federation.state);
        let upload = federation.answers(&jobs).remove(0).1.unwrap();
        same_f32(&[upload.report.losses[0] as f32], &Value::from(vec![golden[key]["loss"].clone()]), key);
        let pairs = start.iter().zip(by_class(&rows(&golden[key]["gradient"])));
        let stepped: Vec<f64> = pairs.map(|(w, g)| w - g).collect();
        same_f32(&upload.params.values, &Value::from(stepped), key);
    }
}

#[test]
fn the_minimiser_of_the_balanced_loss_is_the_posterior_under_the_reference() {
    let golden = golden();
    let population = &golden["population"];
    let (likelihood, prior) = (rows(&population["p_x_given_y"]), numbers(&population["client_prior"]));
    let reference = Reference::given(numbers(&population["reference"])).unwrap();
    // Counts of a thousand samples with the client's prior.
    let counts: Vec<u64> = prior.iter().map(|p| (p * 1000.0).round() as u64).collect();
    let offsets = strategy("balanced").loss.offsets(&counts, &reference);
    for (x, want) in population["posterior_under_reference"].as_array().unwrap().iter().enumerate() {
        // The loss is least where softmax(f + o) is the client's posterior, so f is its logarithm less o.
        let f = (0..4).map(|c| (likelihood[c][x] * prior[c]).ln() - offsets[c]);
        let powers: Vec<f64> = f.map(f64::exp).collect();
        let sum: f64 = powers.iter().sum();
        same(&powers.iter().map(|power| power / sum).collect::<Vec<_>>(), want, "posterior");
    }
}
