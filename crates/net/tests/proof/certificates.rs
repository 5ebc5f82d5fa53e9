//! Certificates while a federation runs: they expire, are revoked and renewed without a restart.

use crate::destroyed::samples;
use crate::puppet::{Puppet, code};
use crate::roster::{SETTINGS, answer};
use crate::stage::{Stage, config};
use fedtvd_core::round::RoundRecord;
use fedtvd_data::set::{DataOptions, Places};
use fedtvd_net::client::{self, Progress, Security, SiteData};
use fedtvd_net::federation::{Event, Options, ask};
use fedtvd_net::identity::{CertificateRequest, tls};
use fedtvd_run::directory::{RunDirectory, sha256};
use std::time::Duration;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;

/// Far longer than anything here takes, on a machine with much else to do.
const PATIENCE: Duration = Duration::from_secs(20);

fn wish(client: u32) -> CertificateRequest {
    CertificateRequest { name: format!("client-{client}"), id: None, max_size: 1000, days: 5 }
}

/// A connection that has shaken hands and says nothing.
async fn silent(address: &str, security: &Security) -> TlsStream<TcpStream> {
    let Security::Tls(config) = security else { panic!("a client with a certificate") };
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(config.clone()).connect(name, stream).await.unwrap()
}

/// Reads until the server closes the connection.
async fn until_closed(mut stream: TlsStream<TcpStream>) {
    let mut buffer = [0; 1024];
    while let Ok(1..) = stream.read(&mut buffer).await {}
}

/// Lets the certificate of a client expire in a second.
fn expire(stage: &Stage, client: usize) {
    let soon = OffsetDateTime::now_utc() + Duration::from_secs(1);
    let mut list = stage.certs.list().unwrap();
    list.clients[client].expires = soon.replace_nanosecond(0).unwrap().format(&Rfc3339).unwrap();
    list.write(&stage.certs.list_path()).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_expires_during_a_round_is_refused_and_the_round_does_not_wait_for_its_client() {
    let stage = Stage::new(2);
    let options = Options { roster: Some([0, 1].into()), workers: 1, ..Options::default() };
    let running = stage.serve("run", &config(&SETTINGS), options);
    let (mut zero, mut one) = (running.puppet(&stage, 0).await, running.puppet(&stage, 1).await);
    zero.enrol().await.unwrap();
    one.enrol().await.unwrap();
    one.job().await;
    expire(&stage, 1);
    answer(&mut zero).await;
    let second = tokio::time::timeout(PATIENCE, zero.job()).await.expect("the round must close");
    assert_eq!(second.offer.round, 1);
    // The certificate itself says another date, so the handshake succeeds and the request is refused.
    let again = Puppet::dial(&running.address(), &stage.security(1), 1).await.map(|_| ());
    assert_eq!(code(again), "expired");
    let bytes = zero.one_hot(&second).to_bytes();
    zero.send(1, bytes).await.unwrap();
    drop((zero, one));
    tokio::task::block_in_place(|| running.finish());
    let lines = RunDirectory::open(&stage.path("run")).unwrap().lines().unwrap();
    let failed = |line: &RoundRecord| line.clients.iter().filter(|client| client.failure.is_some()).count();
    assert_eq!(lines.iter().map(failed).collect::<Vec<_>>(), [1, 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_requests_and_silent_connections_end_within_seconds_of_revocation_and_expiry() {
    let stage = Stage::new(3);
    let options = Options { roster: Some([0, 1, 2].into()), workers: 1, ..Options::default() };
    let running = stage.serve("run", &config(&SETTINGS), options);
    let address = running.address();
    // The third client never comes, so the others wait for the first round.
    for (client, expected) in [(0, "revoked"), (1, "expired")] {
        let security = stage.security(client);
        let mut puppet = running.puppet(&stage, client).await;
        puppet.enrol().await.unwrap();
        let quiet = silent(&address, &security).await;
        let other = silent(&address, &stage.security(2)).await;
        let run = puppet.welcome.run.clone();
        let then = async {
            if client == 0 {
                stage.certs.revoke("client-0").unwrap();
            } else {
                expire(&stage, 1);
            }
            until_closed(quiet).await;
        };
        let ended = tokio::time::timeout(PATIENCE, async { tokio::join!(puppet.link.pull(&run), then).0 });
        assert_eq!(code(ended.await.expect("the connections must end")), expected);
        // Other clients keep their connections.
        let still = tokio::time::timeout(Duration::from_millis(50), until_closed(other)).await;
        assert!(still.is_err());
    }
    running.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewed_certificate_is_valid_beside_the_old_one_and_both_are_the_same_client() {
    let stage = Stage::new(1);
    let options = Options { least: Some(1), workers: 1, ..Options::default() };
    let running = stage.serve("run", &config(&SETTINGS), options);
    let address = running.address();
    let mut old = running.puppet(&stage, 0).await;
    let (_, listed) = stage.certs.issue(&wish(0)).unwrap();
    assert_eq!(listed.id, 0);
    let mut new = running.puppet(&stage, 0).await;
    assert_eq!((new.welcome.client, new.welcome.name.as_str()), (0, "client-0"));
    // Both are connected at once: both get the job, and the first update counts.
    let (job, same) = (old.job().await, new.job().await);
    assert_eq!((job.offer.round, same.offer.round), (0, 0));
    let bytes = old.one_hot(&job).to_bytes();
    assert!(!old.send(0, bytes.clone()).await.unwrap());
    let mut other = new.one_hot(&same);
    other.params.values[1] = 1.0;
    assert!(["late", "two-answers"].contains(&code(new.send(0, other.to_bytes()).await).as_str()));
    // Revoking the old one by its serial number leaves the new one.
    let first = stage.certs.list().unwrap().clients[0].serial.clone().unwrap();
    let revoked = stage.certs.revoke_serial(&first.to_uppercase()).unwrap();
    assert_eq!(revoked.len(), 1);
    let ended = tokio::time::timeout(PATIENCE, old.link.pull(&old.welcome.run)).await.unwrap();
    assert_eq!(code(ended), "revoked");
    answer(&mut new).await;
    drop((old, new));
    assert!(Puppet::dial(&address, &stage.security(0), 0).await.is_ok());
    tokio::task::block_in_place(|| running.finish());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_client_whose_old_certificate_is_revoked_continues_with_the_renewed_one_and_stops_without_one()
 {
    let stage = Stage::new(2);
    let options = Options { roster: Some([0, 1].into()), workers: 1, ..Options::default() };
    let running = stage.serve("run", &config(&SETTINGS), options);
    let class_names = DataOptions::default().load(&Places::new(None)).unwrap().class_names;
    let data = SiteData::Samples { samples: samples(), class_names };
    let client = client::Options::new(running.address(), stage.security(0), data, stage.path("state"));
    let (steps, mut reported) = tokio::sync::mpsc::unbounded_channel();
    let mut joined = tokio::spawn(async move {
        client::join(client, &|progress: &Progress| drop(steps.send(progress.clone()))).await
    });
    let mut until = async |wanted: fn(&Progress) -> bool| {
        let found = async { while !wanted(&reported.recv().await.expect("the client still runs")) {} };
        tokio::time::timeout(PATIENCE, found).await.expect("the client must say so");
    };
    // It waits for the other client of the roster.
    until(|progress| matches!(progress, Progress::Joined(_))).await;
    stage.certs.issue(&wish(0)).unwrap();
    let first = stage.certs.list().unwrap().clients[0].serial.clone().unwrap();
    stage.certs.revoke_serial(&first).unwrap();
    until(|progress| matches!(progress, Progress::Waiting(why) if why.contains("renewed"))).await;
    until(|progress| matches!(progress, Progress::Joined(_))).await;
    stage.certs.revoke("client-0").unwrap();
    let ended = tokio::time::timeout(PATIENCE, &mut joined).await.expect("it must stop").unwrap();
    assert!(ended.unwrap_err().to_string().ends_with("[revoked]"));
    tokio::task::block_in_place(|| running.stop());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_gets_the_status_after_the_server_certificate_was_renewed_and_new_connections_see_it() {
    let stage = Stage::new(1);
    let options = Options { least: Some(1), workers: 1, ..Options::default() };
    let running = stage.serve("run", &config(&SETTINGS), options);
    let address = running.address();
    let shown = async || {
        let stream = silent(&address, &stage.security(0)).await;
        sha256(&stream.get_ref().1.peer_certificates().unwrap()[0])
    };
    let before = shown().await;
    stage.certs.renew_server(&["new.example.org".to_owned()], 10).unwrap();
    let operator = Security::operator(&stage.path("certs")).unwrap();
    let status = tokio::task::block_in_place(|| ask(&address, &operator)).unwrap();
    assert_eq!(status.phase, "gathering");
    let renewed = sha256(&tls::chain(&stage.path("certs/server.pem")).unwrap()[0]);
    assert_eq!((shown().await == before, shown().await), (false, renewed));
    // Files that do not belong together are reported, and the certificate stays as it is.
    std::fs::copy(stage.path("certs/ca.key"), stage.path("certs/server.key")).unwrap();
    stage.until(|event| match event {
        Event::Note { note } if note.starts_with("the previous server certificate remains in use") => {
            Some(())
        }
        _ => None,
    });
    running.stop();
}
