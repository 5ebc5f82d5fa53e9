//! Confusion matrices and statistics of columns are the largest messages of clients: their size and their number are limited.

use crate::puppet::code;
use crate::stage::{Running, Stage, config};
use fedtvd_core::round::ClientEvaluation;
use fedtvd_net::client::ConnectionError;
use fedtvd_net::federation::Options;
use fedtvd_net::wire;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tonic::transport::Channel;
use tonic::{Request, Status};

const LONG: Duration = Duration::from_secs(20);

fn serve(stage: &Stage, set: &str) -> Running {
    let options = Options { least: Some(2), workers: 1, ..Options::default() };
    stage.serve("run", &config(&["model.name=logistic", &format!("data.set={set}")]), options)
}

fn matrix(counts: usize) -> ClientEvaluation {
    ClientEvaluation { loss: 1.0, correct: 0, total: 0, confusion: Some(vec![0; counts]) }
}

/// Sends the beginning of a confusion matrix, and nothing of the rest.
async fn begin_matrix(channel: Channel) -> Result<(), Status> {
    let mut client = tonic::client::Grpc::new(channel);
    client.ready().await.unwrap();
    let path = "/fedtvd.v1.Federation/Judge".parse().unwrap();
    let codec = tonic_prost::ProstCodec::<wire::Counts, wire::Empty>::default();
    client.client_streaming(Request::new(tokio_stream::pending()), path, codec).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_sends_two_large_requests_is_refused_a_third_until_one_ends_and_others_are_not() {
    let stage = Stage::new(2);
    // 100 classes: a matrix of 10,000 counts.
    let running = serve(&stage, "cifar100");
    let mut requests = JoinSet::new();
    let channel = running.channel(&stage, 0).await;
    for _ in 0..3 {
        requests.spawn(begin_matrix(channel.clone()));
    }
    let refused =
        timeout(LONG, requests.join_next()).await.expect("three large requests wait for their rest");
    let refused = refused.unwrap().unwrap().unwrap_err();
    assert_eq!(refused.metadata().get(wire::CODE).unwrap(), "too-many-requests", "{refused:?}");
    assert_eq!(refused.code(), tonic::Code::Unavailable, "the client tries again");
    let mut one = running.puppet(&stage, 1).await;
    let run = one.welcome.run.clone();
    assert_eq!(code(one.link.evaluate(&run, 0, matrix(10_000)).await), "not-enrolled");
    let mut zero = running.puppet(&stage, 0).await;
    assert_eq!(code(zero.link.evaluate(&run, 0, matrix(10_000)).await), "too-many-requests");
    assert_eq!(requests.len(), 2);
    drop((requests, channel));
    let ended = async {
        while code(zero.link.evaluate(&run, 0, matrix(10_000)).await) != "not-enrolled" {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(LONG, ended).await.unwrap();
    tokio::task::block_in_place(|| running.stop());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_confusion_matrix_that_is_too_large_for_the_classes_is_not_read() {
    let stage = Stage::new(1);
    // 10 classes: a matrix of 100 counts.
    let running = serve(&stage, "fmnist-mini");
    let mut zero = running.puppet(&stage, 0).await;
    let run = zero.welcome.run.clone();
    assert_eq!(code(zero.link.evaluate(&run, 0, matrix(100)).await), "not-enrolled");
    let answer = zero.link.evaluate(&run, 0, matrix(100_000)).await;
    assert!(matches!(&answer, Err(ConnectionError::Lost(why)) if why.contains("too large")), "{answer:?}");
    tokio::task::block_in_place(|| running.stop());
}
