//! Bit-exact equalities between methods, and between ways to run them.

use crate::exact::{Exact, Problem, Quadratic};
use crate::federation::{Federation, SKEWED, Site, bits, local, quadratics, run, skewed, vector};
use fedtvd_core::labels::Reference;
use fedtvd_core::round::Run;
use fedtvd_core::rules::{Settings, Spec};
use fedtvd_core::strategy::ALL;
use fedtvd_core::stream::Key;
use fedtvd_core::train::{
    Adam, ClassWeights, Local, Optimizer, OptimizerState, Pass, Pull, Schedule, Sgd, Trainer, step,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// Local training with everything on: momentum, Nesterov, weight decay and both schedules.
fn rich() -> Local {
    let sgd = Sgd { lr: 0.05, momentum: 0.9, nesterov: true, weight_decay: 0.01 };
    let schedule = Schedule::exponential(0.95);
    Local { epochs: 3, batch: 4, optimizer: sgd.into(), schedule, epoch_decay: 0.9, ..Local::default() }
}

fn after_four_rounds(mut federation: Federation) -> Vec<u32> {
    let start = bits(federation.model());
    for _ in 0..4 {
        federation.round();
    }
    assert_ne!(bits(federation.model()), start);
    bits(federation.model())
}

/// Whether two strategies give the same bits for the same clients.
fn equal(first: &str, second: &str, counts: &[[u64; 3]]) -> bool {
    [local(2, 4, 0.1, 0.0), local(2, 4, 0.1, 0.9), rich()].iter().all(|order| {
        let models = [first, second].map(|label| after_four_rounds(skewed(run(label, *order), counts)));
        models[0] == models[1]
    })
}

#[test]
fn fedprox_with_mu_zero_is_fedavg() {
    assert!(equal("fedprox:mu=0", "fedavg", &SKEWED));
    assert!(!equal("fedprox", "fedavg", &SKEWED));
}

#[test]
fn label_aware_losses_are_plain_cross_entropy_if_labels_are_balanced() {
    let balanced = [[4, 4, 4], [9, 9, 9], [1, 1, 1]];
    let knows = |spec: &&&Spec| (spec.build)(&Settings::defaults(spec)).loss.is_some();
    for spec in ALL.iter().filter(knows) {
        assert!(equal(spec.name, "fedavg", &balanced), "{}", spec.name);
        assert!(!equal(spec.name, "fedavg", &SKEWED), "{}", spec.name);
    }
    assert!(equal("balanced:tau=0", "fedavg", &SKEWED));
}

/// A problem that accepts no offsets.
struct Plain;

impl Problem for Plain {
    fn rows(&self) -> usize {
        9
    }

    fn gradient(&self, _: &[f32], _: u32, offsets: Option<&[f32]>, _: &mut [f64]) -> f64 {
        assert_eq!(offsets, None, "equal offsets do not change softmax and are left out");
        0.0
    }

    fn evaluate_row(&self, _: &[f32], _: u32, _: Option<&[f32]>) -> (f64, [usize; 3]) {
        (0.0, [0, 0, 1])
    }
}

#[test]
fn equal_offsets_reach_no_trainer() {
    for spec in ALL {
        let site = Site { id: 0, rows: (0..9).collect(), counts: vec![3; 3] };
        let (start, q, trainer) = (vector(&[0.0]), Reference::uniform(3), Box::new(Exact::new(Plain)));
        let order = run(spec.name, local(1, 4, 0.1, 0.0));
        let record = Federation::new(order, start, q, vec![site], trainer).round();
        assert_eq!(record.clients[0].failure, None, "{}", spec.name);
    }
}

#[test]
fn every_strategy_trains_with_class_weights_and_without_them_if_all_samples_weigh_the_same() {
    let after = |label: &str, class_weights, counts: &[[u64; 3]]| {
        after_four_rounds(skewed(Run { class_weights, ..run(label, rich()) }, counts))
    };
    let balanced = [[4, 4, 4], [9, 9, 9], [0, 5, 0], [2, 2, 2], [7, 7, 7]];
    let costs = |costs: [f64; 3]| ClassWeights::given(costs.to_vec()).unwrap();
    for spec in ALL {
        let plain = after(spec.name, ClassWeights::Equal, &balanced);
        assert_eq!(after(spec.name, ClassWeights::Inverse, &balanced), plain, "{}", spec.name);
        assert_eq!(after(spec.name, costs([3.0; 3]), &balanced), plain, "{}", spec.name);
        let models = [ClassWeights::Equal, ClassWeights::Inverse, costs([1.0, 5.0, 1.0])]
            .map(|weights| after(spec.name, weights, &SKEWED));
        assert!(models[0] != models[1] && models[0] != models[2] && models[1] != models[2], "{}", spec.name);
    }
}

#[test]
fn quality_weights_with_lambda_zero_are_fedavg() {
    let weighs = |spec: &&&Spec| spec.params.iter().any(|param| param.name == "lambda");
    for spec in ALL.iter().filter(weighs) {
        assert!(equal(&format!("{}:lambda=0", spec.name), "fedavg", &SKEWED), "{}", spec.name);
        assert!(!equal(spec.name, "fedavg", &SKEWED), "{}", spec.name);
    }
}

#[test]
fn a_server_lr_of_one_is_fedavg() {
    assert!(equal("fedavg:server_lr=1", "fedavg", &SKEWED));
    assert!(!equal("fedavg:server_lr=0.999", "fedavg", &SKEWED));
}

#[test]
fn the_first_round_of_scaffold_is_uniform_averaging_and_the_second_is_not() {
    let mut pair = ["scaffold", "uniform"].map(|label| skewed(run(label, rich()), &SKEWED));
    for same in [true, false] {
        pair.iter_mut().for_each(|federation| drop(federation.round()));
        assert_eq!(bits(pair[0].model()) == bits(pair[1].model()), same);
    }
}

#[test]
fn scaffold_without_corrections_trains_as_uniform_averaging() {
    for option in ["", ":option=1"] {
        assert!(equal(&format!("scaffold:damping=0{option}"), "uniform", &SKEWED));
        assert!(equal(&format!("scaffold:damping=1{option}"), &format!("scaffold{option}"), &SKEWED));
        assert!(!equal(&format!("scaffold:damping=0.5{option}"), &format!("scaffold{option}"), &SKEWED));
    }
    assert!(!equal("scaffold:option=1", "scaffold:option=2", &SKEWED));
}

/// Four rounds of some of the clients, whose model has no batch norm.
fn without_batch_norm(label: &str) -> (Vec<u32>, Vec<u32>) {
    let rows: Vec<_> =
        (0..4).map(|k| (vec![1.0 + f64::from(k), 0.5], vec![f64::from(k) - 2.0, 1.0])).collect();
    let counts = [[8, 1], [3, 4], [0, 9], [5, 5]].map(|counts| counts.to_vec());
    let mut federation = quadratics(run(label, rich()), rows, &[0.5, 0.25], &counts);
    for clients in [[0, 1, 2], [1, 2, 3], [0, 2, 3], [0, 1, 3]] {
        federation.round_of(&clients);
    }
    (bits(federation.model()), bits(federation.state.carried.f32("control").unwrap()))
}

#[test]
fn bn_scaffold_is_scaffold_for_a_network_without_batch_norm() {
    for (damping, weights) in [("", ""), (":damping=0.5", ""), ("", "+fedtvd"), ("", "+fedtvd+fedadam")] {
        let after = |name: &str| without_batch_norm(&format!("{name}{damping}{weights}"));
        assert_eq!(after("bn-scaffold"), after("scaffold"), "{damping}{weights}");
    }
    assert_ne!(without_batch_norm("bn-scaffold"), without_batch_norm("bn-scaffold:damping=0.5"));
}

#[test]
fn a_variate_is_the_clients_own_gradient_after_one_step_with_any_option_and_damping() {
    let variates = |settings: &str| {
        let order = run(&format!("scaffold{settings}"), local(1, 100, 0.1, 0.0));
        let sgd = Sgd { lr: 0.1, momentum: 0.0, nesterov: false, weight_decay: 0.1 };
        let local = Local { optimizer: sgd.into(), clip: Some(0.2), ..order.local };
        let mut federation = skewed(Run { local, ..order }, &SKEWED);
        (0..2).for_each(|_| drop(federation.round()));
        // Models differ from the second round on: each variate is compared with the gradient at its own model.
        let base = federation.state.params.clone();
        federation.round();
        let memory = (0..5).map(|k| federation.memory(k).unwrap().f32("control").unwrap().to_vec());
        (base, memory.collect::<Vec<_>>(), federation)
    };
    for settings in ["", ":damping=0.5", ":damping=0"] {
        let (base, trained, _) = variates(settings);
        let (_, _, mut at_start) = variates(":option=1");
        at_start.state.params = base;
        at_start.round();
        for (k, trained) in (0..).zip(trained) {
            let at_start = at_start.memory(k).unwrap().f32("control").unwrap();
            for (trained, at_start) in trained.iter().zip(at_start) {
                // The change of f32 parameters of up to 1, divided by a learning rate of 0.1.
                assert!(
                    (trained - at_start).abs() < 2e-6,
                    "{settings}, client {k}: {trained} and {at_start}"
                );
            }
        }
    }
}

#[test]
fn four_passes_of_one_epoch_equal_one_pass_of_four() {
    let rows: Vec<_> = (0..7).map(|i| (vec![1.0 + f64::from(i), 2.0], vec![f64::from(i), -1.0])).collect();
    let numbers: Vec<u32> = (0..7).collect();
    let start = vector(&[0.5, 0.25]);
    let whole = Pass { epochs: 4, batch: 2, ..rich().pass(Key::of(5), None, None) };
    let mut once = start.clone();
    Exact::new(Quadratic { rows: rows.clone() }).pass(&mut once, &numbers, &whole).unwrap();
    let mut parts = start;
    let mut trainer = Exact::new(Quadratic { rows });
    for first_epoch in 0..4 {
        let part = Pass { epochs: 1, first_epoch, keep_state: first_epoch > 0, ..whole };
        trainer.pass(&mut parts, &numbers, &part).unwrap();
    }
    assert_eq!(bits(&once.values), bits(&parts.values));
}

/// One parameter under `torch.optim.SGD`, implemented from its documentation in f64.
#[derive(Default)]
struct Torch {
    buffer: Option<f64>,
}

impl Torch {
    fn step(&mut self, sgd: &Sgd, w: f64, mut g: f64) -> f64 {
        if sgd.weight_decay != 0.0 {
            g += sgd.weight_decay * w;
        }
        if sgd.momentum != 0.0 {
            let buffer = self.buffer.map_or(g, |buffer| sgd.momentum * buffer + g);
            self.buffer = Some(buffer);
            g = if sgd.nesterov { g + sgd.momentum * buffer } else { buffer };
        }
        w - sgd.lr * g
    }
}

/// A vector under `torch.optim.Adam` or `AdamW` after `clip_grad_norm_`, implemented from their documentation in f64.
struct TorchAdam {
    adam: Adam,
    decoupled: bool,
    clip: Option<f64>,
    moments: Vec<[f64; 2]>,
    steps: i32,
}

impl TorchAdam {
    /// A step with the gradient of the loss and a proximal term; the push is added after clipping.
    fn step(&mut self, w: &mut [f64], gradient: &[f64], push: &[f64]) {
        let Adam { lr, beta1, beta2, eps, weight_decay } = self.adam;
        self.steps += 1;
        let norm = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
        let scale = self.clip.map_or(1.0, |clip| (clip / (norm + 1e-6)).min(1.0));
        for (i, w) in w.iter_mut().enumerate() {
            let mut g = gradient[i] * scale + push[i];
            if self.decoupled {
                *w -= lr * weight_decay * *w;
            } else {
                g += weight_decay * *w;
            }
            let [m, v] = &mut self.moments[i];
            *m = beta1 * *m + (1.0 - beta1) * g;
            *v = beta2 * *v + (1.0 - beta2) * g * g;
            let (mean, square) = (*m / (1.0 - beta1.powi(self.steps)), *v / (1.0 - beta2.powi(self.steps)));
            *w -= lr * mean / (square.sqrt() + eps);
        }
    }
}

proptest! {
    #[test]
    fn a_step_of_adam_is_that_of_torch_with_clipping_pull_and_push(
        start in vec(-2.0..2.0f32, 37),
        gradients in vec(vec(-1.0..1.0f32, 37), 1..6),
        anchor in vec(-2.0..2.0f32, 37),
        push in vec(-1.0..1.0f32, 37),
        (lr, beta1, beta2, eps) in (0.001..0.1f64, 0.0..0.95f64, 0.0..0.999f64, 1e-3..0.1f64),
        decoupled: bool,
        weight_decay in prop_oneof![Just(0.0), 0.001..0.1f64],
        mu in prop_oneof![Just(None), (0.0..1.0f64).prop_map(Some)],
        clip in prop_oneof![Just(None), (0.1..10.0f64).prop_map(Some)],
        pushed: bool,
    ) {
        let adam = Adam { lr, beta1, beta2, eps, weight_decay };
        let pass = Pass {
            optimizer: if decoupled { Optimizer::AdamW(adam) } else { Optimizer::Adam(adam) },
            clip,
            pull: mu.map(|mu| Pull { mu, anchor: &anchor }),
            push: pushed.then_some(&push[..]),
            ..rich().pass(Key::of(0), None, None)
        };
        let (mut w, mut state) = (start.clone(), OptimizerState::default());
        state.begin(&pass, 37);
        let mut torch = TorchAdam { adam, decoupled, clip, moments: vec![[0.0; 2]; 37], steps: 0 };
        let mut expected: Vec<f64> = start.iter().map(|w| f64::from(*w)).collect();
        for gradient in &gradients {
            step(&pass, &mut w, &mut state, gradient);
            let pulled: Vec<f64> = (0..37)
                .map(|i| f64::from(gradient[i]) + mu.map_or(0.0, |mu| mu * (expected[i] - f64::from(anchor[i]))))
                .collect();
            let push: Vec<f64> = push.iter().map(|p| if pushed { f64::from(*p) } else { 0.0 }).collect();
            torch.step(&mut expected, &pulled, &push);
        }
        for (w, expected) in w.iter().zip(expected) {
            // Five steps of at most 0.1 or so with a few f32 roundings, gradients divided by at least 1e-3.
            prop_assert!((f64::from(*w) - expected).abs() < 1e-4 * expected.abs().max(1.0), "{} is not {}", w, expected);
        }
    }

    #[test]
    fn a_step_is_that_of_torch_with_pull_and_push_in_the_gradient(
        start in vec(-2.0..2.0f32, 5),
        gradients in vec(vec(-1.0..1.0f32, 5), 1..6),
        anchor in vec(-2.0..2.0f32, 5),
        push in vec(-1.0..1.0f32, 5),
        lr in 0.001..0.5f64,
        momentum in prop_oneof![Just(0.0), 0.1..0.99f64],
        nesterov: bool,
        weight_decay in prop_oneof![Just(0.0), 0.001..0.1f64],
        mu in prop_oneof![Just(None), (0.0..1.0f64).prop_map(Some)],
        pushed: bool,
    ) {
        let sgd = Sgd { lr, momentum, nesterov, weight_decay };
        let pass = Pass {
            optimizer: sgd.into(),
            pull: mu.map(|mu| Pull { mu, anchor: &anchor }),
            push: pushed.then_some(&push[..]),
            ..rich().pass(Key::of(0), None, None)
        };
        let (mut w, mut state) = (start.clone(), OptimizerState::default());
        state.begin(&pass, 5);
        for gradient in &gradients {
            step(&pass, &mut w, &mut state, gradient);
        }
        for i in 0..5 {
            let (mut torch, mut expected) = (Torch::default(), f64::from(start[i]));
            for gradient in &gradients {
                let pull = mu.map_or(0.0, |mu| mu * (expected - f64::from(anchor[i])));
                let push = if pushed { f64::from(push[i]) } else { 0.0 };
                expected = torch.step(&sgd, expected, f64::from(gradient[i]) + pull + push);
            }
            // Five steps with a few f32 roundings of numbers up to 2, amplified by momentum.
            let slack = 4e-6 * expected.abs().max(1.0);
            prop_assert!((f64::from(w[i]) - expected).abs() < slack, "{} is not {}", w[i], expected);
        }
    }
}
