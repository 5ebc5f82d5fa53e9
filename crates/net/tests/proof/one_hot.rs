//! Makes the ledger visible: if client k sends the one-hot vector e_k, the model is the vector of weights, so that a
//! lost, duplicate or late update shows as a wrong value.

use crate::puppet::{Puppet, code, counts};
use crate::stage::{Running, Stage, config};
use fedtvd_core::round::ClientId;
use fedtvd_core::stream::{Purpose, Stream};
use fedtvd_net::federation::Options;
use std::collections::BTreeSet;

const CLIENTS: u32 = 6;
const ROUNDS: u32 = 12;

/// FedTVD's weights of some clients, from the formula: λ softmax(-TVD) + (1 - λ) n / Σ n with λ = 1/2.
fn closed_form(members: &BTreeSet<ClientId>) -> Vec<f32> {
    let size = |client: &ClientId| counts(*client).iter().sum::<u64>() as f64;
    let quality = |client: &ClientId| {
        let n = size(client);
        let tvd: f64 = counts(*client).iter().map(|&h| (h as f64 / n - 0.1).abs()).sum::<f64>() / 2.0;
        (-tvd).exp()
    };
    let (sizes, qualities): (f64, f64) = (members.iter().map(size).sum(), members.iter().map(quality).sum());
    let weight = |client: ClientId| match members.contains(&client) {
        true => 0.5 * quality(&client) / qualities + 0.5 * size(&client) / sizes,
        false => 0.0,
    };
    (0..CLIENTS).map(|client| weight(client) as f32).collect()
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

fn serve(stage: &Stage) -> Running {
    let rounds = format!("rounds={ROUNDS}");
    let settings =
        ["model.name=logistic", "strategy.name=fedtvd", "cohort.fraction=1", "cohort.quorum=2", &rounds];
    let options = Options { roster: Some((0..CLIENTS).collect()), workers: 1, ..Options::default() };
    stage.serve("run", &config(&settings), options)
}

async fn crowd(stage: &Stage, running: &Running) -> Vec<Puppet> {
    let mut puppets = Vec::new();
    for client in 0..CLIENTS {
        let mut puppet = running.puppet(stage, client).await;
        puppet.enrol().await.unwrap();
        puppets.push(puppet);
    }
    puppets
}

#[tokio::test(flavor = "multi_thread")]
async fn after_drops_duplicates_restarts_and_late_updates_the_model_is_the_vector_of_weights() {
    let stage = Stage::new(CLIENTS as usize);
    let mut running = serve(&stage);
    let mut puppets = crowd(&stage, &running).await;
    let mut chance = Stream::at(5, Purpose::Absence, 0, 0);
    let mut last: Option<BTreeSet<ClientId>> = None;
    let mut late: Vec<(ClientId, u32, Vec<u8>)> = Vec::new();
    let (mut restarts, mut duplicates, mut refused) = (0, 0, 0);
    for round in 0..ROUNDS {
        let dropped: BTreeSet<ClientId> = (0..CLIENTS).filter(|_| chance.unit() < 0.25).take(4).collect();
        let restart_after = chance.below(2 * u64::from(CLIENTS)) as u32;
        let mut order: Vec<ClientId> = (0..CLIENTS).collect();
        chance.shuffle(&mut order);
        // A round without any client would wait for ever: clients that drop out get their job but do not send an
        // update.
        let mut members = BTreeSet::new();
        for (place, client) in order.into_iter().enumerate() {
            let puppet = &mut puppets[client as usize];
            let job = puppet.job().await;
            assert_eq!(job.offer.round, round);
            if let Some(last) = &last {
                let expected = closed_form(last);
                assert_eq!(bits(&job.offer.params.values[..expected.len()]), bits(&expected), "{last:?}");
                assert!(job.offer.params.values[expected.len()..].iter().all(|value| *value == 0.0));
            }
            let bytes = puppet.one_hot(&job).to_bytes();
            if dropped.contains(&client) {
                late.push((client, round, bytes));
                continue;
            }
            assert!(!puppet.send(round, bytes.clone()).await.unwrap());
            members.insert(client);
            if chance.unit() < 0.5 && members.len() + dropped.len() < CLIENTS as usize {
                assert!(puppet.send(round, bytes.clone()).await.unwrap(), "a duplicate is recognised");
                let mut other = puppet.one_hot(&job);
                other.params.values[client as usize] = 2.0;
                assert_eq!(code(puppet.send(round, other.to_bytes()).await), "two-answers");
                duplicates += 1;
            }
            if place as u32 == restart_after && members.len() + dropped.len() < CLIENTS as usize {
                running.stop();
                running = serve(&stage);
                puppets = crowd(&stage, &running).await;
                // The round is reopened once a client whose update is missing has its job.
                let owing = (0..CLIENTS).find(|client| !members.contains(client)).unwrap();
                assert_eq!(puppets[owing as usize].job().await.offer.round, round);
                let again = puppets[client as usize].send(round, bytes).await;
                assert!(again.unwrap(), "an acknowledged update survives a restart");
                restarts += 1;
            }
        }
        if !dropped.is_empty() {
            running.coordinator.expire();
        }
        last = Some(members);
        if round + 1 < ROUNDS {
            // Once a client has a job of the next round, updates of the last one are late.
            let answered = *last.iter().flatten().next().unwrap();
            assert_eq!(puppets[answered as usize].job().await.offer.round, round + 1);
            for (client, round, bytes) in late.drain(..) {
                assert_eq!(code(puppets[client as usize].send(round, bytes).await), "late");
                refused += 1;
            }
        }
    }
    drop(puppets);
    tokio::task::block_in_place(|| running.finish());
    assert!(restarts >= 2 && duplicates >= 5 && refused >= 5, "{restarts} {duplicates} {refused}");
    let bytes = stage.model("run");
    let expected = closed_form(&last.unwrap());
    let model = safetensors_values(&bytes);
    assert_eq!(bits(&model[..expected.len()]), bits(&expected));
}

/// The values of a model file, whose tensors follow each other.
fn safetensors_values(bytes: &[u8]) -> Vec<f32> {
    let head = u64::from_le_bytes(*bytes.first_chunk().unwrap()) as usize;
    let layout = std::str::from_utf8(&bytes[8..8 + head]).unwrap();
    let header: serde_json::Value = serde_json::from_str(layout).unwrap();
    let place = |name: &str| {
        let offsets = &header[name]["data_offsets"];
        [&offsets[0], &offsets[1]].map(|place| 8 + head + place.as_u64().unwrap() as usize)
    };
    let [start, end] = place("fc.weight");
    bytes[start..end].as_chunks().0.iter().map(|chunk| f32::from_le_bytes(*chunk)).collect()
}
