//! What the record of a round and the log say about traffic and accepted updates.

use crate::stage::{Stage, config};
use fedtvd_net::federation::{Event, Options};
use fedtvd_run::directory::RunDirectory;
use std::time::Duration;

const SETTINGS: [&str; 3] = ["model.name=lenet", "rounds=1", "strategy.name=fedtvd"];

fn options() -> Options {
    Options { least: Some(1), workers: 1, ..Options::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_asks_for_its_job_again_and_again_does_not_make_up_traffic() {
    let stage = Stage::new(1);
    let running = stage.serve("run", &config(&SETTINGS), options());
    let mut puppet = running.puppet(&stage, 0).await;
    let job = puppet.job().await;
    let bytes = puppet.one_hot(&job).to_bytes();
    let run = puppet.welcome.run.clone();
    for _ in 0..100 {
        let _ = tokio::time::timeout(Duration::from_millis(3), puppet.link.pull(&run)).await;
    }
    puppet.send(0, bytes).await.unwrap();
    drop(puppet);
    tokio::task::block_in_place(|| running.finish());
    let lines = RunDirectory::open(&stage.path("run")).unwrap().lines().unwrap();
    assert_eq!(lines[0].bytes_down, job.to_bytes().len() as u64);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_that_was_stored_before_a_kill_and_not_logged_is_logged_when_it_is_found() {
    let stage = Stage::new(1);
    let running = stage.serve("run", &config(&SETTINGS), options());
    let mut puppet = running.puppet(&stage, 0).await;
    let job = puppet.job().await;
    let bytes = puppet.one_hot(&job).to_bytes();
    let hash = puppet.ticket(0, &bytes).hash;
    drop(puppet);
    tokio::task::block_in_place(|| running.stop());
    std::fs::write(stage.path(&format!("run/federation/round-000000/client-0-{hash}")), &bytes).unwrap();
    let running = stage.serve("run", &config(&SETTINGS), options());
    tokio::task::block_in_place(|| running.finish());
    let events = stage.events();
    let recovered = Event::Recovered { client: 0, round: 1, bytes: bytes.len() as u64, update: hash };
    let found = events.iter().position(|event| *event == recovered).expect("no line about the update");
    let closed = events.iter().position(|event| matches!(event, Event::Closed { accepted: 1, .. }));
    assert!(closed.is_some_and(|closed| found < closed), "{events:?}");
}
