//! Options of local training beside PyTorch: 20 steps of `lenet` with each optimiser, clipping, label smoothing and every
//! schedule over rounds. `golden/make_options.py` made the numbers.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "golden/formula.rs"]
mod formula;

use fedtvd_core::model::{Layout, Params};
use fedtvd_core::stream::Key;
use fedtvd_core::train::{Adam, Decay, Local, Optimizer, Pass, Pull, Schedule, Sgd, Trainer};
use fedtvd_nn::{Cpu, models};
use formula::{initial, samples};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Deserialize)]
struct Golden {
    runs: Vec<Run>,
}

#[derive(Deserialize)]
struct Run {
    name: String,
    sgd: Option<SgdSettings>,
    adam: Option<AdamSettings>,
    adamw: Option<AdamSettings>,
    clip: Option<f64>,
    mu: Option<f64>,
    push: Option<bool>,
    smoothing: Option<f64>,
    weights: Option<Vec<f32>>,
    offsets: Option<Vec<f32>>,
    warmup: Option<u32>,
    exponential: Option<f64>,
    step: Option<(u32, f64)>,
    cosine: Option<(u32, f64)>,
    losses: Vec<f64>,
    lrs: Vec<f64>,
    clipped: usize,
    tensors: BTreeMap<String, Trained>,
}

#[derive(Deserialize)]
struct SgdSettings {
    lr: f64,
    momentum: f64,
    #[serde(default)]
    weight_decay: f64,
}

#[derive(Clone, Copy, Deserialize)]
struct AdamSettings {
    lr: f64,
    betas: (f64, f64),
    eps: f64,
    #[serde(default)]
    weight_decay: f64,
}

#[derive(Deserialize)]
struct Trained {
    sum: f64,
    abs: f64,
    some: Vec<f64>,
}

impl From<AdamSettings> for Adam {
    fn from(settings: AdamSettings) -> Self {
        let AdamSettings { lr, betas: (beta1, beta2), eps, weight_decay } = settings;
        Self { lr, beta1, beta2, eps, weight_decay }
    }
}

impl Run {
    fn local(&self) -> Local {
        let sgd = self.sgd.as_ref().map(|&SgdSettings { lr, momentum, weight_decay }| {
            Optimizer::Sgd(Sgd { lr, momentum, nesterov: false, weight_decay })
        });
        let adam = self.adam.map(|adam| Optimizer::Adam(adam.into()));
        let adamw = self.adamw.map(|adam| Optimizer::AdamW(adam.into()));
        let exponential = self.exponential.map(|factor| Decay::Exponential { factor });
        let step = self.step.map(|(every, factor)| Decay::Step { every, factor });
        let cosine = self.cosine.map(|(rounds, floor)| Decay::Cosine { rounds, floor });
        Local {
            epochs: 1,
            batch: 8,
            optimizer: sgd.or(adam).or(adamw).unwrap(),
            clip: self.clip,
            smoothing: self.smoothing.unwrap_or(0.0),
            schedule: Schedule {
                warmup: self.warmup.unwrap_or(0),
                decay: exponential.or(step).or(cosine).unwrap_or(Decay::Constant),
            },
            epoch_decay: 1.0,
        }
    }
}

/// How far we may be from PyTorch, relative to its number.
const TOLERANCE: f64 = 1e-5;

fn follows(run: &Run) {
    let network = models::named("lenet", [1, 28, 28], 10).unwrap();
    let layout = Arc::new(Layout::of(&network).unwrap());
    let start: Params = initial(&layout);
    let anchor = start.trainable().to_vec();
    let push: Vec<f32> = (0..anchor.len()).map(|i| (i % 5) as f32 / 50.0 - 0.04).collect();
    let mut cpu = Cpu::new(&network, samples([1, 28, 28], 10, 64, |n| (7 * n + n / 3) % 10)).unwrap();
    let mut params = start;
    let local = run.local();
    for (step, (loss, lr)) in run.losses.iter().zip(&run.lrs).enumerate() {
        let first = (step * 8 % 64) as u32;
        let rows: Vec<u32> = (first..first + 8).collect();
        let local = local.in_round(step as u32);
        // Schedulers of PyTorch multiply step by step.
        assert!((local.optimizer.lr() / lr - 1.0).abs() < 1e-12, "{}, step {step}: {lr}", run.name);
        let pass = Pass {
            keep_state: true,
            pull: run.mu.map(|mu| Pull { mu, anchor: &anchor }),
            push: run.push.map(|_| &push[..]),
            ..local.pass(Key::of(1), run.offsets.as_deref(), run.weights.as_deref())
        };
        let ours = cpu.pass(&mut params, &rows, &pass).unwrap().losses[0];
        assert!((ours / loss - 1.0).abs() < TOLERANCE, "{}, step {step}: {ours} {loss}", run.name);
    }
    for (name, theirs) in &run.tensors {
        let ours: Vec<f64> = params.tensor(name).unwrap().iter().map(|w| f64::from(*w)).collect();
        let mean = theirs.abs / ours.len() as f64;
        let close = |ours: f64, theirs: f64, size: f64| (ours - theirs).abs() < TOLERANCE * size;
        let (sum, abs) = (ours.iter().sum::<f64>(), ours.iter().map(|w| w.abs()).sum::<f64>());
        assert!(close(sum, theirs.sum, theirs.abs), "{}, {name}: {sum} {}", run.name, theirs.sum);
        assert!(close(abs, theirs.abs, theirs.abs), "{}, {name}: {abs} {}", run.name, theirs.abs);
        for (ours, theirs) in ours.iter().step_by(997).zip(&theirs.some) {
            // An entry may be close to zero.
            assert!(close(*ours, *theirs, theirs.abs().max(mean)), "{}, {name}: {ours} {theirs}", run.name);
        }
    }
}

#[test]
fn twenty_steps_with_every_option_follow_pytorch() {
    let golden: Golden = serde_json::from_str(include_str!("golden/options.json")).unwrap();
    golden.runs.iter().for_each(follows);
    let clipping = golden.runs.iter().filter(|run| run.clip.is_some());
    assert!(clipping.clone().all(|run| run.clipped > 0) && clipping.count() == 4, "clipping has an effect");
}
