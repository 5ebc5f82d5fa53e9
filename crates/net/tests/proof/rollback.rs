//! A federation whose model was poisoned goes back to an earlier round.

use crate::puppet::{Puppet, counts};
use crate::stage::{Running, Stage, config};
use fedtvd_core::labels::{Ask, Reference};
use fedtvd_core::round::{ClientId, Job, RoundRecord};
use fedtvd_data::set::Places;
use fedtvd_net::federation::{Event, Options, prepare};
use fedtvd_run::directory::RunDirectory;
use fedtvd_run::directory::rollback::begin;
use std::sync::Arc;

const SETTINGS: [&str; 3] = ["model.name=logistic", "cohort.fraction=1", "rounds=4"];

fn options(clients: ClientId, rollback: Option<u32>) -> Options {
    Options { roster: Some((0..clients).collect()), workers: 1, rollback, ..Options::default() }
}

/// Answers the next job: every weight moves by this much. Returns the job.
async fn move_by(puppet: &mut Puppet, change: f32) -> Job {
    let job = puppet.job().await;
    let mut upload = puppet.one_hot(&job);
    upload.params.values = job.offer.params.values.iter().map(|w| w + change).collect();
    if let Some(control) = job.offer.carried.f32("control") {
        upload.carried.put("control", vec![change; control.len()]);
    }
    puppet.send(job.offer.round, upload.to_bytes()).await.unwrap();
    job
}

/// An honest change, different for each client.
fn honest(client: ClientId) -> f32 {
    0.01 * (client + 1) as f32
}

async fn puppets(running: &Running, stage: &Stage, clients: ClientId) -> Vec<Puppet> {
    let mut puppets = Vec::new();
    for client in 0..clients {
        let mut puppet = running.puppet(stage, client).await;
        puppet.enrol().await.unwrap();
        puppets.push(puppet);
    }
    puppets
}

async fn honest_round(puppets: &mut [Puppet]) {
    for puppet in puppets {
        move_by(puppet, honest(puppet.client)).await;
    }
}

fn lines(stage: &Stage) -> Vec<RoundRecord> {
    RunDirectory::open(&stage.path("run")).unwrap().lines().unwrap()
}

/// The final model of a run in which client 2 answers two rounds only, because its certificate is revoked.
async fn never_poisoned() -> (Vec<u8>, Vec<RoundRecord>) {
    let stage = Stage::new(3);
    let running = stage.serve("run", &config(&SETTINGS), options(3, None));
    let mut puppets = puppets(&running, &stage, 3).await;
    honest_round(&mut puppets).await;
    honest_round(&mut puppets).await;
    assert_eq!(puppets[0].job().await.offer.round, 2);
    stage.certs.revoke("client-2").unwrap();
    honest_round(&mut puppets[..2]).await;
    honest_round(&mut puppets[..2]).await;
    drop(puppets);
    tokio::task::block_in_place(|| running.finish());
    (stage.model("run"), lines(&stage))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poisoned_federation_rolled_back_without_the_liar_ends_as_if_it_had_left_in_time() {
    let stage = Stage::new(3);
    let running = stage.serve("run", &config(&SETTINGS), options(3, None));
    let mut before = puppets(&running, &stage, 3).await;
    honest_round(&mut before).await;
    honest_round(&mut before).await;
    honest_round(&mut before[..2]).await;
    move_by(&mut before[2], 1e3).await;
    // The next round is open, and has an update too.
    move_by(&mut before[2], 1e3).await;
    assert_eq!(before[0].job().await.offer.round, 3);
    drop(before);
    running.stop();
    let poisoned = lines(&stage);
    stage.certs.revoke("client-2").unwrap();

    let running = stage.serve("run", &config(&SETTINGS), options(3, Some(2)));
    let mut after = puppets(&running, &stage, 2).await;
    // The same bytes as in the discarded round 3.
    honest_round(&mut after).await;
    honest_round(&mut after).await;
    drop(after);
    tokio::task::block_in_place(|| running.finish());

    let (model, expected) = never_poisoned().await;
    assert!(stage.model("run") == model);
    let lines = lines(&stage);
    assert_ne!(lines[2].model_hash, poisoned[2].model_hash);
    assert_eq!(
        lines.iter().map(|line| line.rolled_back_from).collect::<Vec<_>>(),
        [None, None, Some(3), None]
    );
    for (line, expected) in lines.iter().zip(&expected) {
        assert_eq!((&line.model_hash, &line.clients), (&expected.model_hash, &expected.clients));
    }
    let record = stage.path("run/rolled-back/0001-from-3-to-2");
    let kept = std::fs::read_to_string(record.join("rounds.jsonl")).unwrap();
    assert_eq!(serde_json::from_str::<RoundRecord>(&kept).unwrap(), poisoned[2]);
    assert!(record.join("round-000002/closed.json").is_file());
    let logged = stage.until(|event| match event {
        Event::RolledBack { from, to, .. } => Some((*from, *to)),
        _ => None,
    });
    assert_eq!(logged, (3, 2));
}

async fn enrol_without_labels(puppet: &mut Puppet) {
    let enrolment = puppet.enrolment(&counts(puppet.client), &Reference::uniform(10), Ask::Nothing);
    puppet.link.enrol(enrolment).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_remember_start_from_zero_after_a_rollback_even_if_the_server_is_killed_before_the_next_round()
 {
    let stage = Stage::new(2);
    let config = config(&[&SETTINGS[..], &["strategy.name=scaffold"]].concat());
    let running = stage.serve("run", &config, options(2, None));
    let mut zero = running.puppet(&stage, 0).await;
    let mut one = running.puppet(&stage, 1).await;
    enrol_without_labels(&mut zero).await;
    enrol_without_labels(&mut one).await;
    for _ in 0..2 {
        move_by(&mut zero, 0.5).await;
        move_by(&mut one, 0.5).await;
    }
    let job = zero.job().await;
    assert_eq!((job.offer.round, job.accepted), (2, Some(1)));
    assert!(job.offer.carried.f32("control").unwrap().iter().all(|c| *c > 0.5));
    drop((zero, one));
    running.stop();

    drop(stage.prepare("run", &config, options(2, Some(1))));
    let running = stage.serve("run", &config, options(2, None));
    let mut zero = running.puppet(&stage, 0).await;
    enrol_without_labels(&mut zero).await;
    let job = zero.job().await;
    assert_eq!((job.offer.round, job.accepted), (1, None));
    assert!(job.offer.carried.f32("control").unwrap().iter().all(|c| *c == 0.0));
    let mut one = running.puppet(&stage, 1).await;
    enrol_without_labels(&mut one).await;
    move_by(&mut zero, 0.25).await;
    move_by(&mut one, 0.75).await;
    // c is the mean of what the clients remember now.
    let job = zero.job().await;
    assert_eq!((job.offer.round, job.accepted), (2, Some(1)));
    assert!(job.offer.carried.f32("control").unwrap().iter().all(|c| *c == 0.5));
    running.stop();
    assert_eq!(lines(&stage)[1].rolled_back_from, Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_to_the_last_round_discards_the_updates_of_the_open_one() {
    let stage = Stage::new(2);
    let running = stage.serve("run", &config(&SETTINGS), options(2, None));
    let mut before = puppets(&running, &stage, 2).await;
    honest_round(&mut before).await;
    move_by(&mut before[1], 1e3).await;
    drop(before);
    running.stop();
    let running = stage.serve("run", &config(&SETTINGS), options(2, Some(1)));
    let mut after = puppets(&running, &stage, 2).await;
    honest_round(&mut after).await;
    assert_eq!(after[0].job().await.offer.round, 2);
    running.stop();
    let record = &lines(&stage)[1];
    assert_eq!(record.rolled_back_from, Some(1));
    let norms: Vec<f64> = record.clients.iter().filter_map(|client| client.norm).collect();
    assert!(norms.len() == 2 && norms.iter().all(|norm| *norm < 10.0), "{norms:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_completes_a_rollback_that_a_crash_interrupted() {
    let stage = Stage::new(1);
    let running = stage.serve("run", &config(&SETTINGS), options(1, None));
    let mut zero = running.puppet(&stage, 0).await;
    zero.enrol().await.unwrap();
    for _ in 0..3 {
        move_by(&mut zero, honest(0)).await;
    }
    assert_eq!(zero.job().await.offer.round, 3);
    running.stop();
    let directory = RunDirectory::open(&stage.path("run")).unwrap();
    drop(begin(&directory, &zero.layout, 1).unwrap());
    let running = stage.serve("run", &config(&SETTINGS), options(1, None));
    let mut zero = running.puppet(&stage, 0).await;
    zero.enrol().await.unwrap();
    for round in 1..4 {
        assert_eq!(move_by(&mut zero, honest(0)).await.offer.round, round);
    }
    tokio::task::block_in_place(|| running.finish());
    assert_eq!(lines(&stage)[1].rolled_back_from, Some(3));
    for round in ["round-000001", "round-000002"] {
        assert!(stage.path("run/rolled-back/0001-from-3-to-1").join(round).join("closed.json").is_file());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_is_refused_while_a_server_runs_and_for_rounds_that_are_not_kept() {
    let stage = Stage::new(1);
    let running = stage.serve("run", &config(&SETTINGS), options(1, None));
    let mut zero = running.puppet(&stage, 0).await;
    zero.enrol().await.unwrap();
    move_by(&mut zero, honest(0)).await;
    assert_eq!(zero.job().await.offer.round, 1);
    let attempt = |out: &str, round| {
        let log: fedtvd_net::federation::Log = Arc::new(|_| {});
        let prepared = prepare(None, &Places::new(None), &stage.path(out), options(1, Some(round)), log);
        prepared.err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert!(attempt("run", 0).starts_with("another server is using "), "{}", attempt("run", 0));
    running.stop();
    let error = attempt("run", 3);
    assert!(error.ends_with("has no usable checkpoint of round 3; available rounds: 0, 1"), "{error}");
    let error = attempt("elsewhere", 0);
    assert!(error.ends_with("elsewhere holds no federation that could be rolled back"), "{error}");
    assert_eq!(lines(&stage).len(), 1);
    assert_eq!(attempt("run", 0), "");
    assert_eq!(lines(&stage).len(), 0);
}
