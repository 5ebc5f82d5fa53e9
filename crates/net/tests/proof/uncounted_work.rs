//! What the log says about work that does not count: refused, repeated, failed, or not done.

use crate::puppet::code;
use crate::roster::{SETTINGS, answer};
use crate::stage::{Stage, config};
use fedtvd_core::train::Evaluation;
use fedtvd_net::client::Task;
use fedtvd_net::federation::{Deadline, Event, Options};
use fedtvd_run::directory::sha256;
use std::time::Duration;

#[tokio::test(flavor = "multi_thread")]
async fn an_evaluation_ends_with_the_limit_of_the_round_and_the_log_names_who_did_not_answer() {
    let stage = Stage::new(2);
    let settings = ["model.name=logistic", "cohort.fraction=1", "rounds=1"];
    let deadline = Deadline::After(Duration::from_secs(3));
    let names = [(0, "rome".to_owned()), (1, "oslo".to_owned())].into();
    let roster = Some([0, 1].into());
    let options =
        Options { roster, workers: 1, clients_evaluate: true, deadline, names, ..Options::default() };
    let running = stage.serve("run", &config(&settings), options);
    let mut puppets = [running.puppet(&stage, 0).await, running.puppet(&stage, 1).await];
    for puppet in &mut puppets {
        puppet.enrol().await.unwrap();
    }
    for puppet in &mut puppets {
        answer(puppet).await;
    }
    let [mut rome, _oslo] = puppets;
    let run = rome.welcome.run.clone();
    let round = loop {
        match rome.link.pull(&run).await.unwrap() {
            Task::Evaluate(round, _) => break round,
            Task::Wait => {}
            other => panic!("{other:?} instead of a model to evaluate"),
        }
    };
    rome.link.evaluate(&run, round, Evaluation::empty(10).into()).await.unwrap();
    let status = running.coordinator.status();
    assert_eq!((status.phase.as_str(), status.waiting_for_names), ("evaluating", vec!["oslo".to_owned()]));
    tokio::task::block_in_place(|| running.finish());
    let note = "round 1: evaluated without oslo, who did not answer";
    assert!(stage.events().iter().any(|event| matches!(event, Event::Note { note: said } if said == note)));
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_repeated_and_failed_work_is_logged_with_client_address_certificate_round_and_update() {
    let stage = Stage::new(2);
    let options = Options { roster: Some([0, 1].into()), workers: 1, ..Options::default() };
    let running = stage.serve("run", &config(&SETTINGS), options);
    let mut puppets = [running.puppet(&stage, 0).await, running.puppet(&stage, 1).await];
    for puppet in &mut puppets {
        puppet.enrol().await.unwrap();
    }
    let [mut zero, mut one] = puppets;
    let job = zero.job().await;
    let bytes = zero.one_hot(&job).to_bytes();
    assert_eq!(code(zero.send(7, bytes.clone()).await), "early");
    zero.send(0, bytes.clone()).await.unwrap();
    assert!(zero.send(0, bytes.clone()).await.unwrap());
    let list = stage.certs.list().unwrap();
    let hash = sha256(&bytes);
    let own = |certificate: &Option<String>| *certificate == Some(list.clients[0].fingerprint.clone());
    stage.until(|event| match event {
        Event::Refused { code: "early", client, peer, certificate, round: Some(8), update, .. } => {
            let update = update.as_ref() == Some(&hash);
            let named = client.as_deref() == Some("client-0") && peer.starts_with("127.0.0.1:");
            (update && named && own(certificate)).then_some(())
        }
        _ => None,
    });
    stage.until(|event| match event {
        Event::Again { client: 0, round: 1, update, peer, certificate } => {
            (*update == hash && peer.starts_with("127.0.0.1:") && own(certificate)).then_some(())
        }
        _ => None,
    });
    one.job().await;
    let run = one.welcome.run.clone();
    one.link.fail(&run, 0, "no memory".to_owned()).await.unwrap();
    stage.until(|event| match event {
        Event::Failed { client: 1, round: 1, peer, certificate, .. } => {
            let certified = *certificate == Some(list.clients[1].fingerprint.clone());
            (peer.starts_with("127.0.0.1:") && certified).then_some(())
        }
        _ => None,
    });
    drop((zero, one));
    tokio::task::block_in_place(|| running.stop());
}
