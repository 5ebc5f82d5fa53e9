//! Health checks while other connections send nothing.

use crate::roster::SETTINGS;
use crate::stage::{Stage, config};
use fedtvd_net::federation::Options;
use fedtvd_net::server::Metrics;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

#[test]
fn a_health_check_is_answered_beside_64_silent_connections() {
    let stage = Stage::new(1);
    let options = Options { least: Some(1), workers: 1, ..Options::default() };
    let running = stage.serve("run", &config(&SETTINGS), options);
    let address = running.monitor(&Metrics::default());
    let _silent: Vec<TcpStream> = (0..64).map(|_| TcpStream::connect(address).unwrap()).collect();
    let began = Instant::now();
    let mut asking = TcpStream::connect(address).unwrap();
    asking.write_all(b"GET /health HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = String::new();
    asking.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    assert!(began.elapsed() < Duration::from_secs(4), "it took {:?}", began.elapsed());
    running.stop();
}

#[test]
fn a_connection_that_sends_nothing_is_closed_after_a_second() {
    let stage = Stage::new(1);
    let options = Options { least: Some(1), workers: 1, ..Options::default() };
    let running = stage.serve("run", &config(&SETTINGS), options);
    let began = Instant::now();
    let mut silent = TcpStream::connect(running.monitor(&Metrics::default())).unwrap();
    let _ = silent.read_to_end(&mut Vec::new());
    // Five seconds is the time for a request and its answer.
    assert!(began.elapsed() < Duration::from_secs(4), "it took {:?}", began.elapsed());
    running.stop();
}
