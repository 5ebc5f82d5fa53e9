//! The gRPC service: who asks, then what; refusals before anything is read.

use crate::admission::Member;
use crate::caller::{Asker, Caller, Identity};
use crate::door::Guest;
use crate::event::Event;
use crate::hall::Hall;
use crate::lanes::Lanes;
use crate::receive::STILL;
use crate::refusal::{Refusal, plain};
use crate::wire::{self, CLIENT, CODE, LARGEST_MESSAGE, PROTOCOL, path};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio_stream::wrappers::ReceiverStream;
use tonic::body::Body;
use tonic::server::Grpc;
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;
use tower::service_fn;

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

/// The service as the transport calls it.
#[derive(Clone)]
pub(crate) struct Service(Arc<Desk>);

impl Service {
    /// A service that reads so many uploads at a time; the others wait with nothing sent.
    pub(crate) fn new(hall: Arc<Hall>, identity: Identity, uploads: usize) -> Self {
        Self(Arc::new(Desk { hall, identity, lanes: Lanes::new(uploads) }))
    }
}

/// How often the list of clients is looked at when nobody asks.
const LOOK: Duration = Duration::from_secs(1);

impl Service {
    /// Keeps the hall told who has a valid certificate, for ever.
    pub(crate) async fn watch(self) {
        while let Some(valid) = self.0.identity.valid(&self.0.hall.log) {
            self.0.hall.allow(valid);
            tokio::time::sleep(LOOK).await;
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
        let desk = Arc::clone(&self.0);
        Box::pin(async move { Ok(dispatch(desk, request).await) })
    }
}

/// Most bytes of a message that is no confusion matrix: a part and its envelope, a statistic.
const SMALL: usize = 64 << 10;

fn grpc<T, U>(largest: usize) -> Grpc<ProstCodec<T, U>>
where
    T: prost::Message + Send + 'static,
    U: prost::Message + Default + Send + 'static,
{
    Grpc::new(ProstCodec::default()).max_decoding_message_size(largest)
}

/// An answer to one message, which may not take for ever to come.
async fn within(answer: impl Future<Output = http::Response<Body>>) -> http::Response<Body> {
    let late = |_| Status::deadline_exceeded("the request did not come to its end").into_http();
    tokio::time::timeout(STILL, answer).await.unwrap_or_else(late)
}

async fn dispatch(desk: Arc<Desk>, request: http::Request<Body>) -> http::Response<Body> {
    // Who may not ask is refused before anything of the request is read.
    let said = request.headers().get(CLIENT).and_then(|said| said.to_str().ok()).unwrap_or("");
    let guest = request.extensions().get::<Guest>();
    let Caller { name, peer, asks } = desk.identity.caller(guest, said, &desk.hall.log);
    if let Err(refusal) = asks {
        return Refuse { desk, name, peer }.because(&refusal).into_http();
    }
    match request.uri().path() {
        path::HELLO => {
            within(grpc(SMALL).unary(service_fn(move |r| Arc::clone(&desk).hello(r)), request)).await
        }
        path::ENROL => {
            within(grpc(SMALL).unary(service_fn(move |r| Arc::clone(&desk).enrol(r)), request)).await
        }
        path::PULL => {
            grpc(SMALL).server_streaming(service_fn(move |r| Arc::clone(&desk).pull(r)), request).await
        }
        path::UPLOAD => {
            grpc(SMALL).streaming(service_fn(move |r| Arc::clone(&desk).upload(r)), request).await
        }
        path::FAIL => {
            within(grpc(SMALL).unary(service_fn(move |r| Arc::clone(&desk).fail(r)), request)).await
        }
        path::JUDGE => {
            within(grpc(LARGEST_MESSAGE).unary(service_fn(move |r| Arc::clone(&desk).judge(r)), request))
                .await
        }
        path::STATUS => {
            within(grpc(SMALL).unary(service_fn(move |r| Arc::clone(&desk).status(r)), request)).await
        }
        _ => Status::unimplemented("there is no such method").into_http(),
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

    async fn hello(self: Arc<Self>, request: Request<wire::Hello>) -> Answered<wire::Welcome> {
        let (member, refuse) = self.member(&request)?;
        let theirs = request.get_ref().protocol;
        if theirs != PROTOCOL {
            return Err(refuse.because(&Refusal::Protocol { ours: PROTOCOL, theirs }));
        }
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
        }))
    }

    async fn enrol(self: Arc<Self>, request: Request<wire::Enrolment>) -> Answered<wire::Done> {
        let (member, refuse) = self.member(&request)?;
        self.hall.enrol(&member, request.get_ref()).map_err(|refusal| refuse.because(&refusal))?;
        if let Some(guest) = request.extensions().get::<Guest>() {
            guest.surveyed.store(true, Ordering::Relaxed);
        }
        Ok(Response::new(wire::Done {}))
    }

    async fn fail(self: Arc<Self>, request: Request<wire::Failure>) -> Answered<wire::Done> {
        let (member, refuse) = self.member(&request)?;
        self.hall.fail(&member, request.get_ref()).map_err(|refusal| refuse.because(&refusal))?;
        Ok(Response::new(wire::Done {}))
    }

    async fn judge(self: Arc<Self>, request: Request<wire::Counts>) -> Answered<wire::Done> {
        let (member, refuse) = self.member(&request)?;
        self.hall.count(&member, request.get_ref()).map_err(|refusal| refuse.because(&refusal))?;
        Ok(Response::new(wire::Done {}))
    }

    async fn status(self: Arc<Self>, request: Request<wire::Ask>) -> Answered<wire::Text> {
        let Caller { name, peer, asks } = self.caller(&request);
        match asks {
            Ok(Asker::Operator) => {
                let text = serde_json::to_string(&self.hall.status()).unwrap_or_default();
                Ok(Response::new(wire::Text { text }))
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
