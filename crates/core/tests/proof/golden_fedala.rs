//! Golden FedALA: mixing weights, the model that they make, and when they are learned.

use crate::exact::{Exact, Quadratic};
use crate::federation::{local, strategy, vector};
use crate::vectors::{numbers, read, same_f32};
use fedtvd_core::memory::Memory;
use fedtvd_core::model::{LayerKind, Layout, Params, Role, Tensor};
use fedtvd_core::round::ClientData;
use fedtvd_core::rules::{Task, Trained};
use fedtvd_core::stream::Key;
use fedtvd_core::train::{Evaluation, Pass, PassReport, TrainFailure, Trainer};
use serde_json::Value;
use std::sync::Arc;

fn golden() -> Value {
    read(include_str!("../golden/personalized.json"))["fedala"].clone()
}

/// Counts the gradients and evaluations of a trainer.
struct Counted {
    trainer: Exact<Quadratic>,
    /// Rows of each gradient, and the number of evaluations.
    gradients: Vec<Vec<u32>>,
    evaluations: usize,
}

impl Counted {
    fn new() -> Self {
        let golden = golden();
        // A gradient of w - target for each of ten rows.
        let rows = vec![(vec![1.0; 3], numbers(&golden["target"])); 10];
        Self { trainer: Exact::new(Quadratic { rows }), gradients: Vec::new(), evaluations: 0 }
    }
}

impl Trainer for Counted {
    fn pass(
        &mut self,
        params: &mut Params,
        rows: &[u32],
        pass: &Pass<'_>,
    ) -> Result<PassReport, TrainFailure> {
        self.trainer.pass(params, rows, pass)
    }

    fn gradient(&mut self, params: &Params, rows: &[u32], pass: &Pass<'_>) -> Result<Vec<f32>, TrainFailure> {
        self.gradients.push(rows.to_vec());
        self.trainer.gradient(params, rows, pass)
    }

    fn logits(&mut self, params: &Params, rows: &[u32]) -> Result<Vec<f32>, TrainFailure> {
        self.trainer.logits(params, rows)
    }

    fn evaluate(
        &mut self,
        params: &Params,
        rows: &[u32],
        offsets: Option<&[f32]>,
    ) -> Result<Evaluation, TrainFailure> {
        self.evaluations += 1;
        self.trainer.evaluate(params, rows, offsets)
    }
}

/// A client's memory with the golden model of its own, and weights if it has learned any.
fn memory(weights: Option<&[f64]>) -> Memory {
    let narrow = |values: &[f64]| values.iter().map(|x| *x as f32).collect::<Vec<f32>>();
    let mut memory = Memory::default();
    memory.put("model", narrow(&numbers(&golden()["local"])));
    weights.into_iter().for_each(|weights| memory.put("weights", narrow(weights)));
    memory
}

/// A round of a client with one batch of this many rows, without moving in local training.
fn round(label: &str, base: &Params, rows: u32, memory: Option<&Memory>, trainer: &mut Counted) -> Trained {
    let client = ClientData { rows: (0..rows).collect(), holdout: Vec::new(), counts: vec![rows.into()] };
    let (carried, local) = (Memory::default(), local(1, 16, 0.0, 0.0));
    let pass = local.pass(Key::of(1), None, None);
    let task = Task { base, carried: &carried, client: &client, local: &local, pass };
    strategy(label).local.train(&task, memory, trainer).unwrap()
}

fn shared() -> Params {
    vector(&numbers(&golden()["global"]))
}

#[test]
fn weights_follow_the_golden_steps_and_make_the_golden_model() {
    let golden = golden();
    for (before, step) in golden["steps"].as_array().unwrap().iter().enumerate() {
        let label = format!("fedala:mixing_epochs={}", before + 1);
        let trained = round(&label, &shared(), 1, Some(&memory(None)), &mut Counted::new());
        same_f32(trained.memory.f32("weights").unwrap(), &step["W_after"], "weights");
        let next =
            golden["steps"].get(before + 1).map_or(&golden["initialised_local_model"], |next| &next["temp"]);
        same_f32(&trained.params.values, next, "the model to start from");
        same_f32(trained.memory.f32("model").unwrap(), next, "what it remembers");
    }
}

#[test]
fn nothing_is_learned_in_the_first_round_or_when_the_two_models_are_equal() {
    let mut trainer = Counted::new();
    let first = round("fedala", &shared(), 1, None, &mut trainer);
    assert_eq!(first.params, shared());
    assert_eq!((first.memory.f32("model"), first.memory.f32("weights")), (Some(&shared().values[..]), None));
    let again = round("fedala", &shared(), 1, Some(&first.memory), &mut trainer);
    assert_eq!((again.params, again.memory), (shared(), first.memory));
    assert!(trainer.gradients.is_empty());
    // Differences of 1 and -1 add up to zero, and count.
    let other = vector(&[2.0, -2.0, 0.5]);
    round("fedala:mixing_epochs=1", &other, 1, Some(&memory(None)), &mut trainer);
    assert_eq!(trainer.gradients.len(), 1);
}

#[test]
fn weights_are_learned_until_the_losses_settle_or_the_epochs_end_and_later_for_one_epoch() {
    let epochs = |label: &str, weights: Option<&[f64]>| {
        let mut trainer = Counted::new();
        round(label, &shared(), 1, Some(&memory(weights)), &mut trainer);
        (trainer.gradients.len(), trainer.evaluations)
    };
    // Losses change by less than 0.1 from the first one on; eleven of them are needed.
    assert_eq!(epochs("fedala", None), (11, 11));
    assert_eq!(epochs("fedala:mixing_threshold=0", None), (50, 50));
    assert_eq!(epochs("fedala:mixing_threshold=0:mixing_epochs=17", None), (17, 17));
    assert_eq!(epochs("fedala", Some(&[0.2, 1.0, 0.5])), (1, 0));
}

#[test]
fn weights_are_learned_by_a_random_share_of_the_samples() {
    let seen = |seed: u64| {
        let mut trainer = Counted::new();
        let client = ClientData { rows: (0..10).collect(), holdout: Vec::new(), counts: vec![10] };
        let (carried, local, base) = (Memory::default(), local(1, 3, 0.0, 0.0), shared());
        let pass = local.pass(Key::of(seed), None, None);
        let task = Task { base: &base, carried: &carried, client: &client, local: &local, pass };
        let kept = memory(Some(&[1.0; 3]));
        strategy("fedala").local.train(&task, Some(&kept), &mut trainer).unwrap();
        assert_eq!(trainer.gradients.iter().map(Vec::len).collect::<Vec<_>>(), [3, 3, 2]);
        let mut rows = trainer.gradients.concat();
        rows.sort_unstable();
        rows.dedup();
        assert_eq!(rows.len(), 8, "each row once");
        rows
    };
    let samples: Vec<Vec<u32>> = (1..8).map(seen).collect();
    assert!(samples.iter().any(|rows| *rows != samples[0]), "not the same window for all");
}

#[test]
fn only_the_last_layers_are_mixed_and_remembered_and_a_client_uses_the_mixture() {
    let tensor = |name: &str, layer, role| Tensor {
        name: name.to_owned(),
        shape: vec![1],
        layer,
        kind: LayerKind::Linear,
        role,
        start: 0,
    };
    let layout = Arc::new(Layout::from_tensors(vec![
        tensor("first.weight", 0, Role::Weight),
        tensor("last.weight", 1, Role::Weight),
        tensor("last.bias", 1, Role::Bias),
    ]));
    let base = Params { layout, values: numbers(&golden()["global"]).iter().map(|x| *x as f32).collect() };
    let mut kept = Memory::default();
    kept.put("model", vec![-1.0f32, 0.5]);
    kept.put("weights", vec![1.0f32, 1.0]);
    let trained = round("fedala", &base, 1, Some(&kept), &mut Counted::new());
    // The last two of the golden step.
    assert_eq!(trained.memory.f32("weights"), Some(&[1.0, 0.75][..]));
    assert_eq!(
        (trained.params.values, trained.memory.f32("model").unwrap().len()),
        (vec![2.0, 1.0, 0.125], 2)
    );
    let rule = strategy("fedala").local;
    kept.put("weights", vec![0.0f32, 0.5]);
    assert_eq!(rule.own_model(&base, Some(&kept)).unwrap().values, [2.0, -1.0, 0.25]);
    assert_eq!(rule.own_model(&base, None), None, "before its first round it uses the shared model");
    let all = round("fedala:mixing_layers=2", &base, 1, Some(&memory(Some(&[1.0; 3]))), &mut Counted::new());
    same_f32(&all.params.values, &golden()["steps"][1]["temp"], "all layers");
}
