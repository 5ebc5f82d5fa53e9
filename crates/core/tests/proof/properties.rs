//! Properties of weights and methods that hold for arbitrary clients.

use crate::exact::{Exact, Problem, Quadratic};
use crate::federation::{
    Federation, Site, bits, buffered_layout, local, quadratics, run, skewed, strategy, upload, vector,
};
use fedtvd_core::labels::{Reference, size, tvd};
use fedtvd_core::memory::Memory;
use fedtvd_core::model::Params;
use fedtvd_core::round::hardened::shares;
use fedtvd_core::round::{Job, Mode, Profile, Run, plan};
use fedtvd_core::rules::{Shares, Spec};
use fedtvd_core::strategy::ALL;
use fedtvd_core::train::{Adam, Local, Optimizer, Sgd};
use proptest::collection::vec;
use proptest::prelude::*;

/// Label counts of several clients, all with the same number of classes.
fn clients() -> impl Strategy<Value = Vec<Vec<u64>>> {
    (2..8usize, 1..12usize).prop_flat_map(|(classes, clients)| {
        let count = prop_oneof![Just(0u64), 0..40u64, 0..3_000u64];
        vec(vec(count, classes).prop_filter("a client has samples", |h| size(h) > 0), clients)
    })
}

fn shares_of(label: &str, counts: &[Vec<u64>]) -> Shares {
    shares_in(Mode::Paper, label, counts)
}

fn shares_in(mode: Mode, label: &str, counts: &[Vec<u64>]) -> Shares {
    let (strategy, q) = (strategy(label), Reference::uniform(counts[0].len()));
    let site = |(k, counts): (usize, &Vec<u64>)| {
        Site { id: k as u32, rows: vec![], counts: counts.clone() }.profile(&strategy, &q)
    };
    let profiles: Vec<Profile> = counts.iter().enumerate().map(site).collect();
    let profiles: Vec<&Profile> = profiles.iter().collect();
    shares(strategy.weighting.as_ref(), mode, &profiles, &q, &mut Memory::default())
}

/// Whether numbers agree up to a few dozen roundings of sums in another order.
fn near(a: &[f64], b: &[f64], slack: f64) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= slack)
}

/// A round in which the clients answer with given models after given numbers of steps.
fn given(label: &str, start: &Params, sizes: &[u64], models: &[Vec<f32>], steps: &[u64]) -> Federation {
    let site = |(k, &n): (usize, &u64)| Site { id: k as u32, rows: vec![], counts: vec![n, 0, 0] };
    let sites = sizes.iter().enumerate().map(site).collect();
    let nobody = Box::new(Exact::new(Quadratic::default()));
    let order = run(label, local(1, 1, 0.1, 0.9));
    let mut federation = Federation::new(order, start.clone(), Reference::uniform(3), sites, nobody);
    let jobs = plan(&federation.run, &federation.state);
    let answer = |job: &Job| {
        let k = job.client as usize;
        let model = Params { values: models[k].clone(), ..start.clone() };
        let model = strategy(label).parts(&start.layout).shared_of(model);
        (job.client, Ok(upload(job, &model.values, steps[k].min(sizes[k]))))
    };
    let answers = jobs.iter().map(answer).collect();
    let record = federation.close(&jobs, answers);
    assert_eq!(record.unchanged, None, "{:?}", record.clients);
    federation
}

fn model() -> impl Strategy<Value = Vec<f32>> {
    vec(prop_oneof![-2.0..2.0f32, -1e-6..1e-6f32, -1e6..1e6f32], 10).prop_map(|mut model| {
        // The last two are variances.
        model[8..].iter_mut().for_each(|variance| *variance = variance.abs());
        model
    })
}

proptest! {
    #[test]
    fn weights_sum_to_one(counts in clients()) {
        for spec in ALL {
            let Shares { weight, size, quality } = shares_of(spec.name, &counts);
            for shares in [Some(weight), Some(size), quality].into_iter().flatten() {
                prop_assert!(shares.iter().all(|s| (0.0..=1.0).contains(s)), "{}: {:?}", spec.name, shares);
                prop_assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-14, "{}", spec.name);
            }
        }
    }

    #[test]
    fn reordering_clients_reorders_their_weights((counts, order) in clients().prop_flat_map(|counts| {
        let order = Just((0..counts.len()).collect::<Vec<_>>()).prop_shuffle();
        (Just(counts), order)
    })) {
        let shuffled: Vec<Vec<u64>> = order.iter().map(|&k| counts[k].clone()).collect();
        for spec in ALL {
            let straight = shares_of(spec.name, &counts).weight;
            let expected: Vec<f64> = order.iter().map(|&k| straight[k]).collect();
            let weight = shares_of(spec.name, &shuffled).weight;
            // FedDkw's 1/KL magnifies the rounding of a mean in another order: a KL above its floor of 1e-8
            // is a difference of terms that are rounded at 1e-17.
            prop_assert!(near(&weight, &expected, 1e-8), "{}: {:?} {:?}", spec.name, weight, expected);
        }
    }

    #[test]
    fn clients_of_equal_size_and_labels_have_equal_weights(counts in clients(), clients in 1..12usize) {
        for spec in ALL {
            let weight = shares_of(spec.name, &vec![counts[0].clone(); clients]).weight;
            prop_assert!(near(&weight, &vec![1.0 / clients as f64; clients], 1e-15), "{}", spec.name);
        }
    }

    #[test]
    fn a_lambda_of_zero_is_bit_identical_to_fedavg(counts in clients()) {
        for spec in ALL.iter().filter(|spec| spec.params.iter().any(|param| param.name == "lambda")) {
            let weight = shares_of(&format!("{}:lambda=0", spec.name), &counts).weight;
            prop_assert_eq!(weight, shares_of("fedavg", &counts).weight, "{}", spec.name);
        }
    }

    #[test]
    fn distance_to_a_uniform_reference_does_not_depend_on_the_order_of_classes(
        (counts, renamed) in vec(0..5_000u64, 2..40).prop_filter("samples", |h| size(h) > 0)
            .prop_flat_map(|h| (Just(h.clone()), Just(h).prop_shuffle())),
    ) {
        let q = Reference::uniform(counts.len());
        prop_assert!((tvd(&counts, &q) - tvd(&renamed, &q)).abs() < 1e-14);
    }

    #[test]
    fn scaling_all_clients_changes_no_weight_and_scaling_one_changes_only_its_size(
        counts in clients(), times in 2..50u64,
    ) {
        let scaled = |h: &Vec<u64>| h.iter().map(|n| n * times).collect::<Vec<_>>();
        let all: Vec<Vec<u64>> = counts.iter().map(scaled).collect();
        let mut one = counts.clone();
        one[0] = scaled(&one[0]);
        let before = shares_of("fedtvd", &counts);
        let after = shares_of("fedtvd", &all);
        prop_assert!(near(&after.weight, &before.weight, 1e-14));
        let after = shares_of("fedtvd", &one);
        prop_assert!(near(&after.quality.unwrap(), &before.quality.unwrap(), 1e-14));
        prop_assert_eq!(counts.len() > 1, after.weight[0] > before.weight[0]);
    }

    #[test]
    fn a_model_that_no_client_changed_stays_unchanged(
        start in model(), sizes in vec(1..1_000u64, 1..12), steps in vec(1..1_000u64, 12),
    ) {
        let start = Params { layout: buffered_layout(), values: start };
        let enough = |spec: &&&Spec| strategy(spec.name).combine.least_clients() <= sizes.len();
        for spec in ALL.iter().filter(enough) {
            let models = vec![start.values.clone(); sizes.len()];
            let after = given(spec.name, &start, &sizes, &models, &steps);
            // -0 and 0 are the same model.
            let plain = |values: &[f32]| bits(&values.iter().map(|x| x + 0.0).collect::<Vec<_>>());
            let before = strategy(spec.name).parts(&start.layout).shared_of(start.clone());
            prop_assert_eq!(plain(after.model()), plain(&before.values), "{}", spec.name);
        }
    }

    #[test]
    fn running_variances_are_never_negative(
        start in model(), models in vec(model(), 6), sizes in vec(1..1_000u64, 6), steps in vec(1..1_000u64, 6),
    ) {
        let start = Params { layout: buffered_layout(), values: start };
        for spec in ALL {
            let after = given(spec.name, &start, &sizes, &models, &steps);
            let variances = after.state.params.tensor("bn.running_var").unwrap_or_default();
            prop_assert!(variances.iter().all(|variance| *variance >= 0.0), "{}", spec.name);
        }
    }

    #[test]
    fn fednova_with_equal_steps_is_fedavg(
        start in vec(-2.0..2.0f32, 10), models in vec(vec(0.0..2.0f32, 10), 5), sizes in vec(9..1_000u64, 5),
        steps in 1..9u64,
    ) {
        let start = Params { layout: buffered_layout(), values: start };
        let [nova, plain] =
            ["fednova", "fedavg"].map(|label| given(label, &start, &sizes, &models, &[steps; 5]));
        for (a, b) in nova.model().iter().zip(plain.model()) {
            // Both are sums in f64, rounded once to f32.
            prop_assert!((a - b).abs() <= f32::EPSILON * b.abs().max(1e-3), "{} is not {}", a, b);
        }
    }

    #[test]
    fn a_server_lr_close_to_one_is_close_to_fedavg(
        start in vec(-2.0..2.0f32, 10), models in vec(vec(0.0..2.0f32, 10), 4), sizes in vec(1..1_000u64, 4),
    ) {
        let start = Params { layout: buffered_layout(), values: start };
        let label = format!("fedavg:server_lr={}", 1f64.next_down());
        let [stepped, adopted] =
            [label.as_str(), "fedavg"].map(|label| given(label, &start, &sizes, &models, &[1; 4]));
        for (a, b) in stepped.model().iter().zip(adopted.model()) {
            prop_assert!((a - b).abs() <= f32::EPSILON * b.abs().max(1e-3), "{} is not {}", a, b);
        }
    }
}

/// A problem whose gradient is one, everywhere.
struct Slope;

impl Problem for Slope {
    fn rows(&self) -> usize {
        100
    }

    fn gradient(&self, w: &[f32], _: u32, _: Option<&[f32]>, gradient: &mut [f64]) -> f64 {
        gradient.iter_mut().for_each(|g| *g += 1.0);
        w.iter().map(|&w| f64::from(w)).sum()
    }

    fn evaluate_row(&self, w: &[f32], _: u32, _: Option<&[f32]>) -> (f64, [usize; 3]) {
        (w.iter().map(|&w| f64::from(w)).sum(), [0, 0, 1])
    }
}

proptest! {
    #[test]
    fn under_a_gradient_of_one_adam_moves_by_its_reach_and_is_accepted(
        samples in 1..100usize, epochs in 1..5u32, lr in 0.001..0.1f64, decoupled: bool,
        beta1 in 0.0..0.95f64, beta2 in 0.0..0.9999f64, eps in 1e-8..0.5f64,
        epoch_decay in prop_oneof![Just(1.0), 0.5..1.0f64],
    ) {
        let adam = Adam { lr, beta1, beta2, eps, weight_decay: 0.0 };
        let optimizer = if decoupled { Optimizer::AdamW(adam) } else { Optimizer::Adam(adam) };
        let order = Local { epoch_decay, optimizer, ..local(epochs, 8, lr, 0.0) };
        let site = Site { id: 0, rows: (0..samples as u32).collect(), counts: vec![samples as u64, 0] };
        let (start, q) = (vector(&[0.0, 0.0]), Reference::uniform(2));
        let mut federation =
            Federation::new(run("fedavg", order), start, q, vec![site], Box::new(Exact::new(Slope)));
        let jobs = plan(&federation.run, &federation.state);
        let answers = federation.answers(&jobs);
        let upload = answers[0].1.clone().unwrap();
        for w in &upload.params.values {
            // Rounding of a hundred f32 steps, and of 1 - beta2 in f32.
            prop_assert!((f64::from(-w) / upload.report.reach - 1.0).abs() < 2e-3, "{} {}", w, upload.report.reach);
        }
        prop_assert_eq!(federation.close(&jobs, answers).clients[0].failure.clone(), None);
    }
}

proptest! {
    #[test]
    fn under_a_gradient_of_one_every_solver_moves_by_its_reach(
        samples in 1..100usize, epochs in 1..5u32, lr in 0.001..0.1f64,
        momentum in prop_oneof![Just(0.0), 0.1..0.95f64], nesterov: bool,
        epoch_decay in prop_oneof![Just(1.0), 0.5..1.0f64], mu in 0.1..2.0f64,
    ) {
        let sgd = Sgd { lr, momentum, nesterov, weight_decay: 0.0 };
        let order = Local { epoch_decay, optimizer: sgd.into(), ..local(epochs, 8, lr, momentum) };
        for label in ALL.iter().map(|spec| spec.name.to_owned()).chain([format!("fedprox:mu={mu}")]) {
            let site = Site { id: 0, rows: (0..samples as u32).collect(), counts: vec![samples as u64, 0] };
            let trainer = Box::new(Exact::new(Slope));
            let (start, q) = (vector(&[0.0, 0.0]), Reference::uniform(2));
            let mut federation = Federation::new(run(&label, order), start, q, vec![site], trainer);
            let zeros = federation.state.params.clone();
            federation.state.branches.iter_mut().for_each(|branch| branch.params = zeros.clone());
            let jobs = plan(&federation.run, &federation.state);
            let upload = federation.answers(&jobs).remove(0).1.unwrap();
            for w in upload.params.values {
                // Rounding of a hundred f32 steps, none longer than the total distance.
                prop_assert!((f64::from(-w) / upload.report.reach - 1.0).abs() < 2e-5, "{}", label);
            }
        }
    }

    #[test]
    fn the_control_variate_is_the_weighted_mean_of_the_clients_after_every_round(
        sizes in vec(1..40u64, 2..7), weighted: bool, hardened: bool, absences in vec(vec(any::<bool>(), 7), 5),
        option in 1..=2u8, damping in prop_oneof![Just(1.0), 0.0..=1.0f64],
    ) {
        let weights = if weighted { "+fedtvd" } else { "" };
        let label = &format!("scaffold:option={option}:damping={damping}{weights}");
        let problem = (0..sizes.len()).map(|k| (vec![1.0 + k as f64, 0.5], vec![k as f64 - 2.0, 1.0])).collect();
        let counts: Vec<Vec<u64>> = sizes.iter().map(|n| vec![n / 3, n - n / 3]).collect();
        let mode = if hardened { Mode::Hardened } else { Mode::Paper };
        let order = Run { mode, ..run(label, local(2, 8, 0.02, 0.9)) };
        let mut federation = quadratics(order, problem, &[0.5, 0.25], &counts);
        let weights = shares_in(mode, label, &counts).weight;
        for absent in absences {
            let present: Vec<u32> = (0..sizes.len() as u32).filter(|k| !absent[*k as usize]).collect();
            federation.round_of(&present);
            let c = federation.state.carried.f32("control").unwrap();
            for (i, c) in c.iter().enumerate() {
                let own = |k: usize| {
                    federation.memory(k as u32).map_or(0.0, |memory| memory.f32("control").unwrap()[i])
                };
                let mean: f64 = weights.iter().enumerate().map(|(k, s)| s * f64::from(own(k))).sum();
                // Five rounds of f32 sums of numbers up to 20.
                prop_assert!((f64::from(*c) - mean).abs() < 2e-5, "{} is not {}", c, mean);
            }
        }
    }

    #[test]
    fn statistics_are_the_weighted_mean_of_the_clients_seen_after_every_round_and_the_models_buffers(
        counts in vec([1..9u64, 1..9u64, 1..9u64], 2..7), weighted: bool, absences in vec(vec(any::<bool>(), 7), 5),
    ) {
        let label = if weighted { "bn-scaffold+fedtvd" } else { "bn-scaffold" };
        let mut federation = skewed(run(label, local(2, 4, 0.02, 0.9)), &counts);
        let counts: Vec<Vec<u64>> = counts.iter().map(|counts| counts.to_vec()).collect();
        let weights = shares_of(label, &counts).weight;
        for absent in absences {
            let present: Vec<u32> = (0..counts.len() as u32).filter(|k| !absent[*k as usize]).collect();
            federation.round_of(&present);
            let own: Vec<(f64, &[f32])> = weights
                .iter()
                .zip(0..)
                .filter_map(|(weight, k)| Some((*weight, federation.memory(k)?.f32("statistics").unwrap())))
                .collect();
            let found = federation.state.carried.f32("statistics").unwrap();
            let seen: f64 = own.iter().map(|(weight, _)| weight).sum();
            for (i, found) in found.iter().enumerate().filter(|_| seen > 0.0) {
                let mean = own.iter().map(|(weight, own)| weight * f64::from(own[i])).sum::<f64>() / seen;
                // Five rounds of f32 sums of numbers of about 1.
                prop_assert!((f64::from(*found) - mean).abs() < 2e-6, "{} is not {}", found, mean);
            }
            prop_assert!(found[2..].iter().all(|variance| *variance >= 0.0));
            prop_assert_eq!(bits(found), bits(&federation.model()[6..]));
        }
    }

    #[test]
    fn statistics_never_have_a_negative_variance_whatever_clients_claim(change in -1e3..1e3f32) {
        let mut federation = skewed(run("bn-scaffold", local(1, 4, 0.1, 0.0)), &[[1, 1, 1]; 2]);
        let jobs = plan(&federation.run, &federation.state);
        let values = federation.model().to_vec();
        let answer = |job: &Job| {
            let mut upload = upload(job, &values, 1);
            upload.carried.put("statistics", vec![change; 4]);
            (job.client, Ok(upload))
        };
        let answers = jobs.iter().map(answer).collect();
        federation.close(&jobs, answers);
        let expected = [change, change, (1.0 + change).max(0.0), (1.0 + change).max(0.0)];
        // Two halves are added in f64.
        prop_assert_eq!(&federation.model()[6..], expected);
    }
}
