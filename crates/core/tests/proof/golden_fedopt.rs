//! Golden server optimisers: two steps of FedAdagrad, FedAdam and FedYogi with v starting at tau², of FedAdam with bias
//! correction, and of FedAvgM.

use crate::federation::{mean_step, strategy};
use crate::vectors::{number, numbers, read, rows, same, same_f32};
use fedtvd_core::memory::Memory;
use serde_json::Value;

fn golden() -> Value {
    read(include_str!("../golden/fedopt.json"))
}

/// Follows golden steps: the model, and what the server remembers as `[name in memory, name in the vectors]`.
fn follows(label: &str, steps: &Value, remembered: &[[&str; 2]]) {
    let golden = golden();
    let (p, changes) = (numbers(&golden["p"]), &golden["client_deltas_rounds"]);
    let mut memory = Memory::default();
    let mut w: Vec<f32> = numbers(&golden["x0"]).into_iter().map(|x| x as f32).collect();
    for (t, step) in steps.as_array().unwrap().iter().enumerate() {
        let mut mean: Vec<f64> = w.iter().map(|&w| f64::from(w)).collect();
        for (p, change) in p.iter().zip(rows(&changes[t])) {
            mean.iter_mut().zip(change).for_each(|(mean, d)| *mean += p * d);
        }
        w = strategy(label).server.step(&mean_step(&w, &mean), &mut memory);
        let what = format!("{label}, step {}", t + 1);
        for [name, key] in remembered {
            same(memory.f64(name).unwrap(), &step[key], &what);
        }
        same_f32(&w, &step["x"], &what);
    }
}

/// The same for a method with two moments.
fn adapts(label: &str, key: &str) {
    follows(label, &golden()["results"][key], &[["m", "m"], ["v", "v"]]);
}

#[test]
fn fedadam_steps_as_in_the_paper() {
    adapts("fedadam:lr=0.1:tau=0.001", "adam_v0=1e-06");
}

#[test]
fn fedadam_with_bias_correction_steps_as_kingma_and_ba() {
    adapts("fedadam:lr=0.1:tau=0.001:bias_correction=true", "adam_v0=1e-06_biascorrected");
}

#[test]
fn fedadagrad_steps_as_in_the_paper() {
    adapts("fedadagrad:lr=0.1:tau=0.001", "adagrad_v0=1e-06");
}

#[test]
fn fedyogi_steps_as_in_the_paper() {
    adapts("fedyogi:lr=0.1:tau=0.001", "yogi_v0=1e-06");
}

#[test]
fn fedavgm_steps_with_momentum() {
    // The vectors call the momentum v.
    follows("fedavgm:lr=1:beta=0.9", &golden()["fedavgm_beta0.9_eta1"], &[["m", "v"]]);
}

#[test]
fn bias_correction_slows_the_early_rounds_by_the_golden_factors() {
    let golden = golden();
    let [mut plain, mut corrected] = [Memory::default(), Memory::default()];
    for t in 1..=300 {
        // From 0 towards 1 each time, so that the new model is the step itself.
        let step = |label: &str, memory: &mut Memory| {
            strategy(label).server.step(&mean_step(&[0.0], &[1.0]), memory)[0]
        };
        let factor = step("fedadam:bias_correction=true", &mut corrected) / step("fedadam", &mut plain);
        let factors = &golden["bias_correction_factor_b1_0.9_b2_0.99"];
        if let Some(want) = factors.get(t.to_string()) {
            same_f32(&[factor], &Value::from(vec![number(want)]), &format!("step {t}"));
        }
    }
}
