//! The gRPC service: it identifies the caller before it reads the request, then dispatches to the handlers.

use crate::federation::admission::Member;
use crate::federation::{Coordinator, Event, Status as FederationStatus};
use crate::identity::AllowList;
use crate::identity::peer_identity::{Authentication, Caller, Role, Valid};
use crate::server::connections::Peer;
use crate::server::dispatch::POLL;
use crate::server::large_requests::{LargeRequests, Reading, SMALL, largest_matrix, largest_statistics};
use crate::server::metrics::{Metrics, Observed};
use crate::server::open_connections::OpenConnections;
use crate::server::receive::STILL;
use crate::server::refusal::{Refusal, plain};
use crate::server::refuse::Refuse;
use crate::server::upload_limit::UploadLimit;
use crate::wire::federation_server::{Federation, FederationServer, SERVICE_NAME};
use crate::wire::{self, CLIENT, LEASE, PROTOCOL, VERSION};
use fedtvd_core::round::ClientId;
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio_stream::wrappers::ReceiverStream;
use tonic::body::Body;
use tonic::{Request, Response, Status, Streaming};

/// A response, or a refusal as a gRPC status.
pub(crate) type Answered<T> = Result<Response<T>, Status>;
/// A stream of messages to the client.
pub(crate) type Replies<T> = ReceiverStream<Result<T, Status>>;

/// The handlers of all requests.
pub(crate) struct FederationService {
    pub(crate) coordinator: Arc<Coordinator>,
    authentication: Authentication,
    pub(crate) upload_limit: UploadLimit,
}

/// The service as called by the transport: identifies the caller, and limits the size and duration of a request.
#[derive(Clone)]
pub(crate) struct Guard {
    service: Arc<FederationService>,
    /// For all requests but confusion matrices and statistics of columns.
    small: FederationServer<FederationService>,
    /// For confusion matrices, and their maximum size.
    matrices: (FederationServer<FederationService>, usize),
    /// For statistics of columns, and their maximum size.
    statistics: (FederationServer<FederationService>, usize),
    large_requests: Arc<LargeRequests>,
    open: Arc<OpenConnections>,
}

/// Without TLS, a client counts as connected if it was in contact within this time: idle ones ask for work every 25 seconds.
const CONTACT_SECONDS: f64 = 60.0;

/// How often the list of clients is checked when there are no requests.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

impl Guard {
    /// A service that reads at most this many uploads at a time; the others wait before they send anything.
    pub(crate) fn new(
        coordinator: Arc<Coordinator>,
        authentication: Authentication,
        uploads: usize,
        open: Arc<OpenConnections>,
    ) -> Self {
        let upload_limit = UploadLimit::new(uploads);
        let service = Arc::new(FederationService { coordinator, authentication, upload_limit });
        let limited = |most| FederationServer::from_arc(Arc::clone(&service)).max_decoding_message_size(most);
        let with_limit = |most| (limited(most), most);
        Self {
            small: limited(SMALL),
            matrices: with_limit(largest_matrix(&service.coordinator.terms)),
            statistics: with_limit(largest_statistics(&service.coordinator.terms)),
            large_requests: Arc::default(),
            service,
            open,
        }
    }

    /// Informs the coordinator which clients have a valid certificate, and closes connections of others; does nothing
    /// without TLS.
    pub(crate) async fn watch(self) {
        let FederationService { coordinator, authentication, .. } = &*self.service;
        while let Some(Valid { clients, certificates }) = authentication.valid(&coordinator.log) {
            coordinator.allow(clients);
            if self.open.close_unless(|certificate| certificates.contains(certificate)) {
                // Their waiting requests are answered with the reason.
                coordinator.notify_clients();
            }
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    }

    /// Reads the list of clients again, and logs the result.
    pub(crate) fn reload(&self) {
        let FederationService { authentication, coordinator, .. } = &*self.service;
        let note = authentication.reload();
        (coordinator.log)(&Event::Note { note });
        if let Some(valid) = authentication.valid(&coordinator.log) {
            coordinator.allow(valid.clients);
        }
    }

    /// All numbers, for Prometheus.
    pub(crate) fn metrics(&self, metrics: &Metrics) -> String {
        let FederationService { authentication, coordinator, .. } = &*self.service;
        let (list, status) = (authentication.list(), coordinator.status());
        metrics.text(&Observed {
            status: &status,
            connected: self.connected(&status, list.as_deref()),
            list: list.as_deref(),
            unreadable_list: authentication.unreadable_list(),
            server_expires: authentication.server_expires(),
        })
    }

    /// Number of clients with an open connection; without TLS, of those that were in contact within the last minute.
    fn connected(&self, status: &FederationStatus, list: Option<&AllowList>) -> usize {
        let Some(list) = list else {
            return status.clients.iter().filter(|client| client.last_seen_seconds < CONTACT_SECONDS).count();
        };
        let open = self.open.certificates_in_use();
        let clients = list.clients.iter().filter(|entry| open.contains(entry.fingerprint.as_str()));
        clients.map(|entry| entry.id).collect::<BTreeSet<ClientId>>().len()
    }

    /// Why an operator must look at the federation, if one must.
    pub(crate) fn trouble(&self, metrics: &Metrics) -> Option<String> {
        let FederationService { authentication, coordinator, .. } = &*self.service;
        metrics.trouble(coordinator, authentication.unreadable_list())
    }

    async fn respond(self, mut request: http::Request<Body>) -> http::Response<Body> {
        let Self { service, small, matrices, statistics, large_requests, .. } = self;
        // Callers without permission are refused before anything of the request is read.
        let claimed = request.headers().get(CLIENT).and_then(|claimed| claimed.to_str().ok()).unwrap_or("");
        let peer = request.extensions().get::<Peer>();
        if let Some(peer) = peer {
            peer.requested.store(true, Ordering::Relaxed);
        }
        let Caller { name, address, certificate, role } =
            service.authentication.caller(peer, claimed, &service.coordinator.log);
        let refuse = Refuse::new(&service.coordinator.log, name, address, certificate);
        let role = match role {
            Ok(role) => role,
            Err(refusal) => return refuse.because(&refusal).into_http(),
        };
        let lease = request.headers().get(LEASE).and_then(|lease| lease.to_str().ok()?.parse().ok());
        if lease.is_some_and(|lease: u64| lease > service.coordinator.ledger.lease) {
            return refuse.because(&Refusal::Outdated).into_http();
        }
        let path = request.uri().path().to_owned();
        let method = path.strip_prefix('/').and_then(|path| path.strip_prefix(SERVICE_NAME));
        let (mut server, most) = match method {
            Some("/Judge") => matrices,
            Some("/Columns") => statistics,
            _ => (small, SMALL),
        };
        let _large = match role {
            Role::Client(member) if most > SMALL => match large_requests.begin(member.id) {
                Ok(begun) => Some(begun),
                Err(refusal) => return refuse.because(&refusal).into_http(),
            },
            _ => None,
        };
        let response = async {
            if most > SMALL
                && let Some(reading) = large_requests.reading().await
            {
                request.extensions_mut().insert(reading);
            }
            tower::Service::call(&mut server, request).await
        };
        let Ok(response) = match method {
            // Streams have their own timeouts, for each message.
            Some("/Pull" | "/Upload") => response.await,
            _ => tokio::time::timeout(STILL, response).await.unwrap_or_else(|_| {
                Ok(Status::deadline_exceeded("the request did not arrive completely in time").into_http())
            }),
        };
        match Status::from_header_map(response.headers()) {
            Some(status) if status.code() == tonic::Code::Unimplemented && status.message().is_empty() => {
                let sentence = format!(
                    "the server speaks protocol {PROTOCOL} (fedtvd {VERSION}), which has no method {path}"
                );
                Status::unimplemented(plain(&sentence)).into_http()
            }
            _ => response,
        }
    }
}

impl tower::Service<http::Request<Body>> for Guard {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let guard = self.clone();
        Box::pin(async move { Ok(guard.respond(request).await) })
    }
}

impl FederationService {
    pub(crate) fn caller<T>(&self, request: &Request<T>) -> Caller {
        let claimed = request.metadata().get(CLIENT).and_then(|claimed| claimed.to_str().ok());
        let peer = request.extensions().get::<Peer>();
        self.authentication.caller(peer, claimed.unwrap_or(""), &self.coordinator.log)
    }

    /// The calling client, with a way to refuse it.
    pub(crate) fn member<T>(self: &Arc<Self>, request: &Request<T>) -> Result<(Member, Refuse), Status> {
        let Caller { name, address, certificate, role } = self.caller(request);
        let refuse = Refuse::new(&self.coordinator.log, name, address, certificate);
        match role {
            Ok(Role::Client(member)) => Ok((member, refuse)),
            Ok(Role::Operator) => Err(refuse.because(&Refusal::NotClient)),
            Err(refusal) => Err(refuse.because(&refusal)),
        }
    }
}

#[tonic::async_trait]
impl Federation for FederationService {
    type PullStream = Replies<wire::Work>;
    type UploadStream = Replies<wire::UploadReply>;

    async fn hello(self: Arc<Self>, request: Request<wire::HelloRequest>) -> Answered<wire::Welcome> {
        let (member, refuse) = self.member(&request)?;
        let wire::HelloRequest { protocol: oldest, newest, version } = request.get_ref();
        let local = &self.coordinator.terms.run.local;
        let protocol =
            wire::agree(*oldest, *newest, version, local).map_err(|error| refuse.because(&error.into()))?;
        self.coordinator.note_contact(&member, None).map_err(|refusal| refuse.because(&refusal))?;
        let terms = &self.coordinator.terms;
        let survey = self.coordinator.first_survey();
        let mut welcome = Response::new(wire::Welcome {
            protocol,
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
            schema: terms.tables.as_ref().map_or_else(String::new, |tables| tables.text()),
            ask: serde_json::to_string(&survey.ask).unwrap_or_default(),
            epochs: terms.run.local.epochs,
            clients_evaluate: terms.clients_evaluate,
            reference: serde_json::to_string(&survey.reference).unwrap_or_default(),
        });
        welcome.metadata_mut().insert(LEASE, self.coordinator.ledger.lease.into());
        Ok(welcome)
    }

    async fn columns(
        self: Arc<Self>,
        mut request: Request<wire::ColumnStatistics>,
    ) -> Answered<wire::CompleteSchema> {
        request.extensions_mut().remove::<Reading>();
        let mut calls = self.coordinator.subscribe();
        let limit = tokio::time::Instant::now() + POLL;
        loop {
            calls.mark_unchanged();
            // Checked each time: a client that was revoked while it waited gets no answer.
            let (member, refuse) = self.member(&request)?;
            let told = self.coordinator.receive_columns(&member, request.get_ref());
            let schema = told.map_err(|refusal| refuse.because(&refusal))?;
            let late = match schema {
                Some(_) => true,
                None => tokio::time::timeout_at(limit, calls.changed()).await.is_err(),
            };
            if late {
                return Ok(Response::new(wire::CompleteSchema { schema: schema.unwrap_or_default() }));
            }
        }
    }

    async fn enrol(self: Arc<Self>, request: Request<wire::Enrolment>) -> Answered<wire::Empty> {
        let (member, refuse) = self.member(&request)?;
        self.coordinator.enrol(&member, request.get_ref()).map_err(|refusal| {
            self.coordinator.note_problem(member.id, Some(plain(&refusal.to_string())));
            refuse.because(&refusal)
        })?;
        if let Some(peer) = request.extensions().get::<Peer>() {
            peer.surveyed.store(true, Ordering::Relaxed);
        }
        Ok(Response::new(wire::Empty {}))
    }

    async fn pull(self: Arc<Self>, request: Request<wire::PullRequest>) -> Answered<Self::PullStream> {
        FederationService::pull(self, request).await
    }

    async fn upload(
        self: Arc<Self>,
        request: Request<Streaming<wire::UploadRequest>>,
    ) -> Answered<Self::UploadStream> {
        FederationService::upload(self, request).await
    }

    async fn fail(self: Arc<Self>, request: Request<wire::Failure>) -> Answered<wire::Empty> {
        let (member, refuse) = self.member(&request)?;
        let refuse = refuse.in_round(request.get_ref().round);
        self.coordinator.fail(&member, request.get_ref()).map_err(|refusal| refuse.because(&refusal))?;
        Ok(Response::new(wire::Empty {}))
    }

    async fn judge(self: Arc<Self>, request: Request<wire::Counts>) -> Answered<wire::Empty> {
        let (member, refuse) = self.member(&request)?;
        let refuse = refuse.in_round(request.get_ref().round);
        self.coordinator.count(&member, request.get_ref()).map_err(|refusal| refuse.because(&refusal))?;
        Ok(Response::new(wire::Empty {}))
    }

    async fn decline(self: Arc<Self>, request: Request<wire::Declined>) -> Answered<wire::Empty> {
        let (member, refuse) = self.member(&request)?;
        let wire::Declined { run, why } = request.get_ref();
        self.coordinator.note_contact(&member, Some(run)).map_err(|refusal| refuse.because(&refusal))?;
        let why = refuse.log(&Refusal::Declined(plain(why)));
        self.coordinator.note_problem(member.id, Some(why));
        Ok(Response::new(wire::Empty {}))
    }

    async fn status(self: Arc<Self>, request: Request<wire::StatusRequest>) -> Answered<wire::StatusReply> {
        let Caller { name, address, certificate, role } = self.caller(&request);
        match role {
            Ok(Role::Operator) => {
                let json = serde_json::to_string(&self.coordinator.status()).unwrap_or_default();
                Ok(Response::new(wire::StatusReply { json }))
            }
            Ok(Role::Client(_)) => {
                Err(Refuse::new(&self.coordinator.log, name, address, certificate)
                    .because(&Refusal::NotOperator))
            }
            Err(refusal) => {
                Err(Refuse::new(&self.coordinator.log, name, address, certificate).because(&refusal))
            }
        }
    }
}
