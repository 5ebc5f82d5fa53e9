//! The gRPC service: who asks, then what; refusals before anything is read.

use crate::admission::{Admission, Member};
use crate::allow::{AllowError, Watched};
use crate::door::Guest;
use crate::event::Event;
use crate::hall::{Hall, Phase};
use crate::job_bytes;
use crate::receive::{STILL, receive};
use crate::refusal::{Refusal, plain};
use crate::wire::{self, CLIENT, CODE, LARGEST_MESSAGE, PART, PROTOCOL, answer, path, piece, work};
use fedtvd_core::job::Job;
use fedtvd_core::profile::ClientId;
use prost::bytes::Bytes;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::AbortHandle;
use tokio_stream::wrappers::ReceiverStream;
use tonic::body::Body;
use tonic::server::Grpc;
use tonic::{Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;
use tower::service_fn;

/// How the server knows who asks.
pub(crate) enum Identity {
    /// By certificate, listed in a file; the operator's is the server's own.
    Certificates {
        /// The list.
        list: Arc<Watched>,
        /// The server's own certificate.
        operator: String,
    },
    /// By what it says: without TLS, between processes of one machine.
    Claimed,
}

/// How long a client that has nothing to do is kept waiting.
const POLL: Duration = Duration::from_secs(25);

type Answered<T> = Result<Response<T>, Status>;
type Replies<T> = ReceiverStream<Result<T, Status>>;

pub(crate) struct Desk {
    hall: Arc<Hall>,
    identity: Identity,
    readers: Semaphore,
    encoders: Semaphore,
    /// Jobs and models on their way out, one per client: a new question ends the answer to the last.
    answering: Mutex<BTreeMap<ClientId, AbortHandle>>,
}

/// The service as the transport calls it.
#[derive(Clone)]
pub(crate) struct Service(Arc<Desk>);

impl Service {
    /// A service that reads so many uploads at a time; the others wait with nothing sent.
    pub(crate) fn new(hall: Arc<Hall>, identity: Identity, uploads: usize) -> Self {
        let (readers, encoders) =
            (Semaphore::new(uploads.clamp(1, Semaphore::MAX_PERMITS)), Semaphore::new(1));
        Self(Arc::new(Desk { hall, identity, readers, encoders, answering: Mutex::default() }))
    }
}

/// How often the list of clients is looked at when nobody asks.
const LOOK: Duration = Duration::from_secs(1);

impl Service {
    /// Keeps the hall told who has a valid certificate, for ever.
    pub(crate) async fn watch(self) {
        let Identity::Certificates { list, .. } = &self.0.identity else { return };
        loop {
            let (current, trouble) = list.current();
            self.0.stale(trouble);
            self.0.hall.allow(current.valid());
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
    let Caller { name, peer, asks } = desk.asks(request.extensions().get::<Guest>(), said);
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

/// Who asks, and from where.
struct Caller {
    name: Option<String>,
    peer: String,
    asks: Result<Asker, Refusal>,
}

enum Asker {
    Client(Member),
    Operator,
}

impl Desk {
    /// Tells that a changed list does not read.
    fn stale(&self, trouble: Option<AllowError>) {
        if let Some(error) = trouble {
            let note = format!("the list of clients stays as it was: {error}");
            (self.hall.log)(&Event::Note { note });
        }
    }

    fn caller<T>(&self, request: &Request<T>) -> Caller {
        let said = request.metadata().get(CLIENT).and_then(|said| said.to_str().ok());
        self.asks(request.extensions().get::<Guest>(), said.unwrap_or(""))
    }

    /// Who is at the other end of a connection, and says this of itself.
    fn asks(&self, guest: Option<&Guest>, said: &str) -> Caller {
        let peer = guest.map_or_else(|| "-".to_owned(), |guest| guest.peer.clone());
        let certificate = guest.and_then(|guest| guest.certificate.as_deref());
        match &self.identity {
            Identity::Claimed => {
                let asks = match said.parse() {
                    Ok(id) => Ok(Asker::Client(Member { id, name: said.to_owned(), max_size: u64::MAX })),
                    Err(_) if said == "operator" => Ok(Asker::Operator),
                    Err(_) => Err(Refusal::NoName(said.chars().take(80).collect())),
                };
                Caller { name: Some(said.chars().take(80).collect()), peer, asks }
            }
            Identity::Certificates { list, operator } => {
                let fingerprint = certificate.unwrap_or("none");
                if fingerprint == operator {
                    return Caller { name: Some("operator".to_owned()), peer, asks: Ok(Asker::Operator) };
                }
                let (list, trouble) = list.current();
                self.stale(trouble);
                let listed = list.find(fingerprint);
                let asks = match listed {
                    None => Err(Refusal::Unknown(fingerprint.to_owned())),
                    Some(entry) if entry.revoked => Err(Refusal::Revoked(entry.name.clone())),
                    Some(entry) => {
                        let (name, max_size) = (entry.name.clone(), entry.max_size);
                        Ok(Asker::Client(Member { id: entry.id, name, max_size }))
                    }
                };
                Caller { name: listed.map(|entry| entry.name.clone()), peer, asks }
            }
        }
    }

    /// The client that asks, with a way to refuse it.
    fn member<T>(self: &Arc<Self>, request: &Request<T>) -> Result<(Member, Refuse), Status> {
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

    async fn pull(self: Arc<Self>, request: Request<wire::Ask>) -> Answered<Replies<wire::Work>> {
        let mut calls = self.hall.calls();
        let limit = tokio::time::Instant::now() + POLL;
        let (client, todo) = loop {
            calls.mark_unchanged();
            // Again each time: who was revoked while it waited gets nothing more.
            let (member, refuse) = self.member(&request)?;
            let greeted = self.hall.greet(&member, Some(&request.get_ref().run));
            greeted.map_err(|refusal| refuse.because(&refusal))?;
            match self.todo(&member, surveyed(&request)) {
                Todo::Wait => {}
                todo => break (member.id, todo),
            }
            if tokio::time::timeout_at(limit, calls.changed()).await.is_err() {
                break (member.id, Todo::Wait);
            }
        };
        let (sender, receiver) = mpsc::channel(2);
        let desk = Arc::clone(&self);
        let answering = tokio::spawn(async move {
            // A client that left takes nothing more.
            let _ = desk.hand_over(todo, &sender).await;
        });
        let mut all = self.answering.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = all.insert(client, answering.abort_handle()) {
            last.abort();
        }
        drop(all);
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    fn todo(&self, member: &Member, surveyed: bool) -> Todo {
        let mut inner = self.hall.inner();
        let client = member.id;
        if let Phase::Finished(finished) = &inner.phase {
            let finished = finished.clone();
            inner.seen.remove(&client);
            drop(inner);
            self.hall.ring();
            return Todo::Message(work::Kind::Finished(finished));
        }
        if !surveyed || !inner.present.contains_key(&client) {
            let survey = self.hall.survey(&inner);
            let ask = serde_json::to_string(&survey.ask).unwrap_or_default();
            let reference = serde_json::to_string(&survey.reference).unwrap_or_default();
            return Todo::Message(work::Kind::Survey(wire::Survey { ask, reference }));
        }
        match &mut inner.phase {
            Phase::Training(open) if !open.answers.contains_key(&client) => match open.jobs.get(&client) {
                Some(job) => Todo::Train(job.clone(), open.shared.clone()),
                None => Todo::Wait,
            },
            Phase::Judging(judging)
                if judging.asked.contains(&client) && !judging.counts.contains_key(&client) =>
            {
                Todo::Judge(judging.round, judging.model.clone())
            }
            _ => Todo::Wait,
        }
    }

    async fn hand_over(
        &self,
        todo: Todo,
        sender: &mpsc::Sender<Result<wire::Work, Status>>,
    ) -> Result<(), mpsc::error::SendError<Result<wire::Work, Status>>> {
        let work = |kind| Ok(wire::Work { kind: Some(kind) });
        let (round, first, parts) = match todo {
            Todo::Wait => return sender.send(work(work::Kind::Wait(wire::Done {}))).await,
            Todo::Message(kind) => return sender.send(work(kind)).await,
            Todo::Judge(round, model) => (
                round,
                work::Kind::Judge(wire::Size { round, bytes: model.len() as u64 }),
                [model, Bytes::new()],
            ),
            Todo::Train(job, shared) => {
                // One at a time: a job is as large as its model while it is encoded.
                let Ok(_turn) = self.encoders.acquire().await else { return Ok(()) };
                let round = job.offer.round;
                let Ok(head) = tokio::task::spawn_blocking(move || job_bytes::head(&job)).await else {
                    return Ok(());
                };
                let bytes = (head.len() + shared.len()) as u64;
                if let Phase::Training(open) = &mut self.hall.inner().phase {
                    open.bytes_down += bytes;
                }
                (round, work::Kind::Train(wire::Size { round, bytes }), [head, shared])
            }
        };
        sender.send(work(first)).await?;
        for part in parts {
            for start in (0..part.len()).step_by(PART) {
                let end = part.len().min(start + PART);
                let part = sender.send(work(work::Kind::Part(part.slice(start..end))));
                match tokio::time::timeout(STILL, part).await {
                    Ok(sent) if self.hall.at(round) => sent?,
                    // Whoever does not read, or reads of a round that is over, holds no model in memory.
                    _ => return Ok(()),
                }
            }
        }
        Ok(())
    }

    async fn upload(
        self: Arc<Self>,
        request: Request<Streaming<wire::Piece>>,
    ) -> Answered<Replies<wire::Answer>> {
        let (member, refuse) = self.member(&request)?;
        let (metadata, extensions, mut pieces) = request.into_parts();
        let caller = Request::from_parts(metadata, extensions, ());
        let first = match tokio::time::timeout(STILL, pieces.message()).await {
            Ok(first) => first?,
            Err(_) => return Err(refuse.because(&Refusal::Stalled(STILL.as_secs()))),
        };
        let Some(wire::Piece { kind: Some(piece::Kind::Ticket(ticket)) }) = first else {
            return Err(refuse.because(&Refusal::NoTicket));
        };
        let admission = self.hall.admit(&member, &ticket).map_err(|refusal| refuse.because(&refusal))?;
        let (sender, receiver) = mpsc::channel(2);
        let reply = |kind| Ok(wire::Answer { kind: Some(kind) });
        tokio::spawn(async move {
            let receipt = match admission {
                Admission::Already => Ok(wire::Receipt { already: true }),
                Admission::Wanted(arrival) => {
                    let Ok(_turn) = self.readers.acquire().await else { return };
                    if sender.send(reply(answer::Kind::Go(wire::Done {}))).await.is_err() {
                        return;
                    }
                    // Whoever was revoked while it sent is refused like one that was revoked before.
                    let desk = Arc::clone(&self);
                    let still = move || desk.caller(&caller).asks.map(|_| ());
                    receive(arrival, &mut pieces, still).await.map(|()| wire::Receipt { already: false })
                }
            };
            let last = match receipt {
                Ok(receipt) => reply(answer::Kind::Receipt(receipt)),
                Err(refusal) => Err(refuse.because(&refusal)),
            };
            let _ = sender.send(last).await;
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }
}

/// Whether the client said on this connection what data it has.
fn surveyed<T>(request: &Request<T>) -> bool {
    request.extensions().get::<Guest>().is_some_and(|guest| guest.surveyed.load(Ordering::Relaxed))
}

/// What a client is to do.
enum Todo {
    Wait,
    Message(work::Kind),
    Train(Job, Bytes),
    Judge(u32, Bytes),
}

/// Tells the log and the client why.
struct Refuse {
    desk: Arc<Desk>,
    name: Option<String>,
    peer: String,
}

impl Refuse {
    fn because(&self, refusal: &Refusal) -> Status {
        let (client, peer) = (self.name.as_deref().map(plain), self.peer.clone());
        let why = plain(&refusal.to_string());
        (self.desk.hall.log)(&Event::Refused { client, peer, code: refusal.code(), why: why.clone() });
        let code = if refusal.passing() { tonic::Code::Unavailable } else { tonic::Code::FailedPrecondition };
        let mut status = Status::new(code, why);
        status.metadata_mut().insert(CODE, tonic::metadata::MetadataValue::from_static(refusal.code()));
        status
    }
}
