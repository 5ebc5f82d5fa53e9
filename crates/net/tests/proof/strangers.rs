//! Strangers who connect and say nothing.

use crate::roster::SETTINGS;
use crate::stage::{Stage, config};
use fedtvd_net::federation::{Event, Options};
use tokio::net::TcpSocket;

#[tokio::test(flavor = "multi_thread")]
async fn silent_strangers_at_one_address_do_not_delay_clients_at_another() {
    let stage = Stage::new(1);
    let options = Options { least: Some(1), workers: 1, ..Options::default() };
    let running = stage.serve("run", &config(&SETTINGS), options);
    let address = running.address().parse().unwrap();
    let mut silent = Vec::new();
    // More than there are handshakes at a time.
    for _ in 0..1200 {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
        silent.push(socket.connect(address).await.unwrap());
    }
    let client = running.puppet(&stage, 0).await;
    // The client came first: none of them was closed to make room for it.
    let closed = |event: &Event| matches!(event, Event::Handshake { code: "tls-timeout", .. });
    assert_eq!(stage.events().iter().filter(|event| closed(event)).count(), 0);
    stage.until(|event| closed(event).then_some(()));
    drop((client, silent));
    tokio::task::block_in_place(|| running.stop());
}
