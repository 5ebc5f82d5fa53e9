//! Clients that join late, vanish, connect twice, or need a common reference.

use crate::puppet::{Puppet, code, counts};
use crate::stage::{Stage, config};
use fedtvd_core::labels::{Ask, Reference};
use fedtvd_core::round::ClientFailure;
use fedtvd_core::train::Evaluation;
use fedtvd_data::set::{DataOptions, Places};
use fedtvd_net::client;
use fedtvd_net::client::{ConnectionError, Security, Task};
use fedtvd_net::federation::{Deadline, Event, Log, Options, ask, prepare};
use fedtvd_net::server::{Keys, Server};
use fedtvd_net::wire::federation_client::FederationClient;
use fedtvd_net::wire::{self, upload_reply, upload_request};
use fedtvd_run::directory::RunDirectory;
use fedtvd_run::runner::Runner;
use fedtvd_run::simulation::Resources;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;
use tonic::Status;
use tonic::transport::Channel;

pub(crate) const SETTINGS: [&str; 3] = ["model.name=logistic", "cohort.fraction=1", "rounds=2"];

pub(crate) async fn answer(puppet: &mut Puppet) {
    let job = puppet.job().await;
    let bytes = puppet.one_hot(&job).to_bytes();
    puppet.send(job.offer.round, bytes).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_roster_clients_may_join_later_and_each_round_records_how_many_were_enrolled() {
    let stage = Stage::new(2);
    let running =
        stage.serve("run", &config(&SETTINGS), Options { least: Some(1), workers: 1, ..Options::default() });
    let mut zero = running.puppet(&stage, 0).await;
    let job = zero.job().await;
    let mut one = running.puppet(&stage, 1).await;
    one.enrol().await.unwrap();
    let bytes = one.one_hot(&job).to_bytes();
    assert_eq!(code(one.send(0, bytes).await), "not-asked");
    answer(&mut zero).await;
    answer(&mut zero).await;
    answer(&mut one).await;
    drop((zero, one));
    tokio::task::block_in_place(|| running.finish());
    let lines = RunDirectory::open(&stage.path("run")).unwrap().lines().unwrap();
    assert_eq!(lines.iter().map(|line| line.roster).collect::<Vec<_>>(), [Some(1), Some(2)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_closes_a_round_without_clients_that_vanished_and_below_the_quorum_nothing_changes() {
    let stage = Stage::new(2);
    let settings = [&SETTINGS[..], &["cohort.quorum=2"]].concat();
    let deadline = Deadline::After(Duration::from_millis(300));
    let options = Options { roster: Some([0, 1].into()), workers: 1, deadline, ..Options::default() };
    let running = stage.serve("run", &config(&settings), options);
    let mut zero = running.puppet(&stage, 0).await;
    let mut one = running.puppet(&stage, 1).await;
    zero.enrol().await.unwrap();
    one.enrol().await.unwrap();
    answer(&mut zero).await;
    drop((zero, one));
    tokio::task::block_in_place(|| running.finish());
    let late = stage.until(|event| match event {
        Event::Closed { round: 1, late, .. } => Some(late.clone()),
        _ => None,
    });
    assert_eq!(late, [1]);
    let lines = RunDirectory::open(&stage.path("run")).unwrap().lines().unwrap();
    assert_eq!(lines[0].unchanged.as_deref(), Some("1 of 2 needed updates were accepted"));
    assert_eq!(lines[0].clients[1].failure, Some(ClientFailure::Recorded("no answer".to_owned())));
    assert_eq!(lines[0].model_hash, lines[1].model_hash);
}

/// Sends an update without waiting for the server's permission; whether it was accepted before.
async fn upload(
    client: &mut FederationClient<Channel>,
    messages: Vec<wire::UploadRequest>,
) -> Result<bool, Status> {
    let mut replies = client.upload(tokio_stream::iter(messages)).await?.into_inner();
    loop {
        if let Some(upload_reply::Step::Receipt(receipt)) = replies.message().await?.unwrap().step {
            return Ok(receipt.already);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_concurrent_uploads_of_the_same_update_count_once() {
    let stage = Stage::new(2);
    let options = Options { roster: Some([0, 1].into()), workers: 1, ..Options::default() };
    let running = stage.serve("run", &config(&SETTINGS), options);
    let mut one = running.puppet(&stage, 1).await;
    one.enrol().await.unwrap();
    let mut zero = running.puppet(&stage, 0).await;
    let job = zero.job().await;
    let bytes = zero.one_hot(&job).to_bytes();
    let ticket = upload_request::Content::Ticket(zero.ticket(0, &bytes));
    let chunks = bytes.chunks(wire::CHUNK).map(|chunk| upload_request::Content::Chunk(chunk.to_vec().into()));
    let messages = std::iter::once(ticket).chain(chunks);
    let messages: Vec<_> = messages.map(|content| wire::UploadRequest { content: Some(content) }).collect();
    let mut racers = Vec::new();
    // With the connection above, these are as many as a certificate may have.
    for _ in 0..3 {
        let channel = running.channel(&stage, 0).await;
        for _ in 0..3 {
            let (mut racer, messages) = (FederationClient::new(channel.clone()), messages.clone());
            racers.push(tokio::spawn(async move {
                let mut answers = Vec::new();
                for _ in 0..7 {
                    answers.push(upload(&mut racer, messages.clone()).await);
                }
                answers
            }));
        }
    }
    let (mut first, mut others) = (0, 0);
    for racer in racers {
        for answer in racer.await.unwrap() {
            match answer {
                Ok(false) => first += 1,
                Ok(true) => others += 1,
                Err(refused) => {
                    let code = refused.metadata().get(wire::CODE).unwrap_or_else(|| panic!("{refused:?}"));
                    assert!(code == "busy" || code == "taken-over", "{refused:?}");
                    others += 1;
                }
            }
        }
    }
    assert_eq!((first, others), (1, 62));
    running.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_process_of_a_client_must_enrol_too_and_is_refused_with_other_data() {
    let stage = Stage::new(1);
    let options = Options { least: Some(1), workers: 1, ..Options::default() };
    let running = stage.serve("run", &config(&SETTINGS), options);
    running.puppet(&stage, 0).await.job().await;
    let mut second = running.puppet(&stage, 0).await;
    let task = second.link.pull(&second.welcome.run.clone()).await.unwrap();
    assert!(matches!(task, Task::Survey(_)), "{task:?}");
    let other = second.enrolment(&[9; 10], &Reference::uniform(10), Ask::Distance);
    assert_eq!(code(second.link.enrol(other).await), "profile-changed");
    let task = second.link.pull(&second.welcome.run.clone()).await.unwrap();
    assert!(matches!(task, Task::Survey(_)), "{task:?}");
    running.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_aggregated_reference_is_computed_from_all_counts_and_then_only_distances_are_sent() {
    let stage = Stage::new(2);
    let settings = [&SETTINGS[..], &["labels.reference=aggregated"]].concat();
    let options = Options { roster: Some([0, 1].into()), workers: 1, ..Options::default() };
    let running = stage.serve("run", &config(&settings), options.clone());
    let mut puppets = [running.puppet(&stage, 0).await, running.puppet(&stage, 1).await];
    for puppet in &mut puppets {
        let Task::Survey(survey) = puppet.link.pull(&puppet.welcome.run.clone()).await.unwrap() else {
            panic!("no survey")
        };
        assert_eq!(survey.ask, "\"histogram\"");
        let enrolment = puppet.enrolment(&counts(puppet.client), &Reference::uniform(10), Ask::Histogram);
        puppet.link.enrol(enrolment).await.unwrap();
    }
    let expected = Reference::aggregated([&counts(0)[..], &counts(1)[..]]).unwrap();
    for puppet in &mut puppets {
        let survey = loop {
            match puppet.link.pull(&puppet.welcome.run.clone()).await.unwrap() {
                Task::Survey(survey) => break survey,
                Task::Wait => {}
                other => panic!("{other:?} instead of a survey"),
            }
        };
        assert_eq!(survey.ask, "\"distance\"");
        let reference: Reference = serde_json::from_str(&survey.reference).unwrap();
        assert_eq!(reference, expected);
        let enrolment = puppet.enrolment(&counts(puppet.client), &reference, Ask::Distance);
        puppet.link.enrol(enrolment).await.unwrap();
    }
    assert_eq!(puppets[0].job().await.offer.reference, expected);
    running.stop();
    // A restarted server uses the same reference from the first survey on.
    let ready = stage.prepare("run", &config(&settings), options);
    let listening = stage.listen(&ready.coordinator);
    let mut again = Puppet::dial(&listening.address().to_string(), &stage.security(0), 0).await.unwrap();
    let Task::Survey(survey) = again.link.pull(&again.welcome.run.clone()).await.unwrap() else {
        panic!("no survey")
    };
    assert_eq!(survey.ask, "\"distance\"");
    let reference: Reference = serde_json::from_str(&survey.reference).unwrap();
    assert_eq!(reference, expected);
    let enrolment = again.enrolment(&counts(0), &reference, Ask::Distance);
    again.link.enrol(enrolment).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_test_set_the_rounds_clients_evaluate_the_model_and_send_counts() {
    let stage = Stage::new(2);
    let settings = ["model.name=logistic", "cohort.fraction=1", "rounds=1"];
    let roster = Some([0, 1].into());
    let options = Options { roster, workers: 1, clients_evaluate: true, ..Options::default() };
    let running = stage.serve("run", &config(&settings), options);
    let mut puppets = [running.puppet(&stage, 0).await, running.puppet(&stage, 1).await];
    for puppet in &mut puppets {
        let own = puppet.enrolment(&counts(puppet.client), &Reference::uniform(10), Ask::Distance);
        let endless = fedtvd_net::wire::Enrolment { holdout: u64::MAX, ..own.clone() };
        assert_eq!(code(puppet.link.enrol(endless).await), "holdout-above-listed");
        puppet.link.enrol(fedtvd_net::wire::Enrolment { holdout: 20, ..own }).await.unwrap();
    }
    for puppet in &mut puppets {
        answer(puppet).await;
    }
    for puppet in &mut puppets {
        let run = puppet.welcome.run.clone();
        let round = loop {
            match puppet.link.pull(&run).await.unwrap() {
                Task::Evaluate(round, model) => {
                    fedtvd_core::model::Params::from_safetensors(&model, &puppet.layout).unwrap();
                    break round;
                }
                Task::Wait => {}
                other => panic!("{other:?} instead of a model to evaluate"),
            }
        };
        let mut found = Evaluation::empty(10);
        found.confusion[..2].copy_from_slice(&[30, 10]);
        assert_eq!(code(puppet.link.evaluate(&run, round, found.clone().into()).await), "bad-counts");
        found.confusion[..2].copy_from_slice(&[5, 15]);
        found.loss = 40.0;
        assert_eq!(code(puppet.link.evaluate(&run, round + 1, found.clone().into()).await), "not-evaluating");
        puppet.link.evaluate(&run, round, found.into()).await.unwrap();
    }
    drop(puppets);
    tokio::task::block_in_place(|| running.finish());
    let lines = RunDirectory::open(&stage.path("run")).unwrap().lines().unwrap();
    assert_eq!((lines[0].accuracy, lines[0].loss), (Some(0.25), Some(2.0)));
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn an_update_is_refused_while_the_disk_is_full_and_accepted_later() {
    let stage = Stage::new(2);
    let options = Options { roster: Some([0, 1].into()), workers: 1, ..Options::default() };
    let running = stage.serve("run", &config(&SETTINGS), options);
    let mut one = running.puppet(&stage, 1).await;
    one.enrol().await.unwrap();
    let mut zero = running.puppet(&stage, 0).await;
    let job = zero.job().await;
    let bytes = zero.one_hot(&job).to_bytes();
    // Every write to this file fails with a full disk.
    let ticket = zero.ticket(0, &bytes);
    let name = format!("client-0-{}-{}.partial", ticket.hash, ticket.bytes);
    let partial = stage.path("run/federation/round-000000").join(name);
    std::os::unix::fs::symlink("/dev/full", &partial).unwrap();
    let refused = zero.send(0, bytes.clone()).await;
    assert!(matches!(&refused, Err(ConnectionError::Refused { passing: true, .. })), "{refused:?}");
    assert_eq!(code(refused), "disk-full");
    assert!(!partial.exists());
    assert!(!zero.send(0, bytes).await.unwrap());
    running.stop();
}

#[test]
fn a_federation_is_not_resumed_as_a_simulation_and_is_served_by_one_server_at_a_time() {
    let stage = Stage::new(1);
    let options = Options { least: Some(1), workers: 1, ..Options::default() };
    let running = stage.serve("run", &config(&SETTINGS), options.clone());
    let out = stage.path("run");
    let places = Places::new(None);
    let log: Log = Arc::new(|_: &Event| {});
    let Err(error) = prepare(Some(&config(&SETTINGS)), &places, &out, options.clone(), log.clone()) else {
        panic!("a second server was accepted")
    };
    assert!(error.to_string().starts_with("another server is using "), "{error}");
    running.stop();
    let Err(error) = Runner::resume(&out, &places, Resources::workers(1)) else { panic!("resumed") };
    assert!(error.to_string().contains("holds a federation; resume it with \"fedtvd serve"), "{error}");
    let other = config(&["model.name=logistic", "rounds=3"]);
    let Err(error) = prepare(Some(&other), &places, &out, options.clone(), log.clone()) else {
        panic!("another configuration was accepted")
    };
    assert!(error.to_string().contains("another configuration"), "{error}");
    for strategy in ["scaffold", "feddyn"] {
        let config = config(&[&format!("strategy.name={strategy}")]);
        let prepared = prepare(Some(&config), &places, &stage.path("other"), options.clone(), log.clone());
        let Err(error) = prepared else { panic!("{strategy} was started without a roster") };
        assert!(error.to_string().contains("--roster FILE"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_may_reconnect_hundreds_of_times() {
    let stage = Stage::new(1);
    let options = Options { least: Some(1), workers: 1, ..Options::default() };
    let running = stage.serve("run", &config(&SETTINGS), options);
    for _ in 0..300 {
        assert_eq!(running.puppet(&stage, 0).await.job().await.offer.round, 0);
    }
    running.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_with_other_class_names_reports_them_and_leaves() {
    let stage = Stage::new(1);
    let options = Options { least: Some(1), workers: 1, ..Options::default() };
    let running = stage.serve("run", &config(&SETTINGS), options);
    let data = DataOptions::default().load(&Places::new(None)).unwrap();
    let mut class_names = data.class_names;
    class_names.swap(0, 1);
    let (server, security) = (running.address(), stage.security(0));
    let (samples, folder) = (data.samples, stage.path("state"));
    let data = client::SiteData::Samples { samples, class_names };
    let options = client::Options::new(server, security, data, folder);
    let error = client::join(options, &|_| {}).await.unwrap_err().to_string();
    assert!(error.starts_with("the federation's classes are T-shirt, trouser"), "{error}");
    running.stop();
}

#[test]
fn a_run_is_resumed_with_the_roster_that_it_was_started_with_and_an_empty_roster_is_refused() {
    let stage = Stage::new(2);
    let options = |roster: Option<&[u32]>| {
        let roster = roster.map(|roster| roster.iter().copied().collect());
        Options { roster, workers: 1, ..Options::default() }
    };
    let prepared = |out: &str, roster: Option<&[u32]>| {
        let log: Log = Arc::new(|_: &Event| {});
        let config = config(&["model.name=logistic", "strategy.name=scaffold"]);
        let prepared = prepare(Some(&config), &Places::new(None), &stage.path(out), options(roster), log);
        prepared.map(drop).map_err(|error| error.to_string())
    };
    let error = prepared("nobody", Some(&[])).unwrap_err();
    assert!(error.starts_with("the roster is empty"), "{error}");
    prepared("run", Some(&[0, 1])).unwrap();
    prepared("run", None).unwrap();
    prepared("run", Some(&[0, 1])).unwrap();
    let error = prepared("run", Some(&[0])).unwrap_err();
    assert!(error.starts_with("the run was started with the roster {0, 1}"), "{error}");
}

#[test]
fn class_weights_for_another_number_of_classes_are_refused_before_there_is_a_run() {
    let stage = Stage::new(1);
    let config = config(&["model.name=logistic", "local.class_weights=[1, 5]"]);
    let (out, log): (_, Log) = (stage.path("run"), Arc::new(|_: &Event| {}));
    let refused = prepare(Some(&config), &Places::new(None), &out, Options::default(), log).map(drop);
    let sentence = "local.class_weights: 2 numbers were given, but there are 10 classes";
    assert_eq!(refused.unwrap_err().to_string(), sentence);
    assert!(!out.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_shows_who_is_missing_before_the_first_round() {
    let stage = Stage::new(3);
    let names = [(2, "rome".to_owned())].into();
    let options = Options { roster: Some([0, 1, 2].into()), workers: 1, names, ..Options::default() };
    let running = stage.serve("run", &config(&SETTINGS), options);
    running.puppet(&stage, 1).await.enrol().await.unwrap();
    let status = running.coordinator.status();
    assert_eq!(status.waiting_for, [0, 2]);
    assert!(status.text().contains("\nwaiting for client 0, rome\n"), "{}", status.text());
    running.stop();
}

#[cfg(target_os = "linux")]
#[test]
fn the_operator_may_ask_for_the_status_at_any_address_of_the_servers_machine() {
    let stage = Stage::new(1);
    let options = Options { least: Some(1), workers: 1, ..Options::default() };
    let ready = stage.prepare("run", &config(&SETTINGS), options);
    let keys = Keys::open(&stage.path("certs")).unwrap();
    let server =
        Server::start(&ready.coordinator, keys, TcpListener::bind("127.0.0.2:0").unwrap(), 4).unwrap();
    let operator = Security::operator(&stage.path("certs")).unwrap();
    let status = ask(&server.address().to_string(), &operator).unwrap();
    assert_eq!(status.phase, "gathering");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restart_only_the_last_five_checkpoints_and_every_nth_are_kept() {
    let stage = Stage::new(1);
    let settings = ["model.name=logistic", "cohort.fraction=1", "rounds=35"];
    let options = Options { roster: Some([0].into()), workers: 1, ..Options::default() };
    let running = stage.serve("run", &config(&settings), options.clone());
    let mut zero = running.puppet(&stage, 0).await;
    for _ in 0..5 {
        answer(&mut zero).await;
    }
    assert_eq!(zero.job().await.offer.round, 5);
    running.stop();
    let running = stage.serve("run", &config(&settings), options);
    let mut zero = running.puppet(&stage, 0).await;
    for _ in 0..6 {
        answer(&mut zero).await;
    }
    assert_eq!(zero.job().await.offer.round, 11);
    running.stop();
    let mut kept: Vec<_> = std::fs::read_dir(stage.path("run/checkpoint"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    kept.sort();
    let rounds = [4, 7, 8, 9, 10, 11].map(|round| format!("round-{round:06}"));
    assert_eq!(kept, rounds);
}
