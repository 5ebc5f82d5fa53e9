//! Authentication: every wrong identity and every wrong update is refused before its body is read, with a code in the
//! server's log and a sentence for the client.

use crate::puppet::{Puppet, code};
use crate::stage::{Stage, config};
use fedtvd_net::client::{Connection, ConnectionError, Security};
use fedtvd_net::federation::{Event, Options};
use fedtvd_net::identity::{Authority, CertificateRequest, tls};
use fedtvd_net::wire;
use prost::bytes::Bytes;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::ServerCertVerifier as _;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{ServerName, UnixTime};
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

fn wish(name: &str, days: i64) -> CertificateRequest {
    CertificateRequest { name: name.to_owned(), id: None, max_size: 1000, days }
}

/// Verifies servers like a client that trusts this authority.
fn verifier(ca: &Path) -> Arc<WebPkiServerVerifier> {
    let mut roots = RootCertStore::empty();
    for certificate in tls::chain(ca).unwrap() {
        roots.add(certificate).unwrap();
    }
    let provider = Arc::new(ring::default_provider());
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap()
}

/// A client that trusts the server and presents no certificate.
fn without_certificate(stage: &Stage) -> Security {
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_protocol_versions(&[&TLS13]).unwrap();
    let mut config = config.with_webpki_verifier(verifier(&stage.path("certs/ca.pem"))).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    Security::Tls(Arc::new(config))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_wrong_identity_and_ticket_has_a_code_in_the_log_and_a_sentence_for_the_client() {
    let stage = Stage::new(3);
    let options = Options { roster: Some([0, 1].into()), workers: 1, ..Options::default() };
    let settings = ["model.name=logistic", "cohort.fraction=1", "rounds=3"];
    let running = stage.serve("run", &config(&settings), options);
    let address = running.address();
    let mut sentences = BTreeSet::new();
    let mut refused = |what: &str, answer: Result<(), ConnectionError>, expected: &str| {
        let error = answer.unwrap_err();
        assert_eq!(code::<()>(Err(error.clone())), expected, "{what}: {error}");
        stage.until(|event| match event {
            Event::Handshake { code, .. } | Event::Refused { code, .. } if *code == expected => Some(()),
            _ => None,
        });
        assert!(sentences.insert(error.to_string()), "{what} must have its own sentence: {error}");
    };
    let dial = async |security: &Security| Puppet::dial(&address, security, 0).await.map(|_| ());

    // Another authority's client that trusts this server.
    let foreign = Authority::init(&stage.path("foreign"), &[], 10).unwrap();
    let (folder, _) = foreign.issue(&wish("client-0", 5)).unwrap();
    std::fs::copy(stage.path("certs/ca.pem"), folder.join("ca.pem")).unwrap();
    refused("wrong authority", dial(&Security::client(&folder).unwrap()).await, "tls-wrong-authority");
    refused("no certificate", dial(&without_certificate(&stage)).await, "tls-no-certificate");
    let (folder, _) = stage.certs.issue(&wish("old", -1)).unwrap();
    refused("expired", dial(&Security::client(&folder).unwrap()).await, "tls-expired");

    // A certificate of this authority that is not listed, one that is not in the roster, and the operator's.
    let list = std::fs::read(stage.certs.list_path()).unwrap();
    let (folder, _) = stage.certs.issue(&wish("unlisted", 5)).unwrap();
    std::fs::write(stage.certs.list_path(), list).unwrap();
    refused("unlisted", dial(&Security::client(&folder).unwrap()).await, "unknown-certificate");
    refused("not in the roster", dial(&stage.security(2)).await, "not-in-roster");
    let operator = Security::operator(&stage.path("certs")).unwrap();
    refused("the operator", dial(&operator).await, "not-client");

    let (mut zero, mut one) = (running.puppet(&stage, 0).await, running.puppet(&stage, 1).await);
    refused("status", zero.link.status().await.map(drop), "not-operator");
    let status = Connection::dial(&address, &operator).await.unwrap().status().await.unwrap();
    assert!(status.contains("\"gathering\""), "{status}");

    // Enrolments.
    let uniform = fedtvd_core::labels::Reference::uniform(10);
    let ask = fedtvd_core::labels::Ask::Distance;
    let large = zero.enrolment(&[101; 10], &uniform, ask);
    refused("too large", zero.link.enrol(large).await, "size-above-listed");
    let mut lie = zero.enrolment(&[10, 10, 10, 10, 10, 10, 10, 10, 10, 11], &uniform, ask);
    lie.statistic = "{\"distance\": 0.0}".to_owned();
    refused("an impossible distance", zero.link.enrol(lie).await, "profile-distance");
    let bytes = vec![0; 40_000];
    refused("not enrolled", zero.send(0, bytes).await.map(drop), "not-enrolled");
    zero.enrol().await.unwrap();
    let changed = zero.enrolment(&[9; 10], &uniform, ask);
    refused("changed", zero.link.enrol(changed).await, "profile-changed");
    one.enrol().await.unwrap();

    // Updates.
    let job = zero.job().await;
    let first = zero.one_hot(&job).to_bytes();
    // A body that does not match the ticket: if it were read, the refusal would be "wrong-hash".
    let body = Bytes::from(vec![0; first.len()]);
    let ticket = zero.ticket(0, &first);
    let foreign = wire::Ticket { client: 1, ..ticket.clone() };
    refused("another client's id", zero.link.upload(foreign, body.clone()).await.map(drop), "wrong-client");
    let early = wire::Ticket { round: 7, ..ticket.clone() };
    refused("a later round", zero.link.upload(early, body.clone()).await.map(drop), "early");
    let elsewhere = wire::Ticket { run: "elsewhere".to_owned(), ..ticket.clone() };
    refused("another run", zero.link.upload(elsewhere, body.clone()).await.map(drop), "wrong-run");
    assert!(!zero.send(0, first.clone()).await.unwrap());
    assert!(zero.link.upload(ticket.clone(), body.clone()).await.unwrap().already, "a duplicate counts once");
    let mut other = zero.ticket(0, &first);
    other.hash = "0".repeat(64);
    refused("another answer", zero.link.upload(other, body.clone()).await.map(drop), "two-answers");
    let job = one.job().await;
    let second = one.one_hot(&job).to_bytes();
    assert!(!one.send(0, second).await.unwrap());
    assert_eq!(zero.job().await.offer.round, 1);
    refused("the last round's", zero.link.upload(ticket.clone(), body.clone()).await.map(drop), "late");
    let replayed = wire::Ticket { round: 1, ..ticket };
    refused("replayed", zero.link.upload(replayed, body).await.map(drop), "replayed");

    // Revoked while it is connected, without a restart.
    stage.certs.revoke("client-0").unwrap();
    refused("revoked", zero.link.pull(&zero.welcome.run.clone()).await.map(drop), "revoked");
    running.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_without_tls_is_refused() {
    let stage = Stage::new(1);
    let options = Options { least: Some(1), workers: 1, ..Options::default() };
    let running = stage.serve("run", &config(&["model.name=logistic"]), options);
    let answer = Puppet::dial(&running.address(), &Security::Claimed("0".to_owned()), 0).await;
    assert!(answer.is_err());
    stage.until(|event| matches!(event, Event::Handshake { code: "tls-plaintext", .. }).then_some(()));
    running.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_is_revoked_while_it_waits_gets_no_work() {
    let stage = Stage::new(2);
    let options = Options { roster: Some([0, 1].into()), workers: 1, ..Options::default() };
    let running = stage.serve("run", &config(&["model.name=logistic", "cohort.fraction=1"]), options);
    let mut one = running.puppet(&stage, 1).await;
    one.enrol().await.unwrap();
    let mut zero = running.puppet(&stage, 0).await;
    let run = one.welcome.run.clone();
    let pulling = one.link.pull(&run);
    let then = async {
        zero.link.pull(&run).await.unwrap();
        stage.certs.revoke("client-1").unwrap();
        zero.enrol().await.unwrap();
    };
    assert_eq!(code(tokio::join!(pulling, then).0), "revoked");
    running.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_client_is_refused_before_its_request_is_read_and_text_of_others_is_truncated_in_the_log() {
    let stage = Stage::new(2);
    let options = Options { least: Some(1), workers: 1, ..Options::default() };
    let running = stage.serve("run", &config(&["model.name=logistic"]), options);
    let mut zero = running.puppet(&stage, 0).await;
    let run = "\n".repeat(10_000);
    assert_eq!(code(zero.link.pull(&run).await), "wrong-run");
    let why = stage.until(|event| match event {
        Event::Refused { code: "wrong-run", why, .. } => Some(why.clone()),
        _ => None,
    });
    assert!(why.len() < 1000 && !why.contains('\n'), "{why}");
    // If it were read, it would be too long for a message.
    stage.certs.revoke("client-0").unwrap();
    let long = wire::Enrolment { statistic: "x".repeat(2 << 20), ..wire::Enrolment::default() };
    assert_eq!(code(zero.link.enrol(long).await), "revoked");
    running.stop();
}

#[test]
fn hosts_with_a_port_or_a_space_are_refused_and_the_last_number_is_assigned_once() {
    let folder = tempfile::tempdir().unwrap();
    for host in ["fed.example.org:7443", "fed example", ""] {
        let Err(error) = Authority::init(folder.path(), &[host.to_owned()], 10) else {
            panic!("{host} was accepted as a host")
        };
        assert!(error.to_string().contains("is not a host name or an address"), "{error}");
    }
    let hosts = ["fed.example.org", "192.0.2.7", "2001:db8::7"].map(str::to_owned);
    let certs = Authority::init(folder.path(), &hosts, 10).unwrap();
    certs.issue(&CertificateRequest { id: Some(u32::MAX), ..wish("last", 5) }).unwrap();
    let error = certs.issue(&wish("next", 5)).unwrap_err().to_string();
    assert!(error.contains("4294967295"), "{error}");
}

#[test]
fn a_server_can_change_its_host_names_and_clients_keep_their_certificates() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path();
    let certs = Authority::init(place, &["old.example.org".to_owned()], 10).unwrap();
    let (client, _) = certs.issue(&wish("rome", 5)).unwrap();
    let trusts = |name: &'static str| {
        let shown = tls::chain(&place.join("server.pem")).unwrap();
        let name = ServerName::try_from(name).unwrap();
        let verifier = verifier(&client.join("ca.pem"));
        verifier.verify_server_cert(&shown[0], &[], &name, &[], UnixTime::now()).is_ok()
    };
    assert!(trusts("old.example.org") && !trusts("new.example.org"));
    certs.renew_server(&["new.example.org".to_owned()], 10).unwrap();
    assert!(trusts("new.example.org") && trusts("localhost") && !trusts("old.example.org"));
    // The new certificate matches the server's key.
    tls::server(place).unwrap();
    assert!(certs.renew_server(&["new:7443".to_owned()], 10).is_err() && trusts("new.example.org"));
}

#[test]
fn a_server_certificate_can_be_renewed_by_an_expired_authority() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path();
    let certs = Authority::init(place, &[], -1).unwrap();
    let trusted = || {
        let shown = tls::chain(&place.join("server.pem")).unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        verifier(&place.join("ca.pem")).verify_server_cert(&shown[0], &[], &name, &[], UnixTime::now())
    };
    assert!(trusted().unwrap_err().to_string().contains("expired"));
    certs.renew_server(&[], 10).unwrap();
    trusted().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn one_certificate_cannot_use_up_all_connections() {
    let stage = Stage::new(2);
    let options = Options { roster: Some([0, 1].into()), workers: 1, ..Options::default() };
    let running = stage.serve("run", &config(&["model.name=logistic"]), options);
    let address = running.address();
    let mut links = Vec::new();
    for _ in 0..4 {
        links.push(Puppet::dial(&address, &stage.security(0), 0).await.unwrap());
    }
    // One more closes the oldest, which the client may have lost without the server's knowledge.
    let mut one_more = Puppet::dial(&address, &stage.security(0), 0).await.unwrap();
    one_more.enrol().await.unwrap();
    stage.until(|event| match event {
        Event::Handshake { code: "tls-too-many", .. } => Some(()),
        _ => None,
    });
    Puppet::dial(&address, &stage.security(1), 1).await.unwrap();
    running.stop();
}
