//! Golden BN-SCAFFOLD: what shifts a client's batch statistics, what it remembers, and the server's mean over clients
//! seen.

use crate::federation::{Federation, Site, local, run};
use crate::vectors::{number, numbers, read, same_f32};
use fedtvd_core::labels::Reference;
use fedtvd_core::memory::Memory;
use fedtvd_core::model::{LayerKind, Layout, Params, Role, Tensor};
use fedtvd_core::round::ClientId;
use fedtvd_core::train::{Evaluation, Local, NormShift, Pass, PassReport, TrainFailure, Trainer};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

fn golden() -> Value {
    read(include_str!("../golden/bn_scaffold.json"))
}

/// Shift and floor of each pass.
type Shifts = Arc<Mutex<Vec<[Vec<f32>; 2]>>>;

/// A trainer that leaves the model alone and reports given batch statistics, one after the other for each row.
struct Scripted {
    statistics: BTreeMap<u32, Vec<[f64; 2]>>,
    shifts: Shifts,
}

impl Trainer for Scripted {
    fn pass(&mut self, _: &mut Params, rows: &[u32], pass: &Pass<'_>) -> Result<PassReport, TrainFailure> {
        let NormShift { shift, floor } = pass.norm.expect("every pass asks for statistics");
        self.shifts.lock().unwrap().push([shift.to_vec(), floor.to_vec()]);
        let statistics = self.statistics.get_mut(&rows[0]).unwrap().remove(0);
        let steps = pass.steps(rows.len());
        Ok(PassReport { steps, losses: [1.0; 2], statistics: Some(statistics.to_vec()) })
    }

    fn gradient(&mut self, _: &Params, _: &[u32], _: &Pass<'_>) -> Result<Vec<f32>, TrainFailure> {
        Err(TrainFailure::Device("not asked for".to_owned()))
    }

    fn evaluate(&mut self, _: &Params, _: &[u32], _: Option<&[f32]>) -> Result<Evaluation, TrainFailure> {
        Err(TrainFailure::Device("not asked for".to_owned()))
    }

    fn logits(&mut self, _: &Params, _: &[u32]) -> Result<Vec<f32>, TrainFailure> {
        Err(TrainFailure::Device("not asked for".to_owned()))
    }
}

/// Clients with one row each and a model of one weight and one batch norm; client k reports the k-th statistics.
fn clients(order: Local, statistics: Vec<Vec<[f64; 2]>>) -> (Federation, Shifts) {
    let tensor = |name: &str, kind, role| Tensor {
        name: name.to_owned(),
        shape: vec![1],
        layer: 0,
        kind,
        role,
        start: 0,
    };
    let layout = Layout::from_tensors(vec![
        tensor("fc.weight", LayerKind::Linear, Role::Weight),
        tensor("bn.running_mean", LayerKind::BatchNorm, Role::RunningMean),
        tensor("bn.running_var", LayerKind::BatchNorm, Role::RunningVariance),
    ]);
    let start = Params { layout: Arc::new(layout), values: vec![0.5, 0.0, 1.0] };
    let site = |k| Site { id: k, rows: vec![k], counts: vec![1, 0] };
    let sites = (0..statistics.len() as u32).map(site).collect();
    let shifts = Shifts::default();
    let statistics = (0..).zip(statistics).collect();
    let trainer = Box::new(Scripted { statistics, shifts: Arc::clone(&shifts) });
    let order = run("bn-scaffold", order);
    (Federation::new(order, start, Reference::uniform(2), sites, trainer), shifts)
}

/// Lets every client be seen with these statistics of its own, and the server have this mean.
fn seen(federation: &mut Federation, own: [f32; 2], mean: [f32; 2]) {
    for client in 0..federation.sites.len() as ClientId {
        let mut memory = Memory::default();
        memory.put("control", vec![0.0f32]);
        memory.put("statistics", own.to_vec());
        federation.memories.insert((client, 0), memory);
        federation.state.accepted.insert(client, 0);
    }
    federation.state.round = 1;
    Arc::make_mut(&mut federation.state.carried).put("statistics", mean.to_vec());
}

fn statistics(federation: &Federation) -> &[f32] {
    federation.state.carried.f32("statistics").unwrap()
}

#[test]
fn a_client_shifts_its_batches_from_its_own_statistics_to_the_servers() {
    let golden = golden();
    let pair = |mean: &str, variance: &str| [mean, variance].map(|name| number(&golden[name]));
    let (batch, shifted) = (pair("mu_B", "var_B"), pair("mu_tilde", "var_tilde"));
    let (mut federation, shifts) = clients(local(1, 1, 0.1, 0.0), vec![vec![batch]]);
    let [own, mean] = [pair("mu_i", "var_i"), pair("mu", "var")].map(|pair| pair.map(|x| x as f32));
    seen(&mut federation, own, mean);
    federation.round();
    let shifts = shifts.lock().unwrap();
    let [shift, floor] = &shifts[0];
    let found = [batch[0] as f32 + shift[0], batch[1] as f32 + shift[1]];
    assert_eq!(found, shifted.map(|x| x as f32), "all numbers are exact in f32");
    assert_eq!(floor[1], 0.5 * mean[1], "half of the server's variance");
}

#[test]
fn a_client_remembers_the_mean_of_its_batches_and_the_first_round_is_not_corrected() {
    let option = &golden()["option2_batches"];
    let batches = numbers(&option["batch_means"]).into_iter().zip(numbers(&option["batch_vars"]));
    // A learning rate that changes from epoch to epoch makes a pass of each epoch, with one step.
    let order = Local { epoch_decay: 0.9, ..local(3, 1, 0.1, 0.0) };
    let (mut federation, shifts) = clients(order, vec![batches.map(|(m, v)| [m, v]).collect()]);
    federation.round();
    let expected = json!([option["mu_i_plus"], option["var_i_plus"]]);
    same_f32(federation.memory(0).unwrap().f32("statistics").unwrap(), &expected, "memory");
    same_f32(statistics(&federation), &expected, "the mean of one client");
    same_f32(&federation.model()[1..], &expected, "the model's buffers");
    let zeros = || [vec![0.0; 2], vec![0.0; 2]];
    assert_eq!(*shifts.lock().unwrap(), [zeros(), zeros(), zeros()]);
}

#[test]
fn the_server_divides_changes_by_the_number_of_all_clients() {
    let update = &golden()["server_update_N4"];
    let (mu, changes) = (number(&update["mu"]), numbers(&update["delta_mu_selected"]));
    let report = |change: f64| vec![[mu + change, 2.0]];
    let reports = vec![report(changes[0]), report(changes[1]), vec![], vec![]];
    let (mut federation, _) = clients(local(1, 1, 0.1, 0.0), reports);
    seen(&mut federation, [mu as f32, 2.0], [mu as f32, 2.0]);
    federation.round_of(&[0, 1]);
    same_f32(statistics(&federation), &json!([update["mu_new"], 2.0]), "of four clients, two took part");
    same_f32(&federation.model()[1..], &json!([update["mu_new"], 2.0]), "the model's buffers");
}

#[test]
fn a_client_that_was_never_seen_does_not_count_and_is_not_corrected() {
    let reports = vec![vec![[4.0, 2.0], [8.0, 6.0]], vec![[2.0, 1.0]], vec![[-3.0, 3.0]], vec![[0.0, 0.0]]];
    let (mut federation, shifts) = clients(local(1, 1, 0.1, 0.0), reports);
    for (round, mean) in [
        (vec![0, 1], [3.0, 1.5]),
        (vec![2], [1.0, 2.0]),
        // 8, 2, -3 and 0; 6, 1, 3 and 0: of four clients.
        (vec![0, 3], [1.75, 2.5]),
    ] {
        federation.round_of(&round);
        same_f32(statistics(&federation), &json!(mean), "the mean over clients seen");
    }
    let shifts = shifts.lock().unwrap();
    let first: Vec<f32> = shifts.iter().map(|[shift, _]| shift[0]).collect();
    assert_eq!(first, [0.0, 0.0, 0.0, 1.0 - 4.0, 0.0], "only client 0 in its second round");
}
