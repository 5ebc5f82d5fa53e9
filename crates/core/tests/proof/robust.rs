//! Properties of the robust rules: what liars can do to them, and what the order of clients cannot.

use crate::exact::{Exact, Quadratic};
use crate::federation::{Federation, Site, bits, local, run, strategy, upload, vector};
use fedtvd_core::labels::Reference;
use fedtvd_core::round::{RoundRecord, plan};
use fedtvd_core::rules::{Rule, Settings, Spec};
use fedtvd_core::strategy::ALL;
use proptest::collection::vec;
use proptest::prelude::*;

/// Rounds in which clients answer with given models.
pub(crate) struct Round(Federation);

impl Round {
    /// Clients with these sizes, all samples in one class, and a start without buffers.
    pub(crate) fn new(label: &str, base: &[f32], sizes: &[u64]) -> Self {
        let site = |(k, &n): (usize, &u64)| Site { id: k as u32, rows: vec![], counts: vec![n, 0] };
        let sites = sizes.iter().enumerate().map(site).collect();
        let nobody = Box::new(Exact::new(Quadratic::default()));
        let base: Vec<f64> = base.iter().map(|&w| f64::from(w)).collect();
        let order = run(label, local(1, 1000, 0.1, 0.0));
        Self(Federation::new(order, vector(&base), Reference::uniform(2), sites, nobody))
    }

    /// Closes a round with these models.
    fn answer(&mut self, models: &[Vec<f32>]) -> RoundRecord {
        let jobs = plan(&self.0.run, &self.0.state);
        let answers = jobs.iter().zip(models).map(|(job, model)| (job.client, Ok(upload(job, model, 1))));
        self.0.close(&jobs, answers.collect())
    }

    /// Closes a round with these models, and returns the weights with which they entered.
    pub(crate) fn close(&mut self, models: &[Vec<f32>]) -> Vec<f64> {
        let record = self.answer(models);
        assert_eq!(record.unchanged, None);
        record.clients.iter().filter_map(|client| client.entered_weight.or(client.weight)).collect()
    }

    /// The global model.
    pub(crate) fn model(&self) -> &[f32] {
        self.0.model()
    }
}

/// The model of one round of equal clients, and the weights with which they entered.
fn combined(label: &str, models: &[Vec<f32>]) -> (Vec<f32>, Vec<f64>) {
    let mut round = Round::new(label, &vec![0.0; models[0].len()], &vec![10; models.len()]);
    let entered = round.close(models);
    (round.model().to_vec(), entered)
}

/// The rules that bound what a minority of liars can do: they combine, and suggest equal weights.
fn robust() -> Vec<&'static Spec> {
    let combines = |spec: &&&Spec| (spec.build)(&Settings::defaults(spec)).rules() == [Rule::Combine];
    let robust = ALL.iter().filter(combines).filter(|spec| spec.suggests == Some("uniform"));
    robust.copied().collect()
}

/// The fewest clients among whom a rule can do what it promises.
fn least(label: &str) -> usize {
    strategy(label).combine.least_clients()
}

fn models(clients: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Vec<f32>>> {
    let value = prop_oneof![-2.0..2.0f32, -1e-3..1e-3f32, Just(0.5f32), Just(0.0f32)];
    vec(vec(value, 4), clients)
}

/// The norm of a change from 0.
fn norm(model: &[f32]) -> f64 {
    model.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt()
}

proptest! {
    #[test]
    fn the_order_of_clients_does_not_matter((models, order) in vec(vec(-2.0..2.0f32, 4), 1..12).prop_flat_map(|mut models| {
        models.push(models[0].clone());
        let order = Just((0..models.len()).collect::<Vec<_>>()).prop_shuffle();
        (Just(models), order)
    })) {
        let shuffled: Vec<Vec<f32>> = order.iter().map(|&k| models[k].clone()).collect();
        for spec in robust().into_iter().filter(|spec| least(spec.name) <= models.len()) {
            let (model, straight) = (combined(spec.name, &shuffled).0, combined(spec.name, &models).0);
            for (got, expected) in model.iter().zip(&straight) {
                prop_assert!((got - expected).abs() <= 1e-5, "{}: {model:?} is not {straight:?}", spec.name);
            }
        }
    }

    #[test]
    fn clients_that_agree_return_their_model(model in vec(-1e6..1e6f32, 4), clients in 1..12usize) {
        for spec in robust().into_iter().filter(|spec| least(spec.name) <= clients) {
            let (got, entered) = combined(spec.name, &vec![model.clone(); clients]);
            prop_assert_eq!(bits(&got), bits(&model), "{}", spec.name);
            prop_assert!((entered.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{}: {:?}", spec.name, entered);
        }
    }

    #[test]
    fn two_liars_of_ten_cannot_move_a_model_beyond_what_honest_clients_allow(
        honest in models(8..9),
        lie in vec(prop_oneof![Just(1e30f32), Just(-1e30f32), Just(f32::MAX), Just(0.0f32), -3.0..3.0f32], 4),
        twin in any::<bool>(),
    ) {
        let other: Vec<f32> = lie.iter().map(|x| if twin { *x } else { -x }).collect();
        let models: Vec<Vec<f32>> = [vec![lie], honest.clone(), vec![other]].concat();
        let farthest = honest.iter().map(|model| norm(model)).fold(0.0, f64::max);
        for spec in robust() {
            let (model, _) = combined(spec.name, &models);
            prop_assert!(model.iter().all(|x| x.is_finite()), "{}: {model:?}", spec.name);
            // Of weight a = 0.2: ‖z‖ ≤ 2 (1 - a) / (1 - 2a) max ‖x_k‖ for a geometric median (Lopuhaa and Rousseeuw 1991);
            // the others stay within the honest clients, or near them.
            prop_assert!(norm(&model) <= 2.0 * 0.8 / 0.6 * farthest + 1e-5, "{}: {model:?}", spec.name);
        }
        // Each parameter within the range of the honest clients.
        for label in ["median", "trimmed-mean"] {
            let (model, _) = combined(label, &models);
            for (place, x) in model.iter().enumerate() {
                let column = honest.iter().map(|model| model[place]);
                let range = column.clone().fold(f32::INFINITY, f32::min)..=column.fold(f32::NEG_INFINITY, f32::max);
                prop_assert!(range.contains(x), "{label}: {x} is outside {range:?}");
            }
        }
    }
}

#[test]
fn liars_at_1e30_do_not_enter_where_a_rule_selects_or_trims() {
    let honest = |k: usize| vec![k as f32 * 0.1, 1.0 - k as f32 * 0.1, 0.5];
    for liars in 1..=3 {
        let models: Vec<Vec<f32>> =
            (0..10).map(|k| if k < liars { vec![1e30, -1e30, 1e30] } else { honest(k) }).collect();
        for (label, bound) in [
            ("median", 0.0),
            ("trimmed-mean:trim=0.3", 0.0),
            ("krum:byzantine=0.3", 0.0),
            ("multi-krum:byzantine=0.3", 0.0),
            // Their pull is limited, not their number.
            ("geometric-median", 1e-29),
            ("centred-clipping", 1e-29),
        ] {
            let (model, entered) = combined(label, &models);
            let lies = &entered[..liars];
            assert!(lies.iter().all(|weight| *weight <= bound), "{label}: {entered:?}");
            assert!(norm(&model) < 3.0, "{label}: {model:?}");
        }
    }
}

#[test]
fn one_client_alone_and_one_of_two_decide_as_the_formulas_say() {
    for spec in robust().into_iter().filter(|spec| least(spec.name) == 1) {
        let (model, entered) = combined(spec.name, &[vec![3.0, -4.0]]);
        assert_eq!((model, entered), (vec![3.0, -4.0], vec![1.0]), "{}", spec.name);
    }
    let two = [vec![3.0, 0.0], vec![5.0, 0.0]];
    for (label, expected) in [
        ("median", 4.0),
        ("trimmed-mean", 4.0),
        // Equal scores: the first client.
        ("krum:byzantine=0", 3.0),
        ("multi-krum:byzantine=0", 4.0),
        // All points between the two have the same sum of distances; the iterations begin at the mean.
        ("geometric-median", 4.0),
        // 0 -> 3, since the second is clipped to the first's distance; then the first is at the centre.
        ("centred-clipping", 3.0),
    ] {
        assert_eq!(combined(label, &two).0, [expected, 0.0], "{label}");
    }
}

#[test]
fn krum_takes_the_first_of_equal_clients_in_the_densest_group() {
    let models = [vec![9.0], vec![1.0], vec![2.0], vec![1.0], vec![1.0], vec![-7.0]];
    let (model, entered) = combined("krum", &models);
    assert_eq!((model, entered), (vec![1.0], vec![0.0, 1.0, 0.0, 0.0, 0.0, 0.0]));
}

#[test]
fn a_trimmed_mean_of_equal_weights_is_the_ordinary_one_and_trimming_all_but_the_middle_the_median() {
    let models: Vec<Vec<f32>> = [9.0, 1.0, 4.0, 2.0, 100.0].map(|x| vec![x]).to_vec();
    assert_eq!(combined("trimmed-mean:trim=0.2", &models).0, [5.0]);
    assert_eq!(combined("trimmed-mean:trim=0.4", &models).0, [4.0]);
    assert_eq!(combined("trimmed-mean:trim=0.49999999999999994", &models).0, [4.0]);
    assert_eq!(combined("trimmed-mean:trim=0", &models).0, [23.2]);
}

#[test]
fn a_client_without_weight_does_not_enter() {
    // Client 0 is balanced, and at this temperature the weights of the others, about e^-5000, are 0.
    for spec in robust() {
        let label = format!("fedtvd:lambda=1:temperature=0.0001+{}", spec.name);
        let site = |(k, counts)| Site { id: k, rows: vec![], counts };
        let sites = [vec![5, 5], vec![10, 0], vec![10, 0], vec![10, 0], vec![10, 0]];
        let sites = (0..).zip(sites).map(site).collect();
        let nobody = Box::new(Exact::new(Quadratic::default()));
        let order = run(&label, local(1, 1000, 0.1, 0.0));
        let federation = Federation::new(order, vector(&[0.0]), Reference::uniform(2), sites, nobody);
        let mut round = Round(federation);
        if least(spec.name) > 1 {
            let record = round.answer(&[vec![1.0], vec![5.0], vec![5.0], vec![5.0], vec![5.0]]);
            let reason = format!("1 of {} needed updates have a weight", least(spec.name));
            assert_eq!((record.unchanged, round.model()), (Some(reason), &[0.0f32][..]), "{label}");
            continue;
        }
        let entered = round.close(&[vec![1.0], vec![5.0], vec![5.0], vec![5.0], vec![5.0]]);
        assert_eq!((round.model(), entered), ([1.0].as_slice(), vec![1.0, 0.0, 0.0, 0.0, 0.0]), "{label}");
    }
}

#[test]
fn a_round_with_too_few_clients_to_leave_one_out_changes_nothing() {
    for (label, fewest) in [
        ("krum", 5),
        ("multi-krum", 5),
        ("multi-krum:byzantine=0.3", 5),
        ("multi-krum:byzantine=0", 1),
        ("median", 1),
    ] {
        assert_eq!(least(label), fewest, "{label}");
    }
    for label in ["krum", "multi-krum"] {
        let mut round = Round::new(label, &[0.5, 0.5], &[10; 4]);
        let mut models = vec![vec![f32::MAX, -f32::MAX]];
        models.extend((1..4).map(|k| vec![k as f32, 0.0]));
        let record = round.answer(&models);
        assert_eq!(record.unchanged.as_deref(), Some("4 of 5 needed updates were accepted"), "{label}");
        assert_eq!(round.model(), [0.5, 0.5], "{label}");
    }
}

#[test]
fn a_geometric_median_converges_against_liars_with_nearly_half_of_the_weight() {
    for (clients, liars) in [(40usize, 19usize), (50, 24), (100, 49)] {
        let model = |k: usize| match k < liars {
            true => vec![f32::MAX, f32::MAX],
            false => vec![(k % 7) as f32 - 3.0, (k % 5) as f32 - 2.0],
        };
        let (median, _) = combined("geometric-median", &(0..clients).map(model).collect::<Vec<_>>());
        // Of weight a: ‖z‖ ≤ 2 (1 - a) / (1 - 2a) max ‖x_k‖ (Lopuhaa and Rousseeuw 1991); the farthest client is at √13.
        let a = liars as f64 / clients as f64;
        let bound = 2.0 * (1.0 - a) / (1.0 - 2.0 * a) * 13f64.sqrt();
        assert!(norm(&median) <= bound, "{liars} of {clients}: {median:?} is farther than {bound}");
    }
}
