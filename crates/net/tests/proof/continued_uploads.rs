//! An upload that breaks off continues where it stopped, also with a restarted server, and only with the same update.

use crate::proxy::Proxy;
use crate::puppet::{Puppet, code};
use crate::stage::{Stage, config};
use fedtvd_net::client::ConnectionError;
use fedtvd_net::federation::{Event, Options};
use fedtvd_net::wire::federation_client::FederationClient;
use fedtvd_net::wire::{self, upload_request};
use std::time::Duration;
use tokio_stream::StreamExt as _;

const SETTINGS: [&str; 3] = ["model.name=lenet", "rounds=1", "strategy.name=fedtvd"];

fn options() -> Options {
    Options { least: Some(1), workers: 1, ..Options::default() }
}

/// The update's bytes and a ticket that says that the client can continue.
async fn update(puppet: &mut Puppet) -> (Vec<u8>, wire::Ticket) {
    let job = puppet.job().await;
    let bytes = puppet.one_hot(&job).to_bytes();
    let ticket = wire::Ticket { continues: true, ..puppet.ticket(0, &bytes) };
    (bytes, ticket)
}

/// Incomplete files of the open round.
fn partial_files(stage: &Stage) -> Vec<String> {
    let folder = std::fs::read_dir(stage.path("run/federation/round-000000")).unwrap();
    let names = folder.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(".partial")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_was_cut_at_90_percent_sends_the_rest_only() {
    for restarted in [false, true] {
        let stage = Stage::new(1);
        let mut running = stage.serve("run", &config(&SETTINGS), options());
        let mut proxy = Proxy::before(&running.address()).await;
        let mut puppet = Puppet::dial(&proxy.address, &stage.security(0), 0).await.unwrap();
        let (bytes, ticket) = update(&mut puppet).await;
        let length = bytes.len() as u64;
        proxy.cut_after(length * 9 / 10);
        let cut = puppet.link.upload(ticket.clone(), bytes.clone().into()).await.unwrap_err();
        assert!(matches!(cut, ConnectionError::Lost(_)), "{cut:?}");
        tokio::task::block_in_place(|| {
            stage.until(|event| matches!(event, Event::Refused { code: "truncated", .. }).then_some(()));
        });
        if restarted {
            tokio::task::block_in_place(|| running.stop());
            assert_eq!(partial_files(&stage).len(), 1);
            running = stage.serve("run", &config(&SETTINGS), options());
            proxy = Proxy::before(&running.address()).await;
        }
        proxy.mend();
        let mut puppet = Puppet::dial(&proxy.address, &stage.security(0), 0).await.unwrap();
        puppet.job().await;
        let before = proxy.sent();
        assert!(!puppet.link.upload(ticket, bytes.clone().into()).await.unwrap().already);
        let again = proxy.sent() - before;
        // A tenth, what was cut in the middle of a message or of a packet, and a few small messages.
        assert!(
            again < length / 10 + 65_536 + 8_192,
            "{again} of {length} bytes were sent again ({restarted})"
        );
        drop(puppet);
        tokio::task::block_in_place(|| running.finish());
        let model = stage.model("run");
        let values = bytes.len() - 100_000;
        assert_eq!(
            model[model.len() - values..],
            bytes[bytes.len() - values..],
            "the model is the only update"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_continues_with_the_same_update_only_and_one_incomplete_upload_is_kept() {
    let stage = Stage::new(1);
    let running = stage.serve("run", &config(&SETTINGS), options());
    let mut puppet = running.puppet(&stage, 0).await;
    let (bytes, ticket) = update(&mut puppet).await;
    let half = bytes[..bytes.len() / 2].to_vec();
    let mut cut = async |ticket: &wire::Ticket, part: &[u8]| {
        code(puppet.link.upload(ticket.clone(), part.to_vec().into()).await)
    };
    assert_eq!(cut(&ticket, &half).await, "truncated");
    assert_eq!(partial_files(&stage).len(), 1);
    // Other bytes under another hash do not continue it, and replace it.
    let mut other = bytes.clone();
    *other.last_mut().unwrap() ^= 1;
    let others = wire::Ticket { continues: true, ..puppet.ticket(0, &other) };
    let mut cut = async |ticket: &wire::Ticket, part: &[u8]| {
        code(puppet.link.upload(ticket.clone(), part.to_vec().into()).await)
    };
    assert_eq!(cut(&others, &other[..other.len() / 3]).await, "truncated");
    let kept = partial_files(&stage);
    assert!(kept.len() == 1 && kept[0].contains(&others.hash), "{kept:?}");
    // Bytes that turn out to be wrong at the end are not kept.
    assert_eq!(cut(&ticket, &other).await, "wrong-hash");
    assert_eq!(partial_files(&stage), Vec::<String>::new());
    // A client that cannot continue sends everything again.
    assert_eq!(cut(&ticket, &half).await, "truncated");
    assert_eq!(cut(&wire::Ticket { continues: false, ..ticket.clone() }, &bytes[..1000]).await, "truncated");
    let kept = stage.path("run/federation/round-000000").join(&partial_files(&stage)[0]);
    assert_eq!(std::fs::metadata(kept).unwrap().len(), 1000);
    assert!(
        !puppet.link.upload(wire::Ticket { continues: false, ..ticket }, bytes.into()).await.unwrap().already
    );
    drop(puppet);
    tokio::task::block_in_place(|| running.finish());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_connection_takes_over_what_a_silent_one_has_sent_and_another_update_must_wait() {
    let stage = Stage::new(1);
    let running = stage.serve("run", &config(&SETTINGS), options());
    let proxy = Proxy::before(&running.address()).await;
    let mut puppet = Puppet::dial(&proxy.address, &stage.security(0), 0).await.unwrap();
    let (bytes, ticket) = update(&mut puppet).await;
    let half = bytes.len() / 2;
    // A connection on which nothing more arrives, and which nobody closes.
    let message = |content| wire::UploadRequest { content: Some(content) };
    let begun = std::iter::once(upload_request::Content::Ticket(ticket.clone())).chain(
        bytes[..half].chunks(wire::CHUNK).map(|chunk| upload_request::Content::Chunk(chunk.to_vec().into())),
    );
    let begun: Vec<_> = begun.map(message).collect();
    let silent = tokio_stream::iter(begun).chain(tokio_stream::pending());
    let mut client = FederationClient::new(running.channel(&stage, 0).await);
    let mut replies = client.upload(silent).await.unwrap().into_inner();
    replies.message().await.unwrap().unwrap();
    let arrived = || {
        let file = stage.path("run/federation/round-000000").join(&partial_files(&stage)[0]);
        std::fs::metadata(file).unwrap().len()
    };
    while arrived() < half as u64 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let mut other = bytes.clone();
    *other.last_mut().unwrap() ^= 1;
    let others = wire::Ticket { continues: true, ..puppet.ticket(0, &other) };
    assert_eq!(code(puppet.link.upload(others, other.into()).await), "busy");
    let before = proxy.sent();
    assert!(!puppet.link.upload(ticket, bytes.clone().into()).await.unwrap().already);
    let again = (proxy.sent() - before) as usize;
    assert!(again < half + 8_192, "{again} of {} bytes were sent again", bytes.len());
    let ended = replies.message().await.unwrap_err();
    assert_eq!(ended.metadata().get(wire::CODE).unwrap(), "taken-over", "{ended:?}");
    drop(puppet);
    tokio::task::block_in_place(|| running.finish());
    let (model, values) = (stage.model("run"), bytes.len() - 100_000);
    assert_eq!(model[model.len() - values..], bytes[bytes.len() - values..], "the model is the only update");
}
