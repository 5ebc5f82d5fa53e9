//! Golden personal models: which tensors stay at a client, and Ditto's path.

use crate::exact::{Exact, Quadratic};
use crate::federation::{local, strategy, vector};
use crate::vectors::{number, numbers, read, rows, same_f32, settled};
use fedtvd_core::memory::Memory;
use fedtvd_core::model::{LayerKind, Layout, Role, Tensor};
use fedtvd_core::round::ClientData;
use fedtvd_core::rules::Task;
use fedtvd_core::stream::Key;
use serde_json::Value;
use std::sync::Arc;

fn words(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect()
}

/// A layout with PyTorch's names, and the kind of layer that a name's owner has.
fn layout(keys: &[&str], kind: impl Fn(&str) -> LayerKind) -> Arc<Layout> {
    let mut layers: Vec<&str> = Vec::new();
    let tensors = keys.iter().map(|key| {
        let (layer, part) = key.rsplit_once('.').unwrap();
        if layers.last() != Some(&layer) {
            layers.push(layer);
        }
        let kind = kind(layer);
        let role = match (part, kind) {
            ("running_mean", _) => Role::RunningMean,
            ("running_var", _) => Role::RunningVariance,
            ("weight", LayerKind::BatchNorm) => Role::Scale,
            ("bias", LayerKind::BatchNorm) => Role::Shift,
            ("bias", _) => Role::Bias,
            _ => Role::Weight,
        };
        Tensor { name: (*key).to_owned(), shape: vec![2], layer: layers.len() - 1, kind, role, start: 0 }
    });
    Arc::new(Layout::from_tensors(tensors.collect()))
}

/// The names of the tensors that stay at a client, in order.
fn staying(label: &str, layout: &Arc<Layout>) -> Vec<String> {
    let own = strategy(label).parts(layout).own;
    let mut names: Vec<String> = own.tensors().iter().map(|tensor| tensor.name.clone()).collect();
    names.sort();
    names
}

#[test]
fn the_head_stays_at_clients_of_fedper_and_fedrep() {
    let golden = &read(include_str!("../golden/personalized.json"))["fedper_fedrep_mask"];
    let kind = |layer: &str| if layer.starts_with("conv") { LayerKind::Conv } else { LayerKind::Linear };
    let layout = layout(&words(&golden["keys"]), kind);
    let mut personal = words(&golden["personal"]);
    personal.sort_unstable();
    for label in ["fedper", "fedrep"] {
        assert_eq!(staying(label, &layout), personal, "{label}");
    }
}

#[test]
fn batch_norms_of_shortcuts_stay_at_clients_of_fedbn_whatever_they_are_called() {
    let golden = &read(include_str!("../golden/personalized.json"))["fedbn_mask_resnet"];
    // No counter is kept: it matters only without momentum.
    let without_counter = |value: &Value| -> Vec<String> {
        let kept = words(value).into_iter().filter(|key| !key.ends_with("num_batches_tracked"));
        kept.map(str::to_owned).collect()
    };
    let keys = without_counter(&golden["keys"]);
    let kind = |layer: &str| match layer {
        "bn1" | "layer2.0.shortcut.1" => LayerKind::BatchNorm,
        "linear" => LayerKind::Linear,
        _ => LayerKind::Conv,
    };
    let layout = layout(&keys.iter().map(String::as_str).collect::<Vec<_>>(), kind);
    let mut excluded = without_counter(&golden["excluded_by_type"]);
    excluded.sort_unstable();
    assert_eq!(staying("fedbn", &layout), excluded);
}

#[test]
fn ditto_follows_the_golden_path_to_the_minimiser_pulled_towards_the_received_model() {
    let golden = &read(include_str!("../golden/personalized.json"))["ditto"];
    let problem = Quadratic { rows: vec![(numbers(&golden["h"]), numbers(&golden["b"]))] };
    let mu = number(&golden["lambda"]);
    let after = |steps: u32| {
        let (base, local) =
            (vector(&numbers(&golden["w_global"])), local(steps, 8, number(&golden["lr"]), 0.0));
        let client = ClientData { rows: vec![0; 8], holdout: Vec::new(), counts: vec![8] };
        let (carried, mut memory) = (Memory::default(), Memory::default());
        memory.put("model", vec![0.0f32; 2]);
        let pass = local.pass(Key::of(1), None, None);
        let task = Task { base: &base, carried: &carried, client: &client, local: &local, pass };
        let rule = strategy(&format!("ditto:mu={mu}")).local;
        let trained = rule.train(&task, Some(&memory), &mut Exact::new(problem.clone())).unwrap();
        trained.memory.f32("model").unwrap().to_vec()
    };
    for (steps, point) in rows(&golden["path"]).into_iter().enumerate().skip(1) {
        same_f32(&after(steps as u32), &Value::from(point), "Ditto's own model");
    }
    settled(&after(1000), &golden["exact_minimiser"], "Ditto's own model");
}
