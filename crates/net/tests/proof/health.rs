//! What the health check answers when a federation makes no progress.

use crate::roster::SETTINGS;
use crate::stage::{Stage, config};
use fedtvd_core::round::RoundRecord;
use fedtvd_net::federation::Options;
use fedtvd_net::server::Metrics;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

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
    let page = get(running.monitor(&Metrics::default()), "/metrics").1;
    let seconds = |name: &str| {
        let line = page.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{page}"));
        line.trim().parse::<f64>().unwrap()
    };
    // The stage issues clients' certificates for five days and the server's for ten.
    for (name, days) in [
        ("fedtvd_certificate_expiry_seconds{client=\"client-0\"}", 5.0),
        ("fedtvd_certificate_expiry_seconds{client=\"client-1\"}", 5.0),
        ("fedtvd_server_certificate_expiry_seconds", 10.0),
    ] {
        let left = seconds(name) / 86_400.0;
        assert!((days - 0.01..=days + 0.01).contains(&left), "{name}: {left} days");
    }
    running.stop();
}
