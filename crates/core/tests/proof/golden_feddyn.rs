//! Golden FedDyn: rounds under full and partial participation, the sum that the server keeps, and where it converges.

use crate::federation::{Federation, local, quadratics, run};
use crate::vectors::{number, numbers, read, rows, same_f32, settled, widened};
use fedtvd_core::memory::Memory;
use fedtvd_core::round::{Mode, Profile, Run, hardened, plan};
use fedtvd_core::train::Local;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;

fn golden() -> Value {
    read(include_str!("../golden/feddyn.json"))
}

fn clients(label: &str, order: Local, sizes: &[u64]) -> Federation {
    let golden = golden();
    let problem = rows(&golden["h"]).into_iter().zip(rows(&golden["b"])).collect();
    let counts: Vec<Vec<u64>> = sizes.iter().map(|&n| vec![n, 0]).collect();
    quadratics(run(label, order), problem, &numbers(&golden["w0"]), &counts)
}

/// Follows golden rounds: local models, the clients' g_k, h and the model.
fn follows(weights: &str, key: &str) {
    let case = &golden()["cases"][key];
    let label = format!("feddyn:mu={}{weights}", number(&case["mu"]));
    let sizes: Vec<u64> = numbers(&case["sizes"]).into_iter().map(|n| n as u64).collect();
    // One batch per epoch: as many steps for every client.
    let order = local(number(&case["steps"]) as u32, 100, number(&case["lr"]), 0.0);
    let mut federation = clients(&label, order, &sizes);
    for (t, round) in case["rounds"].as_array().unwrap().iter().enumerate() {
        let what = format!("{key}, round {}", t + 1);
        let selected = numbers(&round["selected"]);
        let mut jobs = plan(&federation.run, &federation.state);
        jobs.retain(|job| selected.contains(&f64::from(job.client)));
        let answers = federation.answers(&jobs);
        for ((_, upload), model) in answers.iter().zip(round["clients"].as_array().unwrap()) {
            same_f32(&upload.as_ref().unwrap().params.values, model, &what);
        }
        federation.close(&jobs, answers);
        for (client, g) in selected.iter().zip(round["g"].as_array().unwrap()) {
            same_f32(federation.memory(*client as u32).unwrap().f32("gradient").unwrap(), g, &what);
        }
        let h: Vec<f32> = federation.state.server.f64("h").unwrap().iter().map(|&h| h as f32).collect();
        same_f32(&h, &round["h"], &what);
        same_f32(federation.model(), &round["w"], &what);
    }
}

#[test]
fn full_participation_follows_the_golden_rounds() {
    follows("", "full");
}

#[test]
fn partial_participation_follows_the_golden_rounds() {
    follows("", "partial");
}

#[test]
fn partial_participation_with_weights_by_size_follows_the_golden_rounds() {
    // lambda = 0 weighs by size.
    follows("+fedtvd:lambda=0", "partial_by_size");
}

fn rest(label: &str, sizes: &[u64]) -> Federation {
    // Two hundred steps of 0.1 with curvatures of 0.5 to 2 find a client's minimum.
    let mut federation = clients(label, local(200, 100, 0.1, 0.0), sizes);
    (0..200).for_each(|_| drop(federation.round()));
    federation
}

#[test]
fn with_exact_local_solutions_feddyn_converges_to_the_optimum_of_the_sum_where_fedavg_does_not() {
    let golden = golden();
    let uniform = &golden["optimum_uniform"];
    settled(rest("feddyn:mu=0.5", &[8; 3]).model(), uniform, "uniform weights");
    let by_size = rest("feddyn:mu=0.5+fedtvd:lambda=0", &[60, 30, 10]);
    settled(by_size.model(), &golden["optimum_by_size"], "weights by size");
    // FedAvg converges to the mean of the clients' minima.
    let fedavg = widened(rest("uniform", &[8; 3]).model());
    let gap = fedavg.iter().zip(numbers(uniform)).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(gap > 0.3, "{fedavg:?}");
}

#[test]
fn memories_that_start_again_take_the_servers_sum_with_them() {
    let mut federation = clients("feddyn", local(2, 8, 0.1, 0.0), &[8; 3]);
    federation.round();
    assert!(federation.state.server.f64("h").is_some());
    let run = federation.run.clone();
    federation.state.restart_memories(&run);
    assert!(federation.state.server.is_empty() && federation.state.accepted.is_empty());
    // Another optimiser's memory is not about the clients' memories.
    let mut other = clients("scaffold+fedadam", local(2, 8, 0.1, 0.0), &[8; 3]);
    other.round();
    let (run, before) = (other.run.clone(), other.state.server.clone());
    other.state.restart_memories(&run);
    assert_eq!(other.state.server, before);
}

#[test]
fn no_client_joins_after_the_first_round() {
    let mut federation = clients("feddyn", local(1, 8, 0.1, 0.0), &[8; 3]);
    let late = |client| Profile::new(client, 8, fedtvd_core::labels::Statistic::Nothing);
    let run = federation.run.clone();
    federation.state.enrol(&run, late(7)).unwrap();
    federation.state.roster.pop();
    federation.round();
    let refusal = federation.state.enrol(&run, late(7)).unwrap_err().to_string();
    assert!(refusal.contains('7'), "{refusal}");
}

proptest! {
    #[test]
    fn h_is_the_weighted_sum_of_all_clients_after_every_round(
        sizes in vec(1..40u64, 3..7), weighted: bool, hardened: bool, absences in vec(vec(any::<bool>(), 7), 5),
    ) {
        let label = if weighted { "feddyn:mu=0.3+fedtvd" } else { "feddyn:mu=0.3" };
        let problem = (0..sizes.len()).map(|k| (vec![1.0 + k as f64, 0.5], vec![k as f64 - 2.0, 1.0])).collect();
        let counts: Vec<Vec<u64>> = sizes.iter().map(|n| vec![n / 3, n - n / 3]).collect();
        let mode = if hardened { Mode::Hardened } else { Mode::Paper };
        let order = Run { mode, ..run(label, local(2, 8, 0.02, 0.9)) };
        let mut federation = quadratics(order, problem, &[0.5, 0.25], &counts);
        let roster: Vec<&Profile> = federation.state.roster.iter().collect();
        let (weighting, reference) = (federation.run.strategy.weighting.as_ref(), &federation.state.reference);
        let weights = hardened::shares(weighting, mode, &roster, reference, &mut Memory::default()).weight;
        for absent in absences {
            let present: Vec<u32> = (0..sizes.len() as u32).filter(|k| !absent[*k as usize]).collect();
            federation.round_of(&present);
            let zeros = vec![0.0; 2];
            let h = federation.state.server.f64("h").unwrap_or(&zeros).to_vec();
            for (i, h) in h.iter().enumerate() {
                let own = |k: usize| {
                    federation.memory(k as u32).map_or(0.0, |memory| memory.f32("gradient").unwrap()[i])
                };
                let sum: f64 = weights.iter().enumerate().map(|(k, s)| s * f64::from(own(k))).sum();
                // Five rounds of numbers up to 20 in f32.
                prop_assert!((h - sum).abs() < 2e-5, "{} is not {}", h, sum);
            }
        }
    }
}
