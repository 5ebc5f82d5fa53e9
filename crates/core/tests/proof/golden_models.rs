//! Golden models: means of given client models, trainable numbers and batch-norm buffers alike.

use crate::exact::{Exact, Quadratic};
use crate::federation::{Federation, Site, local, run, upload, vector};
use crate::vectors::{counts, number, numbers, read, rows, same, same_f32};
use fedtvd_core::labels::Reference;
use fedtvd_core::model::{LayerKind, Layout, Params, Role, Tensor};
use fedtvd_core::round::{Upload, plan};
use serde_json::Value;
use std::sync::Arc;

/// Weights and model after one round in which the clients answer with these models.
fn merged(label: &str, start: Params, counts: &[Vec<u64>], models: &[Vec<f64>]) -> (Vec<f64>, Vec<f32>) {
    let site = |(k, h): (usize, &Vec<u64>)| Site { id: k as u32, rows: vec![], counts: h.clone() };
    let sites = counts.iter().enumerate().map(site).collect();
    let nobody = Box::new(Exact::new(Quadratic::default()));
    let order = run(label, local(1, 1_000, 0.1, 0.0));
    let mut federation = Federation::new(order, start, Reference::uniform(counts[0].len()), sites, nobody);
    let jobs = plan(&federation.run, &federation.state);
    let answer = |(job, model): (_, &Vec<f64>)| -> Upload {
        upload(job, &model.iter().map(|&x| x as f32).collect::<Vec<_>>(), 1)
    };
    let answers = jobs.iter().zip(models).map(|pair| (pair.0.client, Ok(answer(pair)))).collect();
    let record = federation.close(&jobs, answers);
    let weights =
        record.clients.iter().map(|client| client.weight.expect("all updates are accepted")).collect();
    (weights, federation.model().to_vec())
}

#[test]
fn fedavg_and_uniform_take_the_golden_means() {
    let golden = read(include_str!("../golden/fedavg.json"));
    let models = rows(&golden["client_models"]);
    let sizes: Vec<Vec<u64>> = counts(&golden["n"]).into_iter().map(|n| vec![n, 0]).collect();
    let start = || vector(&numbers(&golden["delta_form"]["x_t"]));
    let (weights, model) = merged("fedavg", start(), &sizes, &models);
    same(&weights, &golden["weights"], "weights");
    same_f32(&model, &golden["w_next"], "the weighted mean");
    same_f32(&model, &golden["delta_form"]["x_next"], "the same in delta form");
    same_f32(&merged("uniform", start(), &sizes, &models).1, &golden["uniform_w_next"], "the plain mean");
    // Halfway from x_t: x_t + 0.5 Σ p_k (w_k - x_t).
    let half =
        numbers(&golden["delta_form"]["sum_p_delta"]).iter().map(|d| 1.0 + 0.5 * d).collect::<Vec<_>>();
    same_f32(&merged("fedavg:server_lr=0.5", start(), &sizes, &models).1, &Value::from(half), "half");
}

#[test]
fn fedtvd_mixes_the_golden_models_by_its_weights() {
    let golden = read(include_str!("../golden/fedtvd_weights.json"));
    let clients: Vec<Vec<u64>> = golden["counts"].as_array().unwrap().iter().map(counts).collect();
    for case in golden["cases"].as_array().unwrap() {
        let label = format!("fedtvd:lambda={}", case["lambda"]);
        let (weights, model) = merged(&label, vector(&[0.0, 0.0]), &clients, &rows(&golden["client_models"]));
        same(&weights, &case["s"], &label);
        same_f32(&model, &case["w_next"], &label);
    }
}

#[test]
fn running_statistics_are_averaged_with_the_models_weights() {
    let golden = read(include_str!("../golden/batchnorm_aggregation.json"));
    let tensor = |name: &str, role| Tensor {
        name: name.to_owned(),
        shape: vec![2],
        layer: 0,
        kind: LayerKind::BatchNorm,
        role,
        start: 0,
    };
    let layout = Arc::new(Layout::from_tensors(vec![
        tensor("bn.running_mean", Role::RunningMean),
        tensor("bn.running_var", Role::RunningVariance),
        tensor("bn.weight", Role::Scale),
    ]));
    let start = Params { values: vec![1.0, 1.0, 0.0, 0.0, 1.0, 1.0], layout };
    let pairs = rows(&golden["running_mean"]).into_iter().zip(rows(&golden["running_var"]));
    let models: Vec<Vec<f64>> = pairs.map(|(mean, var)| [vec![1.0, 1.0], mean, var].concat()).collect();
    // Weights 0.2, 0.3, 0.5.
    let sizes =
        numbers(&golden["weights"]).iter().map(|s| vec![(s * 100.0).round() as u64, 0]).collect::<Vec<_>>();
    for label in ["fedavg", "fednova"] {
        let (weights, model) = merged(label, start.clone(), &sizes, &models);
        same(&weights, &golden["weights"], label);
        same_f32(&model[2..4], &golden["mean_out"], label);
        same_f32(&model[4..6], &golden["var_out_mean"], label);
    }
}

#[test]
fn fednova_averages_a_running_variance_plainly_because_scaling_would_make_it_negative() {
    let golden = read(include_str!("../golden/fednova.json"));
    let hazard = &golden["bn_running_var_hazard"];
    let scale = |role, name: &str| Tensor {
        name: name.to_owned(),
        shape: vec![1],
        layer: 0,
        kind: LayerKind::BatchNorm,
        role,
        start: 0,
    };
    let tensors = vec![scale(Role::Scale, "bn.weight"), scale(Role::RunningVariance, "bn.running_var")];
    let start = number(&hazard["var_global"]) as f32;
    let start = Params { layout: Arc::new(Layout::from_tensors(tensors)), values: vec![start, start] };
    let nobody = Box::new(Exact::new(Quadratic::default()));
    // Weights 0.1 and 0.9.
    let sites = [10, 90].map(|n| Site { id: n, rows: vec![], counts: vec![u64::from(n), 0] }).to_vec();
    let order = run("fednova", local(1, 1, 0.1, number(&hazard["rho"])));
    let mut federation = Federation::new(order, start, Reference::uniform(2), sites, nobody);
    let jobs = plan(&federation.run, &federation.state);
    // The trainable parameter gets the same values, to show the scaling that must not affect the buffer.
    let answer = |k: usize| {
        let variance = numbers(&hazard["var_clients"])[k] as f32;
        (jobs[k].client, Ok(upload(&jobs[k], &[variance, variance], counts(&hazard["tau"])[k])))
    };
    let answers = vec![answer(0), answer(1)];
    federation.close(&jobs, answers);
    same_f32(
        &federation.model()[1..],
        &Value::from(vec![hazard["correct_plain_average"].clone()]),
        "variance",
    );
    let naive = Value::from(vec![hazard["naive_fednova_on_buffer"].clone()]);
    same_f32(&federation.model()[..1], &naive, "the scaled variance");
}
