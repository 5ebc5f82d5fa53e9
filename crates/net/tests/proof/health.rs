//! What the health check answers when a federation makes no progress.

use crate::roster::SETTINGS;
use crate::stage::{Stage, config};
use fedtvd_core::round::RoundRecord;
use fedtvd_net::federation::{Event, Options};
use fedtvd_net::identity::CertificateRequest;
use fedtvd_net::server::Metrics;
use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// The status line and the body of an answer.
fn get(address: SocketAddr, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap().to_owned(), body.trim_end().to_owned())
}

#[test]
fn the_health_check_answers_503_with_a_reason_while_there_is_no_progress() {
    let stage = Stage::new(1);
    let options = Options { least: Some(1), workers: 1, ..Options::default() };
    let running = stage.serve("run", &config(&SETTINGS), options);
    let metrics = Metrics::default();
    let address = running.monitor(&metrics);
    let health = || get(address, "/health");
    let well = ("HTTP/1.1 200 OK".to_owned(), "ok".to_owned());
    let ill = |why: &str| ("HTTP/1.1 503 Service Unavailable".to_owned(), why.to_owned());
    assert_eq!(health(), well);
    let unchanged = RoundRecord { unchanged: Some("too few".to_owned()), ..RoundRecord::default() };
    metrics.round(&unchanged);
    metrics.round(&unchanged);
    assert_eq!(health(), well);
    metrics.round(&unchanged);
    assert_eq!(health(), ill("3 rounds in a row left the model unchanged"));
    metrics.round(&RoundRecord::default());
    assert_eq!(health(), well);
    running.coordinator.stop();
    assert_eq!(health(), ill("the server is stopping"));
    running.stop();
}

#[test]
fn metrics_say_when_the_certificates_of_server_and_clients_expire() {
    let stage = Stage::new(2);
    let options = Options { least: Some(1), workers: 1, ..Options::default() };
    let running = stage.serve("run", &config(&SETTINGS), options);
    // While it is renewed, a client has two certificates.
    let wish = CertificateRequest { name: "client-1".to_owned(), id: None, max_size: 10, days: 7 };
    let (_, renewed) = stage.certs.issue(&wish).unwrap();
    let page = get(running.monitor(&Metrics::default()), "/metrics").1;
    let seconds = |name: &str| {
        let line = page.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{page}"));
        line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap()
    };
    // The stage issues clients' certificates for five days and the server's for ten.
    for (name, days) in [
        ("fedtvd_certificate_expiry_seconds{client=\"client-0\",serial=", 5.0),
        ("fedtvd_certificate_expiry_seconds{client=\"client-1\",serial=", 5.0),
        ("fedtvd_server_certificate_expiry_seconds", 10.0),
    ] {
        let left = seconds(name) / 86_400.0;
        assert!((days - 0.01..=days + 0.01).contains(&left), "{name}: {left} days");
    }
    let serial = renewed.serial.unwrap();
    assert!(
        (seconds(&format!("fedtvd_certificate_expiry_seconds{{client=\"client-1\",serial=\"{serial}\"}}"))
            / 86_400.0)
            > 6.9
    );
    let series: Vec<&str> = page
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| Some(line.rsplit_once(' ')?.0))
        .collect();
    assert_eq!(series.iter().collect::<BTreeSet<_>>().len(), series.len(), "{page}");
    running.stop();
}

/// The value of a metric without labels.
fn value(address: SocketAddr, name: &str) -> f64 {
    let page = get(address, "/metrics").1;
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).map(str::to_owned);
    line.unwrap_or_else(|| panic!("{page}")).parse().unwrap()
}

/// Waits until something is true.
fn until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_list_that_cannot_be_read_is_reported_until_it_can_and_then_its_revocations_hold() {
    let stage = Stage::new(2);
    let options = Options { least: Some(2), workers: 1, ..Options::default() };
    let running = stage.serve("run", &config(&SETTINGS), options);
    let address = running.monitor(&Metrics::default());
    assert_eq!(value(address, "fedtvd_client_list_readable"), 1.0);
    let path = stage.certs.list_path();
    stage.certs.revoke("client-1").unwrap();
    let good = std::fs::read_to_string(&path).unwrap();
    let broken = good.replace("fingerprint", "fingerprinz");
    std::fs::write(&path, &broken).unwrap();
    let time = std::fs::metadata(&path).unwrap().modified().unwrap();
    until("the list is unreadable", || get(address, "/health").0 == "HTTP/1.1 503 Service Unavailable");
    let why = get(address, "/health").1;
    assert!(why.starts_with("the list of clients cannot be read") && why.contains("clients.toml"), "{why}");
    assert_eq!(value(address, "fedtvd_client_list_readable"), 0.0);
    // A repair that neither size nor time shows, such as another owner.
    std::fs::write(&path, &good).unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    until("the list is read again", || get(address, "/health").1 == "ok");
    assert_eq!(value(address, "fedtvd_client_list_readable"), 1.0);
    stage.until(|event| match event {
        Event::Note { note } => (note == "the list of clients can be read again").then_some(()),
        _ => None,
    });
    running.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_is_connected_as_long_as_its_connection_is_open_and_counts_once() {
    let stage = Stage::new(2);
    let options = Options { least: Some(2), workers: 1, ..Options::default() };
    let running = stage.serve("run", &config(&SETTINGS), options);
    let address = running.monitor(&Metrics::default());
    let connected = |clients: f64| {
        tokio::task::block_in_place(|| {
            until("connections", || value(address, "fedtvd_clients_connected") == clients);
        });
    };
    connected(0.0);
    let first = running.puppet(&stage, 0).await;
    let again = running.puppet(&stage, 0).await;
    connected(1.0);
    let other = running.puppet(&stage, 1).await;
    connected(2.0);
    drop((first, again));
    connected(1.0);
    drop(other);
    connected(0.0);
    tokio::task::block_in_place(|| running.stop());
}

#[test]
fn an_audit_log_that_cannot_be_written_is_a_reason_to_look() {
    let stage = Stage::new(1);
    let options = Options { least: Some(1), workers: 1, ..Options::default() };
    let running = stage.serve("run", &config(&SETTINGS), options);
    let metrics = Metrics::default();
    let address = running.monitor(&metrics);
    metrics.audit(Some("No space left on device".to_owned()), 3);
    assert_eq!(get(address, "/health").1, "the audit log cannot be written: No space left on device");
    let numbers =
        || ["fedtvd_audit_log_writable", "fedtvd_audit_events_lost_total"].map(|name| value(address, name));
    assert_eq!(numbers(), [0.0, 3.0]);
    metrics.audit(None, 3);
    assert_eq!((get(address, "/health").1, numbers()), ("ok".to_owned(), [1.0, 3.0]));
    running.stop();
}
