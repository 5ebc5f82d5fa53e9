//! Golden SCAFFOLD, options I and II with the correction inside the gradient: rounds, variates and fixed points.

use crate::federation::{Federation, local, quadratics, run};
use crate::vectors::{numbers, read, rows, same_f32, settled};
use fedtvd_core::round::plan;
use fedtvd_core::train::Local;
use serde_json::Value;

fn golden() -> Value {
    read(include_str!("../golden/scaffold.json"))
}

fn clients(label: &str, order: Local, sizes: [u64; 3]) -> Federation {
    let golden = golden();
    let problem = rows(&golden["h"]).into_iter().zip(rows(&golden["b"])).collect();
    quadratics(run(label, order), problem, &numbers(&golden["x0"]), &sizes.map(|n| vec![n, 0]))
}

/// Follows golden rounds: local models, changes of the variates, the clients' variates, model and c.
fn follows(label: &str, order: Local, key: &str) {
    let mut federation = clients(label, order, [8; 3]);
    for round in golden()[key].as_array().unwrap() {
        let what = format!("{key}, round {}", round["round"]);
        let selected = numbers(&round["selected"]);
        let mut jobs = plan(&federation.run, &federation.state);
        jobs.retain(|job| selected.contains(&f64::from(job.client)));
        let base = federation.model().to_vec();
        let answers = federation.answers(&jobs);
        for ((_, upload), client) in answers.iter().zip(round["clients"].as_array().unwrap()) {
            let upload = upload.as_ref().unwrap();
            let last = client["path"].as_array().unwrap().last().unwrap();
            same_f32(&upload.params.values, last, &what);
            let moved: Vec<f32> = upload.params.values.iter().zip(&base).map(|(y, x)| y - x).collect();
            same_f32(&moved, &client["delta_y"], &what);
            same_f32(upload.carried.f32("control").unwrap(), &client["delta_c"], &what);
        }
        federation.close(&jobs, answers);
        for client in round["clients"].as_array().unwrap() {
            let memory = federation.memory(client["client"].as_u64().unwrap() as u32).unwrap();
            same_f32(memory.f32("control").unwrap(), &client["c_i_plus"], &what);
        }
        same_f32(federation.model(), &round["x"], &what);
        same_f32(federation.state.carried.f32("control").unwrap(), &round["c"], &what);
    }
}

#[test]
fn full_participation_follows_the_golden_rounds() {
    follows("scaffold", local(3, 8, 0.1, 0.0), "option2_full");
}

#[test]
fn option_one_follows_the_golden_rounds() {
    follows("scaffold:option=1", local(3, 8, 0.1, 0.0), "option1_full");
}

#[test]
fn partial_participation_follows_the_golden_rounds() {
    follows("scaffold", local(3, 8, 0.1, 0.0), "option2_partial_participation");
}

#[test]
fn a_server_rate_of_one_half_follows_the_golden_rounds() {
    follows("scaffold+fedavg:server_lr=0.5", local(3, 8, 0.1, 0.0), "option2_eta_g_0.5");
}

#[test]
fn under_momentum_the_variates_are_normalised_by_the_reach() {
    let key = "momentum0.9_K4_lr0.05_correction_inside_normaliser_a_norm";
    follows("scaffold", local(4, 8, 0.05, 0.9), key);
}

fn rest(label: &str, order: Local, sizes: [u64; 3], rounds: usize) -> Federation {
    let mut federation = clients(label, order, sizes);
    for _ in 0..rounds {
        federation.round();
    }
    federation
}

#[test]
fn twenty_momentum_steps_converge_where_dividing_by_their_number_would_diverge() {
    let federation = rest("scaffold", local(20, 8, 0.05, 0.9), [8; 3], 200);
    settled(federation.model(), &golden()["momentum_200_rounds_K20_lr0.05"]["correct"], "200 rounds");
}

#[test]
fn scaffold_converges_to_the_uniform_optimum_even_with_unequal_steps() {
    let points = &golden()["fixed_points"];
    let equal = rest("scaffold", local(5, 8, 0.02, 0.0), [8; 3], 3_000);
    settled(equal.model(), &points["scaffold_uniform"], "equal steps");
    settled(equal.model(), &points["optimum_uniform"], "equal steps");
    // Batches of one sample: 2, 5 and 20 steps.
    let unequal = rest("scaffold", local(1, 1, 0.02, 0.0), [2, 5, 20], 3_000);
    settled(unequal.model(), &points["scaffold_uniform_unequal_K_2_5_20"], "unequal steps");
}

#[test]
fn weights_on_model_and_variate_move_the_fixed_point_to_the_weighted_optimum() {
    let points = &golden()["fixed_points"];
    // lambda = 0 weighs by size: 0.6, 0.3, 0.1. Five epochs of one batch are five steps for each.
    let order = local(5, 60, 0.02, 0.0);
    let weighted = rest("scaffold+fedtvd:lambda=0", order, [60, 30, 10], 3_000);
    settled(weighted.model(), &points["scaffold_weights_on_model_and_c"], "weighted");
    settled(weighted.model(), &points["optimum_weighted"], "weighted");
    let drifting = rest("fedavg", order, [60, 30, 10], 3_000);
    settled(drifting.model(), &points["fedavg_weighted_K5_lr0.02"], "FedAvg converges elsewhere");
}
