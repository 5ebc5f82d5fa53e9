//! Golden FedNova: reaches, local models, the normalised mean, and the optimum that it is consistent with.

use crate::federation::{Federation, local, quadratics, run};
use crate::vectors::{number, numbers, read, rows, same, same_f32, settled};
use fedtvd_core::round::plan;
use fedtvd_core::train::{Local, Reach, Schedule, Sgd};
use serde_json::Value;

fn golden() -> Value {
    read(include_str!("../golden/fednova.json"))
}

/// The two golden clients: batches of 15 make 2 steps of 25 samples and 5 of 75.
fn clients(label: &str, order: Local, counts: &[Vec<u64>]) -> Federation {
    let golden = golden();
    let problem = rows(&golden["h"]).into_iter().zip(rows(&golden["b"])).collect();
    quadratics(run(label, order), problem, &numbers(&golden["x0"]), counts)
}

fn sizes() -> [Vec<u64>; 2] {
    [vec![25, 0], vec![75, 0]]
}

#[test]
fn reach_is_the_golden_norm_for_momentum_nesterov_and_proximal_term() {
    let golden = golden();
    let tables = [
        ("a_norm_table_rho0.9", 0.9, false, 0.0),
        ("a_norm_table_rho0.9_nesterov", 0.9, true, 0.0),
        // alpha = lr mu = 0.1.
        ("a_norm_prox_alpha0.1", 0.0, false, 2.0),
    ];
    for (key, momentum, nesterov, mu) in tables {
        for (steps, norm) in golden[key].as_object().unwrap() {
            let sgd = Sgd { lr: 0.05, momentum, nesterov, weight_decay: 0.0 };
            let mut reach = Reach::default();
            reach.advance(&sgd.into(), mu, true, steps.parse().unwrap());
            same(&[reach.distance() / 0.05], &Value::from(vec![norm.clone()]), &format!("{key} at {steps}"));
        }
    }
}

#[test]
fn reach_under_a_schedule_is_the_sum_of_the_rates_and_is_reported() {
    let order = Local { epoch_decay: 0.5, ..local(4, 1_000, 0.1, 0.0) };
    let mut federation = clients("fednova", order, &sizes());
    let jobs = plan(&federation.run, &federation.state);
    for (_, upload) in federation.answers(&jobs) {
        let report = upload.unwrap().report;
        // 0.1 (1 + 1/2 + 1/4 + 1/8).
        same(&[report.reach], &Value::from(vec![0.1875]), "reach");
        assert_eq!(report.steps, 4);
    }
}

#[test]
fn reach_shrinks_with_the_rate_from_round_to_round() {
    let order = Local { schedule: Schedule::exponential(0.5), ..local(3, 1_000, 0.1, 0.0) };
    let mut federation = clients("fednova", order, &sizes());
    // Three steps of 0.1, 0.05 and 0.025.
    for reach in [0.3, 0.15, 0.075] {
        let jobs = plan(&federation.run, &federation.state);
        let answers = federation.answers(&jobs);
        let reported = answers[0].1.as_ref().unwrap().report.reach;
        same(&[reported], &Value::from(vec![reach]), "reach");
        assert_eq!(federation.close(&jobs, answers).unchanged, None);
    }
}

#[test]
fn fednova_gives_the_golden_model_for_every_local_solver() {
    for case in golden()["cases"].as_array().unwrap() {
        let name = case["case"].as_str().unwrap();
        let (lr, momentum) = (number(&golden()["lr"]), number(&case["rho"]));
        let nesterov = case["nesterov"].as_bool().unwrap();
        let sgd = Sgd { lr, momentum, nesterov, weight_decay: 0.0 };
        let order = Local { optimizer: sgd.into(), ..local(1, 15, lr, momentum) };
        let label = format!("fedprox:mu={}", case["mu"]);
        let mut federation = clients(&format!("{label}+fednova"), order, &sizes());
        let jobs = plan(&federation.run, &federation.state);
        let answers = federation.answers(&jobs);
        for (k, (_, upload)) in answers.iter().enumerate() {
            let upload = upload.as_ref().unwrap();
            same_f32(&upload.params.values, &case["local_final"][k], name);
            let norm = Value::from(vec![case["a_norm_1"][k].clone()]);
            same(&[upload.report.reach / lr], &norm, name);
        }
        federation.close(&jobs, answers);
        same_f32(federation.model(), &case["x_fednova"], name);
        let mut plain = clients(&label, order, &sizes());
        plain.round();
        same_f32(plain.model(), &case["x_fedavg"], name);
    }
}

#[test]
fn other_weights_enter_the_mean_and_the_effective_reach() {
    let golden = golden();
    let composed = &golden["composed_with_s"];
    // One client balanced, one with one class of five: softmax(-TVD/T) is 0.6 to 0.4 at T = 0.8 / ln 1.5.
    let label = format!("fednova+fedtvd:lambda=1:temperature={}", 0.8 / 1.5f64.ln());
    let order = local(1, 15, number(&golden["lr"]), number(&composed["rho"]));
    let mut federation = clients(&label, order, &[vec![5; 5], vec![75, 0, 0, 0, 0]]);
    let record = federation.round();
    let weights: Vec<f64> = record.clients.iter().map(|client| client.weight.unwrap()).collect();
    same(&weights, &composed["s"], "weights");
    same_f32(federation.model(), &composed["x_new"], "model");
}

#[test]
fn fednova_converges_to_the_optimum_and_fedavg_to_the_step_weighted_one() {
    let golden = golden();
    let limits = &golden["objective_consistency"];
    for (label, lr, rounds, key) in [
        ("fedavg", 0.01, 4_000, "fedavg_limit_lr0.01"),
        ("fednova", 0.01, 4_000, "fednova_limit_lr0.01"),
        ("fedavg", 0.001, 20_000, "fedavg_limit_lr0.001"),
        ("fednova", 0.001, 20_000, "fednova_limit_lr0.001"),
    ] {
        let mut federation = clients(label, local(1, 15, lr, 0.0), &sizes());
        for _ in 0..rounds {
            federation.round();
        }
        settled(federation.model(), &limits[key], key);
        // The limits approach the two optima in proportion to lr, with factors below 1; 1e-4 as above.
        let optimum =
            if label == "fednova" { "true_weighted_optimum" } else { "tau_weighted_surrogate_optimum" };
        for (x, limit) in federation.model().iter().zip(numbers(&limits[optimum])) {
            assert!((f64::from(*x) - limit).abs() < lr + 1e-4, "{key}");
        }
    }
}
