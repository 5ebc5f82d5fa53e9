//! What a client retries through, and when it gives up.

use crate::double::data;
use crate::stage::Stage;
use fedtvd_net::client::{self, JoinError, Options, Progress};
use std::sync::Mutex;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// The failures of a client that tries for half a second, and the reason with which it ended.
async fn tried(server: String, stage: &Stage) -> (Vec<String>, JoinError) {
    let failures = Mutex::new(Vec::new());
    let report = |progress: &Progress| {
        if let Progress::Waiting(why) = progress {
            failures.lock().unwrap().push(why.clone());
        }
    };
    let options = Options::new(server, stage.security(0), data(20), stage.path("state"));
    let options = Options { give_up: Some(Duration::from_millis(500)), ..options };
    let error = client::join(options, &report).await.unwrap_err();
    (failures.into_inner().unwrap(), error)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_retries_through_the_page_of_a_proxy_and_gives_up_when_told() {
    let stage = Stage::new(1);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n").await;
        }
    });
    let (failures, error) = tried(address, &stage).await;
    assert!(failures.len() >= 2, "{failures:?}");
    assert!(error.to_string().contains("[tls-plaintext]"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_retries_where_nobody_listens_or_a_server_of_another_authority_does() {
    let (stage, foreign) = (Stage::new(1), Stage::new(1));
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = free.local_addr().unwrap().to_string();
    drop(free);
    assert!(tried(nobody, &stage).await.0.len() >= 2);
    let config = crate::stage::config(&["model.name=logistic", "rounds=1"]);
    let running = foreign.serve("run", &config, fedtvd_net::federation::Options::default());
    let (failures, error) = tried(running.address(), &stage).await;
    assert!(
        failures.len() >= 2 && error.to_string().contains("[tls-server-authority]"),
        "{failures:?} {error}"
    );
    tokio::task::block_in_place(|| running.stop());
}
