//! Clients that leave or are away: revoked and renewed certificates, and the end of a run.

use crate::puppet::{Puppet, code};
use crate::roster::{SETTINGS, answer};
use crate::stage::{Stage, config};
use fedtvd_core::round::{ClientFailure, RoundRecord};
use fedtvd_net::client::Task;
use fedtvd_net::federation::{Event, Options, Ready, Work, farewell};
use fedtvd_net::identity::CertificateRequest;
use fedtvd_run::directory::RunDirectory;
use std::sync::Arc;
use std::time::Duration;

#[tokio::test(flavor = "multi_thread")]
async fn a_round_does_not_wait_for_a_client_whose_certificate_was_revoked() {
    let stage = Stage::new(2);
    let options = Options { roster: Some([0, 1].into()), workers: 1, ..Options::default() };
    let running = stage.serve("run", &config(&SETTINGS), options);
    let (mut zero, mut one) = (running.puppet(&stage, 0).await, running.puppet(&stage, 1).await);
    zero.enrol().await.unwrap();
    one.enrol().await.unwrap();
    answer(&mut zero).await;
    drop(one);
    stage.certs.revoke("client-1").unwrap();
    answer(&mut zero).await;
    drop(zero);
    tokio::task::block_in_place(|| running.finish());
    let lines = RunDirectory::open(&stage.path("run")).unwrap().lines().unwrap();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0].clients[1].failure, Some(ClientFailure::Recorded("no answer".to_owned())));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finished_run_still_informs_a_client_that_was_away() {
    let stage = Stage::new(2);
    let settings = ["model.name=logistic", "cohort.fraction=1", "cohort.quorum=1", "rounds=1"];
    let options = Options { roster: Some([0, 1].into()), workers: 1, ..Options::default() };
    let running = stage.serve("run", &config(&settings), options.clone());
    let mut one = running.puppet(&stage, 1).await;
    one.enrol().await.unwrap();
    let mut zero = running.puppet(&stage, 0).await;
    answer(&mut zero).await;
    answer(&mut one).await;
    drop((zero, one));
    tokio::task::block_in_place(|| running.finish());
    let Ready { coordinator, work } = stage.prepare("run", &config(&settings), options);
    let Work::Farewell(summary) = work else { panic!("all rounds should be done") };
    let server = stage.listen(&coordinator);
    let informing = {
        let (coordinator, out) = (Arc::clone(&coordinator), stage.path("run"));
        std::thread::spawn(move || farewell(&coordinator, &out, &summary, Duration::from_secs(3600)).unwrap())
    };
    for client in [0, 1] {
        assert!(!informing.is_finished(), "client {client} is not informed yet");
        let address = server.address().to_string();
        let mut late = Puppet::dial(&address, &stage.security(client), client).await.unwrap();
        let run = late.welcome.run.clone();
        while !matches!(late.link.pull(&run).await.unwrap(), Task::Finished(_)) {
            late.enrol().await.unwrap();
        }
    }
    // Both are informed, so nobody waits for the rest of the hour.
    tokio::task::block_in_place(|| informing.join().unwrap());
}

pub(crate) fn noted(stage: &Stage, start: &str) {
    stage.until(|event| match event {
        Event::Note { note } if note.starts_with(start) => Some(()),
        _ => None,
    });
}

pub(crate) fn wish(client: u32) -> CertificateRequest {
    CertificateRequest { name: format!("client-{client}"), id: None, max_size: 1000, days: 5 }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_round_waits_for_a_client_that_was_revoked_before_it_enrolled_nor_once_it_has_a_new_certificate() {
    let stage = Stage::new(2);
    let options = Options { roster: Some([0, 1].into()), workers: 1, ..Options::default() };
    let running = stage.serve("run", &config(&SETTINGS), options);
    let mut zero = running.puppet(&stage, 0).await;
    zero.enrol().await.unwrap();
    stage.certs.revoke("client-1").unwrap();
    let job = zero.job().await;
    stage.certs.issue(&wish(1)).unwrap();
    noted(&stage, "clients [1] have a valid certificate now");
    // The roster is fixed, and its first round has begun without this client.
    let mut one = running.puppet(&stage, 1).await;
    assert_eq!(code(one.enrol().await), "roster-closed");
    drop(one);
    let bytes = zero.one_hot(&job).to_bytes();
    zero.send(0, bytes).await.unwrap();
    answer(&mut zero).await;
    drop(zero);
    tokio::task::block_in_place(|| running.finish());
    let lines = RunDirectory::open(&stage.path("run")).unwrap().lines().unwrap();
    assert_eq!(lines.iter().map(|line| line.roster).collect::<Vec<_>>(), [Some(1), Some(1)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn if_all_certificates_are_revoked_rounds_wait_for_new_ones_and_do_not_close_empty() {
    let stage = Stage::new(1);
    let options = Options { roster: Some([0].into()), workers: 1, ..Options::default() };
    let running = stage.serve("run", &config(&SETTINGS), options);
    let mut zero = running.puppet(&stage, 0).await;
    zero.job().await;
    stage.certs.revoke("client-0").unwrap();
    noted(&stage, "clients [0] no longer have a valid certificate");
    stage.certs.issue(&wish(0)).unwrap();
    noted(&stage, "clients [0] have a valid certificate now");
    let mut zero = running.puppet(&stage, 0).await;
    answer(&mut zero).await;
    answer(&mut zero).await;
    drop(zero);
    tokio::task::block_in_place(|| running.finish());
    let lines = RunDirectory::open(&stage.path("run")).unwrap().lines().unwrap();
    let counted = |line: &RoundRecord| line.clients.iter().filter(|client| client.failure.is_none()).count();
    assert_eq!(lines.iter().map(counted).collect::<Vec<_>>(), [1, 1]);
}
