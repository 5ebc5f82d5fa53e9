//! The gRPC service: who asks, then what; refusals before anything is read.

use crate::admission::Member;
use crate::caller::{Asker, Caller, Identity};
use crate::door::Guest;
use crate::event::Event;
use crate::hall::Hall;
use crate::lanes::Lanes;
use crate::receive::STILL;
use crate::refusal::{Refusal, plain};
use crate::wire::federation_server::{Federation, FederationServer, SERVICE_NAME};
use crate::wire::{self, CLIENT, CODE, LARGEST_MESSAGE, PROTOCOL, VERSION, VersionMismatch};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio_stream::wrappers::ReceiverStream;
use tonic::body::Body;
use tonic::{Request, Response, Status, Streaming};

/// An answer, or a refusal as the wire has it.
pub(crate) type Answered<T> = Result<Response<T>, Status>;
/// Messages that go out one after the other.
pub(crate) type Replies<T> = ReceiverStream<Result<T, Status>>;

/// Where requests are answered.
pub(crate) struct Desk {
    pub(crate) hall: Arc<Hall>,
    identity: Identity,
    /// Places for uploads that are read.
    pub(crate) lanes: Lanes,
}

/// The service as the transport calls it: it limits who asks, the size of a request, and the time that it takes.
#[derive(Clone)]
pub(crate) struct Service {
    desk: Arc<Desk>,
    /// For all requests but confusion matrices.
    small: FederationServer<Desk>,
    /// For confusion matrices.
    large: FederationServer<Desk>,
}

/// Most bytes of a message that is not a confusion matrix: a chunk and its envelope, a statistic.
const SMALL: usize = 64 << 10;

/// How often the list of clients is looked at when nobody asks.
const LOOK: Duration = Duration::from_secs(1);

impl Service {
    /// A service that reads at most this many uploads at a time; the others wait with nothing sent.
    pub(crate) fn new(hall: Arc<Hall>, identity: Identity, uploads: usize) -> Self {
        let desk = Arc::new(Desk { hall, identity, lanes: Lanes::new(uploads) });
        let limited = |most| FederationServer::from_arc(Arc::clone(&desk)).max_decoding_message_size(most);
        Self { small: limited(SMALL), large: limited(LARGEST_MESSAGE), desk }
    }

    /// Tells the hall who has a valid certificate, for ever.
    pub(crate) async fn watch(self) {
        while let Some(valid) = self.desk.identity.valid(&self.desk.hall.log) {
            self.desk.hall.allow(valid);
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn respond(self, request: http::Request<Body>) -> http::Response<Body> {
        let Self { desk, mut small, mut large } = self;
        // Who may not ask is refused before anything of the request is read.
        let said = request.headers().get(CLIENT).and_then(|said| said.to_str().ok()).unwrap_or("");
        let guest = request.extensions().get::<Guest>();
        let Caller { name, peer, asks } = desk.identity.caller(guest, said, &desk.hall.log);
        if let Err(refusal) = asks {
            return Refuse { desk, name, peer }.because(&refusal).into_http();
        }
        let path = request.uri().path().to_owned();
        let method = path.strip_prefix('/').and_then(|path| path.strip_prefix(SERVICE_NAME));
        let server = if method == Some("/Judge") { &mut large } else { &mut small };
        let response = tower::Service::call(server, request);
        let Ok(response) = match method {
            // Streams have time limits of their own, message by message.
            Some("/Pull" | "/Upload") => response.await,
            _ => tokio::time::timeout(STILL, response).await.unwrap_or_else(|_| {
                Ok(Status::deadline_exceeded("the request did not arrive in full in time").into_http())
            }),
        };
        match Status::from_header_map(response.headers()) {
            Some(status) if status.code() == tonic::Code::Unimplemented && status.message().is_empty() => {
                let sentence = format!(
                    "the server speaks protocol {PROTOCOL} (fedtvd {VERSION}), which has no method {path}"
                );
                Status::unimplemented(sentence).into_http()
            }
            _ => response,
        }
    }
}

impl tower::Service<http::Request<Body>> for Service {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(service.respond(request).await) })
    }
}

impl Desk {
    pub(crate) fn caller<T>(&self, request: &Request<T>) -> Caller {
        let said = request.metadata().get(CLIENT).and_then(|said| said.to_str().ok());
        self.identity.caller(request.extensions().get::<Guest>(), said.unwrap_or(""), &self.hall.log)
    }

    /// The client that asks, with a way to refuse it.
    pub(crate) fn member<T>(self: &Arc<Self>, request: &Request<T>) -> Result<(Member, Refuse), Status> {
        let Caller { name, peer, asks } = self.caller(request);
        let refuse = Refuse { desk: Arc::clone(self), name, peer };
        match asks {
            Ok(Asker::Client(member)) => Ok((member, refuse)),
            Ok(Asker::Operator) => Err(refuse.because(&Refusal::NotClient)),
            Err(refusal) => Err(refuse.because(&refusal)),
        }
    }
}

#[tonic::async_trait]
impl Federation for Desk {
    type PullStream = Replies<wire::Work>;
    type UploadStream = Replies<wire::UploadReply>;

    async fn hello(self: Arc<Self>, request: Request<wire::HelloRequest>) -> Answered<wire::Welcome> {
        let (member, refuse) = self.member(&request)?;
        let wire::HelloRequest { protocol, version } = request.get_ref();
        VersionMismatch::at_server(*protocol, version).map_err(|error| refuse.because(&error.into()))?;
        self.hall.greet(&member, None).map_err(|refusal| refuse.because(&refusal))?;
        let terms = &self.hall.terms;
        Ok(Response::new(wire::Welcome {
            protocol: PROTOCOL,
            run: terms.run_id.clone(),
            client: member.id,
            name: member.name,
            network: terms.network.clone(),
            crop: terms.crop as u64,
            flip: terms.flip,
            strategy: terms.run.strategy.label.clone(),
            mode: serde_json::to_string(&terms.run.mode).unwrap_or_default().trim_matches('"').to_owned(),
            rounds: terms.rounds,
            classes: terms.class_names.clone(),
            version: VERSION.to_owned(),
        }))
    }

    async fn enrol(self: Arc<Self>, request: Request<wire::Enrolment>) -> Answered<wire::Empty> {
        let (member, refuse) = self.member(&request)?;
        self.hall.enrol(&member, request.get_ref()).map_err(|refusal| refuse.because(&refusal))?;
        if let Some(guest) = request.extensions().get::<Guest>() {
            guest.surveyed.store(true, Ordering::Relaxed);
        }
        Ok(Response::new(wire::Empty {}))
    }

    async fn pull(self: Arc<Self>, request: Request<wire::PullRequest>) -> Answered<Self::PullStream> {
        Desk::pull(self, request).await
    }

    async fn upload(
        self: Arc<Self>,
        request: Request<Streaming<wire::UploadRequest>>,
    ) -> Answered<Self::UploadStream> {
        Desk::upload(self, request).await
    }

    async fn fail(self: Arc<Self>, request: Request<wire::Failure>) -> Answered<wire::Empty> {
        let (member, refuse) = self.member(&request)?;
        self.hall.fail(&member, request.get_ref()).map_err(|refusal| refuse.because(&refusal))?;
        Ok(Response::new(wire::Empty {}))
    }

    async fn judge(self: Arc<Self>, request: Request<wire::Counts>) -> Answered<wire::Empty> {
        let (member, refuse) = self.member(&request)?;
        self.hall.count(&member, request.get_ref()).map_err(|refusal| refuse.because(&refusal))?;
        Ok(Response::new(wire::Empty {}))
    }

    async fn status(self: Arc<Self>, request: Request<wire::StatusRequest>) -> Answered<wire::StatusReply> {
        let Caller { name, peer, asks } = self.caller(&request);
        match asks {
            Ok(Asker::Operator) => {
                let json = serde_json::to_string(&self.hall.status()).unwrap_or_default();
                Ok(Response::new(wire::StatusReply { json }))
            }
            Ok(Asker::Client(_)) => Err(Refuse { desk: self, name, peer }.because(&Refusal::NotOperator)),
            Err(refusal) => Err(Refuse { desk: self, name, peer }.because(&refusal)),
        }
    }
}

/// Tells the log and the client why.
pub(crate) struct Refuse {
    desk: Arc<Desk>,
    name: Option<String>,
    peer: String,
}

impl Refuse {
    pub(crate) fn because(&self, refusal: &Refusal) -> Status {
        let (client, peer) = (self.name.as_deref().map(plain), self.peer.clone());
        let why = plain(&refusal.to_string());
        (self.desk.hall.log)(&Event::Refused { client, peer, code: refusal.code(), why: why.clone() });
        let code = if refusal.passing() { tonic::Code::Unavailable } else { tonic::Code::FailedPrecondition };
        let mut status = Status::new(code, why);
        status.metadata_mut().insert(CODE, tonic::metadata::MetadataValue::from_static(refusal.code()));
        status
    }
}
