//! A server of our own making that says what a test wants, and keeps every message that a client sends.

use fedtvd_core::labels::Reference;
use fedtvd_core::memory::Memory;
use fedtvd_core::model::{Layout, Network, Params};
use fedtvd_core::round::{Job, Offer};
use fedtvd_core::stream::Key;
use fedtvd_core::train::{Local, Samples, Values};
use fedtvd_net::client::{Security, SiteData};
use fedtvd_net::wire::federation_server::{Federation, FederationServer};
use fedtvd_net::wire::{self, upload_reply, upload_request, work};
use prost::Message as _;
use prost::bytes::Bytes;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{Request, Response, Status, Streaming};

/// A message that arrived: the request, its size, and what a person would read in it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Received {
    pub(crate) method: &'static str,
    pub(crate) bytes: u64,
    pub(crate) text: String,
}

/// What the server answers to one request for work.
#[derive(Clone)]
pub(crate) enum Step {
    Survey(&'static str, Reference),
    Train(Local, &'static str),
    Evaluate,
    /// A job of this announced length; its chunks never end.
    Endless(u64),
    /// Closes the connection's stream without an answer, so that the client connects again.
    Drop,
    /// These messages.
    Messages(Vec<work::Item>),
}

/// How the server behaves when an update is announced.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OnUpload {
    /// Asks for the bytes from here on, and then breaks the stream without a receipt.
    Break(u64),
    /// Says Proceed again and again.
    ProceedForEver,
    /// A receipt without asking for any bytes.
    ReceiptOnly,
    /// Asks for the bytes from here on, and sends a receipt.
    From(u64),
}

pub(crate) struct Double {
    pub(crate) welcome: wire::Welcome,
    steps: Mutex<VecDeque<Step>>,
    /// What it does with the next uploads; then it is honest.
    pub(crate) on_upload: Mutex<VecDeque<OnUpload>>,
    /// The lease that it claims.
    pub(crate) lease: Mutex<Option<u64>>,
    received: Mutex<Vec<Received>>,
    chunks: Arc<Mutex<u64>>,
}

pub(crate) const CLASSES: usize = 2;
const INPUTS: usize = 3;

/// A logistic model over three inputs.
pub(crate) fn network() -> Network {
    let layers = serde_json::json!([{"layer": "linear", "name": "fc", "out": CLASSES}]);
    Network { input: [INPUTS, 1, 1], classes: CLASSES, layers: serde_json::from_value(layers).unwrap() }
}

/// Training samples of alternating classes, and ten more that are held out.
pub(crate) fn data(training: usize) -> SiteData {
    let rows = training + 10;
    let values = (0..rows * INPUTS).map(|place| (place % 7) as f32).collect();
    let labels = (0..rows as u32).map(|row| row % 2).collect();
    let samples = Samples::new([INPUTS, 1, 1], CLASSES, Values::Floats(values), labels, training).unwrap();
    SiteData::Samples { samples: Arc::new(samples), class_names: vec!["no".into(), "yes".into()] }
}

pub(crate) fn welcome() -> wire::Welcome {
    wire::Welcome {
        protocol: wire::PROTOCOL,
        run: "run1".into(),
        name: "site".into(),
        network: serde_json::to_string(&network()).unwrap(),
        strategy: "fedtvd".into(),
        mode: "hardened".into(),
        rounds: 3,
        classes: vec!["no".into(), "yes".into()],
        ask: "\"distance\"".into(),
        epochs: 1,
        ..wire::Welcome::default()
    }
}

impl Double {
    /// Starts serving on a free port; returns the server and its address.
    pub(crate) async fn start(welcome: wire::Welcome, steps: Vec<Step>) -> (Arc<Self>, String) {
        let double = Arc::new(Self {
            welcome,
            steps: Mutex::new(steps.into()),
            on_upload: Mutex::default(),
            lease: Mutex::default(),
            received: Mutex::default(),
            chunks: Arc::default(),
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let service = FederationServer::from_arc(Arc::clone(&double));
        tokio::spawn(
            tonic::transport::Server::builder()
                .serve_with_incoming(service, TcpListenerStream::new(listener)),
        );
        (double, address)
    }

    pub(crate) fn security() -> Security {
        Security::Claimed("0".into())
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    /// What arrived under this name.
    pub(crate) fn texts(&self, method: &str) -> Vec<String> {
        self.received().into_iter().filter(|one| one.method == method).map(|one| one.text).collect()
    }

    /// Chunks of an endless job that were taken from the server.
    pub(crate) fn chunks(&self) -> u64 {
        *self.chunks.lock().unwrap()
    }

    fn keep(&self, method: &'static str, bytes: usize, text: String) {
        self.received.lock().unwrap().push(Received { method, bytes: bytes as u64, text });
    }

    fn works(&self, step: Option<Step>) -> Vec<wire::Work> {
        let work = |item| wire::Work { item: Some(item) };
        let whole = |item: fn(wire::Transfer) -> work::Item, bytes: Vec<u8>| {
            let transfer = wire::Transfer { round: 0, bytes: bytes.len() as u64 };
            vec![work(item(transfer)), work(work::Item::Chunk(bytes.into()))]
        };
        let layout = Arc::new(Layout::of(&network()).unwrap());
        match step {
            None => {
                let finished = wire::Finished { rounds: 3, model_hash: "h".into() };
                vec![work(work::Item::Finished(finished))]
            }
            Some(Step::Survey(ask, reference)) => {
                let reference = serde_json::to_string(&reference).unwrap();
                vec![work(work::Item::Survey(wire::Survey { ask: ask.into(), reference }))]
            }
            Some(Step::Train(local, strategy)) => {
                let offer = Offer {
                    round: 0,
                    strategy: strategy.into(),
                    local,
                    class_weights: Default::default(),
                    reference: Reference::uniform(CLASSES),
                    branch: 0,
                    params: Arc::new(Params::zeros(layout)),
                    others: Vec::new(),
                    carried: Arc::new(Memory::default()),
                    own: Arc::default(),
                };
                let job = Job {
                    client: 0,
                    key: Key::of(1),
                    accepted: None,
                    matching: None,
                    offer: Arc::new(offer),
                };
                whole(work::Item::Train, job.to_bytes())
            }
            Some(Step::Evaluate) => whole(work::Item::Evaluate, Params::zeros(layout).to_safetensors()),
            Some(Step::Endless(bytes)) => vec![work(work::Item::Train(wire::Transfer { round: 0, bytes }))],
            Some(Step::Drop) => Vec::new(),
            Some(Step::Messages(items)) => items.into_iter().map(work).collect(),
        }
    }
}

type Answer<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl Federation for Double {
    type PullStream = ReceiverStream<Result<wire::Work, Status>>;
    type UploadStream = ReceiverStream<Result<wire::UploadReply, Status>>;

    async fn hello(self: Arc<Self>, request: Request<wire::HelloRequest>) -> Answer<wire::Welcome> {
        self.keep("Hello", request.get_ref().encoded_len(), String::new());
        let mut welcome = Response::new(self.welcome.clone());
        if let Some(lease) = *self.lease.lock().unwrap() {
            welcome.metadata_mut().insert(wire::LEASE, lease.into());
        }
        Ok(welcome)
    }

    async fn columns(
        self: Arc<Self>,
        request: Request<wire::ColumnStatistics>,
    ) -> Answer<wire::CompleteSchema> {
        self.keep("Columns", request.get_ref().encoded_len(), format!("{:?}", request.get_ref().columns));
        Ok(Response::new(wire::CompleteSchema::default()))
    }

    async fn enrol(self: Arc<Self>, request: Request<wire::Enrolment>) -> Answer<wire::Empty> {
        self.keep("Enrol", request.get_ref().encoded_len(), request.get_ref().statistic.clone());
        Ok(Response::new(wire::Empty {}))
    }

    async fn pull(self: Arc<Self>, request: Request<wire::PullRequest>) -> Answer<Self::PullStream> {
        self.keep("Pull", request.get_ref().encoded_len(), String::new());
        let step = self.steps.lock().unwrap().pop_front();
        let endless = matches!(step, Some(Step::Endless(_)));
        let (sender, receiver) = mpsc::channel(2);
        let (works, chunks) = (self.works(step), Arc::clone(&self.chunks));
        tokio::spawn(async move {
            for work in works {
                let _ = sender.send(Ok(work)).await;
            }
            let chunk = || wire::Work { item: Some(work::Item::Chunk(Bytes::from(vec![0; wire::CHUNK]))) };
            while endless && sender.send(Ok(chunk())).await.is_ok() {
                *chunks.lock().unwrap() += 1;
            }
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    async fn upload(
        self: Arc<Self>,
        request: Request<Streaming<wire::UploadRequest>>,
    ) -> Answer<Self::UploadStream> {
        let (sender, receiver) = mpsc::channel(2);
        let mut requests = request.into_inner();
        let behaviour = self.on_upload.lock().unwrap().pop_front();
        tokio::spawn(async move {
            let reply = |step| Ok(wire::UploadReply { step: Some(step) });
            let proceed = |offset| reply(upload_reply::Step::Proceed(wire::Proceed { offset }));
            let receipt = || reply(upload_reply::Step::Receipt(wire::Receipt { already: false }));
            match behaviour {
                None => {}
                Some(OnUpload::ProceedForEver) => {
                    while sender.send(proceed(0)).await.is_ok() {
                        *self.chunks.lock().unwrap() += 1;
                    }
                    return;
                }
                Some(OnUpload::ReceiptOnly) => {
                    let _ = sender.send(receipt()).await;
                    return;
                }
                Some(how @ (OnUpload::Break(offset) | OnUpload::From(offset))) => {
                    let _ = requests.next().await;
                    let _ = sender.send(proceed(offset)).await;
                    let mut got = Vec::new();
                    while let Some(Ok(message)) = requests.next().await {
                        if let Some(upload_request::Content::Chunk(chunk)) = message.content {
                            got.extend_from_slice(&chunk);
                        }
                        if matches!(how, OnUpload::Break(_)) {
                            let _ = sender.send(Err(Status::unavailable("cut"))).await;
                            return;
                        }
                    }
                    self.keep("Upload", got.len(), String::new());
                    let _ = sender.send(receipt()).await;
                    return;
                }
            }
            let mut bytes = 0;
            while let Some(Ok(message)) = requests.next().await {
                match message.content {
                    Some(upload_request::Content::Ticket(ticket)) => {
                        self.keep("Upload", ticket.encoded_len(), String::new());
                        let _ = sender
                            .send(reply(upload_reply::Step::Proceed(wire::Proceed { offset: 0 })))
                            .await;
                    }
                    Some(upload_request::Content::Chunk(chunk)) => bytes += chunk.len(),
                    None => {}
                }
            }
            self.keep("Upload", bytes, String::new());
            let _ = sender.send(reply(upload_reply::Step::Receipt(wire::Receipt { already: false }))).await;
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    async fn fail(self: Arc<Self>, request: Request<wire::Failure>) -> Answer<wire::Empty> {
        self.keep("Fail", request.get_ref().encoded_len(), request.get_ref().why.clone());
        Ok(Response::new(wire::Empty {}))
    }

    async fn judge(self: Arc<Self>, request: Request<wire::Counts>) -> Answer<wire::Empty> {
        self.keep("Judge", request.get_ref().encoded_len(), format!("{:?}", request.get_ref().confusion));
        Ok(Response::new(wire::Empty {}))
    }

    async fn decline(self: Arc<Self>, request: Request<wire::Declined>) -> Answer<wire::Empty> {
        self.keep("Decline", request.get_ref().encoded_len(), request.get_ref().why.clone());
        Ok(Response::new(wire::Empty {}))
    }

    async fn status(self: Arc<Self>, _: Request<wire::StatusRequest>) -> Answer<wire::StatusReply> {
        Ok(Response::new(wire::StatusReply::default()))
    }
}
