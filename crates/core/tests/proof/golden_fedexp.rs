//! Golden FedExP, and how far one client can drive its step.

use crate::federation::{bits, local, quadratics, run, strategy, upload};
use crate::vectors::{number, numbers, read, rows, same, same_f32};
use fedtvd_core::memory::Memory;
use fedtvd_core::round::{Mode, Run, plan};
use fedtvd_core::rules::Step;
use proptest::collection::vec;
use proptest::prelude::*;

fn norm(values: &[f64]) -> f64 {
    values.iter().map(|x| x * x).sum::<f64>().sqrt()
}

#[test]
fn fedexp_extrapolates_as_in_the_paper() {
    let golden = read(include_str!("../golden/fedexp.json"));
    for case in golden["cases"].as_array().unwrap() {
        let (p, epsilon) = (numbers(&case["p"]), number(&case["eps"]));
        let mut w: Vec<f32> = numbers(&golden["x0"]).into_iter().map(|x| x as f32).collect();
        for (round, want) in case["rounds"].as_array().unwrap().iter().zip(case["steps"].as_array().unwrap())
        {
            let changes = rows(round);
            let norms: Vec<f64> = changes.iter().map(|change| norm(change)).collect();
            same(&norms, &want["norms"], "norms");
            let mut mean: Vec<f64> = w.iter().map(|&w| f64::from(w)).collect();
            for (p, change) in p.iter().zip(&changes) {
                mean.iter_mut().zip(change).for_each(|(mean, d)| *mean += p * d);
            }
            let (base, aggregate, limit) = (&w[..], &mean[..], f64::INFINITY);
            let step = Step { base, aggregate, weights: &p, norms: &norms, limit, roster_change: &[] };
            let server = strategy(&format!("fedexp:epsilon={epsilon}")).server;
            w = server.step(&step, &mut Memory::default());
            same_f32(&w, &want["x"], case["name"].as_str().unwrap());
        }
    }
}

/// The length of the server's step and the bound of the round, if clients of ten samples move from zero by these changes.
fn step_and_bound(label: &str, mode: Mode, changes: &[Vec<f32>]) -> (f64, f64) {
    let run = Run { mode, ..run(label, local(1, 10, 0.1, 0.0)) };
    let rows = vec![(vec![1.0; 4], vec![0.0; 4]); changes.len()];
    let mut federation = quadratics(run, rows, &[0.0; 4], &vec![vec![5, 5]; changes.len()]);
    let jobs = plan(&federation.run, &federation.state);
    let answers = jobs.iter().zip(changes).map(|(job, change)| (job.client, Ok(upload(job, change, 1))));
    let record = federation.close(&jobs, answers.collect());
    assert_eq!(record.unchanged, None);
    let model: Vec<f64> = federation.model().iter().map(|&x| f64::from(x)).collect();
    let mut norms: Vec<f64> = record.clients.iter().map(|client| client.norm.unwrap()).collect();
    let bound = record.clients.iter().find_map(|client| client.screened.as_ref()).map(|s| s.bound);
    norms.sort_by(f64::total_cmp);
    (norm(&model), bound.unwrap_or(norms[norms.len() - 1]))
}

#[test]
fn in_hardened_mode_a_client_of_huge_norm_lengthens_the_step_no_more_than_screening_allows() {
    let honest = vec![vec![1.0f32, 0.1, 0.0, 0.0], vec![1.0, 0.0, 0.1, 0.0], vec![1.0, 0.0, 0.0, 0.1]];
    let with = |liar: Vec<f32>| [honest.clone(), vec![liar]].concat();
    let (plain, _) = step_and_bound("fedexp", Mode::Hardened, &with(honest[0].clone()));
    for size in [10.0, 1e3, 1e10, 1e30] {
        // Across the others' direction: its norm enters eta, its change hardly does the mean.
        let lies = with(vec![0.0, size, 0.0, 0.0]);
        let (hardened, bound) = step_and_bound("fedexp", Mode::Hardened, &lies);
        assert!(hardened <= bound && hardened < 1.5 * plain, "{size}: {hardened} and {plain}, bound {bound}");
        let (paper, _) = step_and_bound("fedexp", Mode::Paper, &lies);
        assert!(paper > 0.2 * f64::from(size), "{size}: {paper}");
    }
}

#[test]
fn in_hardened_mode_clients_that_cancel_the_mean_do_not_lengthen_the_step() {
    // Two of ten send the opposite of what the other eight want, four times: the mean nearly vanishes, and eta would be 130.
    let changes: Vec<Vec<f32>> = (0..10)
        .map(|k| if k < 2 { vec![-4.0 + 0.01, 0.0, 0.0, 0.0] } else { vec![1.0, 0.1, 0.0, 0.0] })
        .collect();
    let (paper, _) = step_and_bound("fedexp:epsilon=0.0001", Mode::Paper, &changes);
    assert!(paper > 10.0, "{paper}");
    let (hardened, _) = step_and_bound("fedexp:epsilon=0.0001", Mode::Hardened, &changes);
    assert!(hardened < 1.02, "the others moved by 1.005: {hardened}");
}

proptest! {
    #[test]
    fn in_hardened_mode_the_step_is_at_most_the_bound_of_a_single_client(
        honest in vec(vec(-1.0..1.0f32, 4), 3..8), lie in vec(-1e4..1e4f32, 4), exponent in -4.0..0.0f64,
    ) {
        let epsilon = 10f64.powf(exponent);
        let label = format!("fedexp:epsilon={epsilon}");
        let changes: Vec<Vec<f32>> = honest.into_iter().chain([lie]).collect();
        let (step, bound) = step_and_bound(&label, Mode::Hardened, &changes);
        // Rounding to f32.
        prop_assert!(step <= bound * (1.0 + 1e-5), "{} is more than {}", step, bound);
    }

    #[test]
    fn clients_that_agree_are_averaged_as_in_fedavg(change in vec(-2.0..2.0f32, 4), clients in 1..6usize) {
        let after = |label: &str| {
            let rows = vec![(vec![1.0; 4], vec![0.0; 4]); clients];
            let mut federation =
                quadratics(run(label, local(1, 10, 0.1, 0.0)), rows, &[0.25; 4], &vec![vec![5, 5]; clients]);
            let jobs = plan(&federation.run, &federation.state);
            let answers = jobs.iter().map(|job| (job.client, Ok(upload(job, &change, 1)))).collect();
            federation.close(&jobs, answers);
            bits(federation.model())
        };
        prop_assert_eq!(after("fedexp"), after("fedavg"));
    }
}
