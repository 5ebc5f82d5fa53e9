//! Golden FedProx: its gradient, its steps with and without momentum, and the point that it converges to.

use crate::federation::{local, quadratics, run};
use crate::vectors::{number, numbers, read, rows, same_f32, settled, widened};
use fedtvd_core::stream::Key;
use fedtvd_core::train::{OptimizerState, Pull, step};
use serde_json::Value;

/// The model of a single client after this many steps of FedProx.
fn after(golden: &Value, mu: &str, steps: u32, lr: f64, momentum: f64) -> Vec<f32> {
    let problem = vec![(numbers(&golden["h"]), numbers(&golden["b"]))];
    let order = run(&format!("fedprox:mu={mu}"), local(steps, 8, lr, momentum));
    let mut federation = quadratics(order, problem, &numbers(&golden["w_t"]), &[vec![4, 4]]);
    federation.round();
    federation.model().to_vec()
}

#[test]
fn the_proximal_gradient_is_the_golden_one() {
    let golden = read(include_str!("../golden/fedprox.json"));
    let check = &golden["gradient_check"];
    let narrow = |value: &Value| numbers(value).into_iter().map(|x| x as f32).collect::<Vec<_>>();
    let (anchor, gradient) = (narrow(&golden["w_t"]), narrow(&check["grad_F"]));
    // One plain step of rate 1 moves by the gradient itself.
    let mut pass = local(1, 1, 1.0, 0.0).pass(Key::of(0), None, None);
    pass.pull = Some(Pull { mu: number(&check["mu"]), anchor: &anchor });
    let start = narrow(&check["w"]);
    let mut w = start.clone();
    let mut state = OptimizerState::default();
    state.begin(&pass, 2);
    step(&pass, &mut w, &mut state, &gradient);
    let moved: Vec<f32> = start.iter().zip(&w).map(|(from, to)| from - to).collect();
    same_f32(&moved, &check["grad_total"], "gradient with the proximal term");
}

#[test]
fn fedprox_follows_the_golden_paths() {
    let golden = read(include_str!("../golden/fedprox.json"));
    for (mu, path) in golden["sgd_3_steps_lr0.1"].as_object().unwrap() {
        for (steps, point) in rows(path).into_iter().enumerate().skip(1) {
            same_f32(&after(&golden, mu, steps as u32, 0.1, 0.0), &Value::from(point), mu);
        }
    }
    for (steps, point) in rows(&golden["momentum0.9_mu0.1_3_steps"]).into_iter().enumerate().skip(1) {
        same_f32(&after(&golden, "0.1", steps as u32, 0.1, 0.9), &Value::from(point), "momentum");
    }
}

#[test]
fn fedprox_converges_to_the_minimiser_of_its_proximal_problem() {
    let golden = read(include_str!("../golden/fedprox.json"));
    for (mu, minimiser) in golden["exact_local_minimiser"].as_object().unwrap() {
        let rest = after(&golden, mu, 2000, 0.05, 0.0);
        settled(&rest, minimiser, mu);
        assert_ne!(widened(&rest), numbers(&golden["b"]), "the plain minimiser differs");
    }
}
