//! Peers that speak different versions of the protocol refuse each other with a sentence that names both.

use crate::stage::{Stage, config};
use fedtvd_data::set::{DataOptions, Places};
use fedtvd_net::client;
use fedtvd_net::client::{Connection, ConnectionError, Security};
use fedtvd_net::federation::Options;
use fedtvd_net::server::{Keys, Server};
use fedtvd_net::wire::federation_client::FederationClient;
use fedtvd_net::wire::{CLIENT, CODE, HelloRequest, OLDEST_PROTOCOL, PROTOCOL, Welcome};
use std::convert::Infallible;
use std::net::TcpListener;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Response};
use tonic_prost::ProstCodec;
use tower::service_fn;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A server without TLS on a free port.
fn serve(stage: &Stage) -> Server {
    serve_with(stage, &[])
}

fn serve_with(stage: &Stage, settings: &[&str]) -> Server {
    let options = Options { least: Some(1), workers: 1, ..Options::default() };
    let ready = stage.prepare("run", &config(&[&["model.name=logistic"], settings].concat()), options);
    Server::start(&ready.coordinator, Keys::none(), TcpListener::bind("127.0.0.1:0").unwrap(), 4).unwrap()
}

async fn channel(server: &Server) -> Channel {
    Endpoint::from_shared(format!("http://{}", server.address())).unwrap().connect().await.unwrap()
}

fn as_client_0<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert(CLIENT, "0".parse().unwrap());
    request
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_refuses_a_client_of_another_protocol_and_names_both_versions() {
    let stage = Stage::new(0);
    let server = serve(&stage);
    let mut client = FederationClient::new(channel(&server).await);
    let version = "0.0.7".to_owned();
    let status =
        client.hello(as_client_0(HelloRequest { protocol: 7, newest: 9, version })).await.unwrap_err();
    assert_eq!(
        status.message(),
        format!(
            "the server speaks protocols {OLDEST_PROTOCOL} to {PROTOCOL} and this client protocols 7 to 9; update the older of \
             the two programs (server {VERSION}, client 0.0.7)"
        )
    );
    assert_eq!(status.metadata().get(CODE).unwrap(), "wrong-protocol");
    // A client of a later protocol, whose first request has another name.
    let mut grpc = tonic::client::Grpc::new(channel(&server).await);
    grpc.ready().await.unwrap();
    let path = http::uri::PathAndQuery::from_static("/fedtvd.v2.Federation/Greet");
    let codec = ProstCodec::<HelloRequest, Welcome>::default();
    let status = grpc.unary(as_client_0(HelloRequest::default()), path, codec).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::Unimplemented);
    assert!(status.message().contains(&format!("protocol {PROTOCOL} (fedtvd {VERSION})")), "{status}");
    // The server reports both of its versions, so that clients can decide.
    let version = || VERSION.to_owned();
    for (hello, chosen) in [
        (HelloRequest { protocol: OLDEST_PROTOCOL, newest: PROTOCOL, version: version() }, PROTOCOL),
        (HelloRequest { protocol: OLDEST_PROTOCOL, newest: PROTOCOL + 3, version: version() }, PROTOCOL),
        (HelloRequest { protocol: OLDEST_PROTOCOL, newest: 0, version: version() }, OLDEST_PROTOCOL),
    ] {
        let welcome = client.hello(as_client_0(hello)).await.unwrap().into_inner();
        assert_eq!((welcome.protocol, welcome.version.as_str()), (chosen, VERSION));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_with_options_of_training_refuses_clients_that_would_not_know_them() {
    let hello = |newest| HelloRequest { protocol: OLDEST_PROTOCOL, newest, version: "0.1.0".to_owned() };
    for settings in [&["local.optimizer=adam"], &["local.clip=1"], &["local.label_smoothing=0.1"]] {
        let stage = Stage::new(0);
        let server = serve_with(&stage, settings);
        let mut client = FederationClient::new(channel(&server).await);
        let status = client.hello(as_client_0(hello(4))).await.unwrap_err();
        assert!(
            status.message().starts_with(
                "the server speaks protocol 5 and this client protocols 3 to 4; update the older"
            ),
            "{status}"
        );
        assert_eq!(status.metadata().get(CODE).unwrap(), "wrong-protocol");
        assert_eq!(client.hello(as_client_0(hello(5))).await.unwrap().into_inner().protocol, 5);
    }
    // A schedule needs no more than the learning rate, which every job has.
    let (stage, schedule) =
        (Stage::new(0), ["local.schedule=cosine", "local.cosine_rounds=80", "local.warmup=2"]);
    let server = serve_with(&stage, &schedule);
    let mut client = FederationClient::new(channel(&server).await);
    assert_eq!(client.hello(as_client_0(hello(4))).await.unwrap().into_inner().protocol, 4);
}

/// A server of another protocol.
async fn other_server(welcome: Welcome) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let service = service_fn(move |request| {
        let welcome = welcome.clone();
        let hello = service_fn(move |_: Request<HelloRequest>| {
            let welcome = welcome.clone();
            async move { Ok(Response::new(welcome)) }
        });
        let mut grpc = tonic::server::Grpc::new(ProstCodec::<Welcome, HelloRequest>::default());
        async move { Ok::<_, Infallible>(grpc.unary(hello, request).await) }
    });
    let incoming = tonic::transport::server::TcpIncoming::from(listener);
    tokio::spawn(tonic::transport::Server::builder().serve_with_incoming(service, incoming));
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_refuses_a_server_of_another_protocol_and_names_both_versions() {
    for (version, shown) in [("9.1.0", "9.1.0"), ("", "unknown")] {
        let welcome = Welcome { protocol: 9, version: version.to_owned(), ..Welcome::default() };
        let server = other_server(welcome).await;
        let sentence = format!(
            "the server speaks protocol 9 and this client protocols {OLDEST_PROTOCOL} to {PROTOCOL}; update the older of the two \
             programs (server {shown}, client {VERSION})"
        );
        let security = Security::Claimed("0".to_owned());
        let error = Connection::dial(&server, &security).await.unwrap().hello().await.unwrap_err();
        assert!(matches!(error, ConnectionError::Version(_)), "{error:?}");
        assert_eq!(error.to_string(), sentence);
        // The client does not retry.
        let data = DataOptions::default().load(&Places::new(None)).unwrap();
        let folder = tempfile::tempdir().unwrap().path().to_owned();
        let (samples, class_names) = (data.samples, data.class_names);
        let data = client::SiteData::Samples { samples, class_names };
        let options = client::Options::new(server, security, data, folder);
        let error = client::join(options, &|_| {}).await.unwrap_err().to_string();
        assert_eq!(error, sentence);
    }
}
