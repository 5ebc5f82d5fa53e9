//! Strangers who connect and say nothing.

use crate::roster::SETTINGS;
use crate::stage::{Stage, config};
use fedtvd_net::federation::{Event, Options};
use std::time::{Duration, Instant};
use tokio::net::TcpSocket;

/// Silent connections are closed after five seconds.
const SILENCE: Duration = Duration::from_secs(5);

/// Connections closed for their silence before a client at another address was served; `None` if all of this took so long that some
/// of them had to be closed anyway.
async fn closed_before_a_client_is_served() -> Option<usize> {
    let stage = Stage::new(1);
    let options = Options { least: Some(1), workers: 1, ..Options::default() };
    let running = stage.serve("run", &config(&SETTINGS), options);
    let address = running.address().parse().unwrap();
    let started = Instant::now();
    let mut silent = Vec::new();
    // More than there are handshakes at a time.
    for _ in 0..1200 {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
        silent.push(socket.connect(address).await.unwrap());
    }
    let client = running.puppet(&stage, 0).await;
    let closed = |event: &Event| matches!(event, Event::Handshake { code: "tls-timeout", .. });
    let count = stage.events().iter().filter(|event| closed(event)).count();
    let soon = started.elapsed() < SILENCE;
    stage.until(|event| closed(event).then_some(()));
    drop((client, silent));
    tokio::task::block_in_place(|| running.stop());
    soon.then_some(count)
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_strangers_at_one_address_do_not_delay_clients_at_another() {
    for _ in 0..10 {
        if let Some(count) = closed_before_a_client_is_served().await {
            assert_eq!(count, 0, "the client came first: none of them was closed to make room for it");
            return;
        }
    }
    panic!("this machine is too busy to open 1200 connections in five seconds");
}
