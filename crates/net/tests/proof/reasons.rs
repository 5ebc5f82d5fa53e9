//! What the operator learns about sites that do not take part, and about models that are not evaluated.

use crate::double::{Double, data, welcome};
use crate::puppet::counts;
use crate::roster::{SETTINGS, answer};
use crate::stage::{Stage, config};
use fedtvd_core::labels::{Ask, Reference};
use fedtvd_core::round::ClientEvaluation;
use fedtvd_net::client::{self, Task};
use fedtvd_net::federation::{Event, Options};
use fedtvd_net::wire;
use std::sync::Arc;

#[tokio::test(flavor = "multi_thread")]
async fn the_log_and_the_status_say_why_a_model_was_not_evaluated() {
    let stage = Stage::new(3);
    let settings = ["model.name=logistic", "cohort.fraction=1", "rounds=1", "strategy.mode=hardened"];
    let roster = Some([0, 1, 2].into());
    let options = Options { roster, workers: 1, clients_evaluate: true, ..Options::default() };
    let running = stage.serve("run", &config(&settings), options);
    let mut puppets = Vec::new();
    for client in 0..3 {
        let mut puppet = running.puppet(&stage, client).await;
        let own = puppet.enrolment(&counts(client), &Reference::uniform(10), Ask::Distance);
        let holdout = if client == 2 { 0 } else { 20 };
        puppet.link.enrol(wire::Enrolment { holdout, ..own }).await.unwrap();
        puppets.push((puppet, holdout));
    }
    for (puppet, _) in &mut puppets {
        answer(puppet).await;
    }
    for (puppet, total) in &mut puppets {
        let run = puppet.welcome.run.clone();
        let round = loop {
            match puppet.link.pull(&run).await.unwrap() {
                Task::Evaluate(round, _) => break round,
                Task::Wait => {}
                other => panic!("{other:?} instead of a model to evaluate"),
            }
        };
        let found = ClientEvaluation { loss: 1.0, correct: 0, total: *total, confusion: None };
        let loss = if *total == 0 { 0.0 } else { found.loss };
        puppet.link.evaluate(&run, round, ClientEvaluation { loss, ..found }).await.unwrap();
    }
    drop(puppets);
    let coordinator = Arc::clone(&running.coordinator);
    tokio::task::block_in_place(|| running.finish());
    let why = "2 of 3 clients sent an evaluation of hold-out samples, and hardened mode needs 3";
    let note = format!("round 1: not evaluated: {why}");
    assert!(stage.events().contains(&Event::Note { note }), "{:?}", stage.events());
    let status = coordinator.status();
    assert_eq!((status.accuracy, status.not_evaluated.as_deref()), (None, Some(why)));
    assert!(
        status.text().contains(&format!("the last model was not evaluated: {why}\n")),
        "{}",
        status.text()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_has_the_last_reason_why_a_site_does_not_take_part_or_has_no_update() {
    let stage = Stage::new(2);
    let options = Options { roster: Some([0, 1].into()), workers: 1, ..Options::default() };
    let running = stage.serve("run", &config(&SETTINGS), options);
    let problem = || running.coordinator.status().clients[0].problem.clone();
    let mut zero = running.puppet(&stage, 0).await;
    let run = zero.welcome.run.clone();
    assert_eq!(problem(), None);
    zero.link.decline(&run, "too many epochs".to_owned()).await.unwrap();
    assert_eq!(problem().unwrap(), "the site declines: too many epochs");
    let text = running.coordinator.status().text();
    assert!(text.contains(" s ago: the site declines: too many epochs\n"), "{text}");
    let mut wrong = zero.enrolment(&counts(0), &Reference::uniform(10), Ask::Distance);
    wrong.size = 5000;
    assert!(zero.link.enrol(wrong).await.is_err());
    assert!(problem().unwrap().contains("5000"), "{:?}", problem());
    zero.enrol().await.unwrap();
    assert_eq!(problem(), None);
    let mut one = running.puppet(&stage, 1).await;
    one.enrol().await.unwrap();
    zero.job().await;
    zero.link.fail(&run, 0, "no memory left".to_owned()).await.unwrap();
    assert_eq!(problem().unwrap(), "round 1: no memory left");
    answer(&mut one).await;
    answer(&mut zero).await;
    assert_eq!(problem(), None);
    drop((zero, one));
    tokio::task::block_in_place(|| running.stop());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_whose_data_do_not_fit_tells_the_server_so_but_not_how_they_differ() {
    let folder = tempfile::tempdir().unwrap();
    let other = wire::Welcome { classes: vec!["healthy".into(), "ill".into()], ..welcome() };
    let (double, server) = Double::start(other, vec![]).await;
    let options = client::Options::new(server, Double::security(), data(40), folder.path().to_owned());
    let error = client::join(options, &|_| {}).await.unwrap_err().to_string();
    assert!(error.contains("this site's are no, yes"), "{error}");
    assert_eq!(double.texts("Decline"), ["its classes are not those of the federation"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_server_lets_clients_evaluate_as_before() {
    let stage = Stage::new(1);
    for (clients_evaluate, announced) in [(true, true), (false, true)] {
        let options = Options { least: Some(1), workers: 1, clients_evaluate, ..Options::default() };
        let running = stage.serve("run", &config(&SETTINGS), options);
        let puppet = running.puppet(&stage, 0).await;
        assert_eq!(puppet.welcome.clients_evaluate, announced, "{clients_evaluate}");
        drop(puppet);
        tokio::task::block_in_place(|| running.stop());
    }
}
