//! A client's connection to the server: one method per request of the protocol.

use crate::client::connection_error::{ConnectionError, lost, refused};
use crate::client::outgoing::Outgoing;
use crate::client::sent_log::SentLog;
use crate::client::tls_stream::{TlsFailure, connect};
use crate::identity::tls::{self, TlsError};
use crate::wire::federation_client::FederationClient;
use crate::wire::{
    self, CLIENT, LARGEST_MESSAGE, LEASE, OLDEST_PROTOCOL, PROTOCOL, VERSION, VersionMismatch, plain, work,
};
use fedtvd_core::round::ClientEvaluation;
use hyper_util::rt::TokioIo;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tonic::metadata::MetadataValue;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Response, Status, Streaming};

/// How a client proves its identity.
#[derive(Clone)]
pub enum Security {
    /// With its certificate.
    Tls(Arc<ClientConfig>),
    /// Not at all: it claims a number, or "operator". On one machine only.
    Claimed(String),
}

impl Security {
    /// A client's certificate, from its folder.
    pub fn client(folder: &Path) -> Result<Self, TlsError> {
        Ok(Self::Tls(Arc::new(tls::client(folder)?)))
    }

    /// The operator's certificate, from the authority's folder.
    pub fn operator(folder: &Path) -> Result<Self, TlsError> {
        Ok(Self::Tls(Arc::new(tls::operator(folder)?)))
    }

    /// The certificate that the next connection presents, read again if its file has changed.
    pub(crate) fn certificate(&self) -> Option<CertificateDer<'static>> {
        let Self::Tls(config) = self else { return None };
        config.client_auth_cert_resolver.resolve(&[], &[])?.cert.first().cloned()
    }
}

/// What a client is to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Task {
    /// Enrol with a label statistic.
    Survey(wire::Survey),
    /// Train: the round and the job's bytes.
    Train(u32, Vec<u8>),
    /// Evaluate a model: the round and the model's bytes.
    Evaluate(u32, Vec<u8>),
    /// Receive more bytes than a job of this model can have. None of them were received.
    TooLarge {
        /// The round.
        round: u32,
        /// The announced length.
        bytes: u64,
    },
    /// Pull again.
    Wait,
    /// The federation is over.
    Finished(wire::Finished),
}

/// Timeout of an answer of the server.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(90);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// HTTP/2 keep-alive interval and timeout.
const KEEP_ALIVE: Duration = Duration::from_secs(20);

/// A connection to the server.
pub struct Connection {
    pub(super) client: FederationClient<Channel>,
    claimed: Option<MetadataValue<tonic::metadata::Ascii>>,
    pub(super) failure: TlsFailure,
    /// The list of what leaves the site.
    sent: Option<Arc<SentLog>>,
    /// The largest job or model that is received, in bytes.
    largest: u64,
    /// The server's lease, if it told one.
    pub(crate) lease: Option<u64>,
    /// The largest lease that the client knows, which it tells with every request.
    pub(crate) largest_lease: Option<u64>,
}

impl Connection {
    /// Connects to HOST:PORT.
    pub async fn dial(address: &str, security: &Security) -> Result<Self, ConnectionError> {
        Self::dial_as(address, None, security).await
    }

    /// Connects to a server whose certificate must have this name instead of the host's.
    pub(crate) async fn dial_as(
        address: &str,
        name: Option<&str>,
        security: &Security,
    ) -> Result<Self, ConnectionError> {
        let wrong = || ConnectionError::Address(address.to_owned());
        let endpoint = Endpoint::from_shared(format!("http://{address}")).map_err(|_| wrong())?;
        let host = endpoint.uri().host().ok_or_else(wrong)?.trim_matches(['[', ']']).to_owned();
        let authority = endpoint.uri().authority();
        if authority.is_none_or(|own| own.as_str() != address || own.port_u16().is_none()) {
            return Err(wrong());
        }
        if matches!(security, Security::Claimed(_)) && !is_loopback(&host) {
            return Err(ConnectionError::Elsewhere(address.to_owned()));
        }
        let endpoint = endpoint
            .connect_timeout(CONNECT_TIMEOUT)
            .http2_keep_alive_interval(KEEP_ALIVE)
            .keep_alive_timeout(KEEP_ALIVE)
            .keep_alive_while_idle(true);
        let failure = TlsFailure::default();
        let claimed = match security {
            Security::Claimed(claimed) => Some(claimed.parse().map_err(|_| wrong())?),
            Security::Tls(_) => None,
        };
        let host = name.map_or(host, str::to_owned);
        let dialled = address.to_owned();
        let (security, shared) = (security.clone(), Arc::clone(&failure));
        let connector = tower::service_fn(move |_| {
            let (address, host) = (dialled.clone(), host.clone());
            let (security, failure) = (security.clone(), Arc::clone(&shared));
            async move { connect(&address, host, security, failure).await.map(TokioIo::new) }
        });
        let channel = endpoint.connect_with_connector(connector).await;
        let channel = channel.map_err(|error| lost(&error, &failure))?;
        let client = FederationClient::new(channel).max_decoding_message_size(LARGEST_MESSAGE);
        Ok(Self { client, claimed, failure, sent: None, largest: u64::MAX, lease: None, largest_lease: None })
    }

    /// Lists everything that it sends from now on.
    pub(crate) fn listed(self, sent: &Arc<SentLog>) -> Self {
        Self { sent: Some(Arc::clone(sent)), ..self }
    }

    /// Refuses larger jobs and models before any of their bytes arrive.
    pub(crate) fn receive_at_most(&mut self, bytes: u64) {
        self.largest = bytes;
    }

    /// Lists a message before it is sent. What cannot be listed is not sent.
    pub(super) fn list(&self, outgoing: impl FnOnce() -> Outgoing) -> Result<(), ConnectionError> {
        let Some(sent) = &self.sent else { return Ok(()) };
        sent.record(outgoing()).map_err(|error| ConnectionError::Unlisted(error.to_string()))
    }

    pub(super) fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(claimed) = &self.claimed {
            request.metadata_mut().insert(CLIENT, claimed.clone());
        }
        if let Some(lease) = self.largest_lease {
            request.metadata_mut().insert(LEASE, lease.into());
        }
        request
    }

    /// Opens the conversation; fails if server and client have no version of the protocol in common.
    pub async fn hello(&mut self) -> Result<wire::Welcome, ConnectionError> {
        let (protocol, newest) = (OLDEST_PROTOCOL, PROTOCOL);
        let hello = wire::HelloRequest { protocol, newest, version: VERSION.to_owned() };
        self.list(|| Outgoing::hello(&hello))?;
        let request = self.request(hello);
        let mut lease = None;
        let hello = async {
            let answer = self.client.hello(request).await?;
            lease = answer.metadata().get(LEASE).and_then(|lease| lease.to_str().ok()?.parse().ok());
            Ok(answer)
        };
        let welcome = printable(answered(hello, &self.failure).await?);
        self.lease = lease;
        VersionMismatch::at_client(welcome.protocol, &welcome.version)?;
        Ok(welcome)
    }

    /// Answers a survey without listing it.
    pub async fn enrol(&mut self, enrolment: wire::Enrolment) -> Result<(), ConnectionError> {
        self.enrol_for(enrolment, "").await
    }

    /// Answers a survey that asks for a distance to this reference.
    pub(crate) async fn enrol_for(
        &mut self,
        enrolment: wire::Enrolment,
        reference: &str,
    ) -> Result<(), ConnectionError> {
        self.list(|| Outgoing::enrolment(&enrolment, reference))?;
        let request = self.request(enrolment);
        answered(self.client.enrol(request), &self.failure).await.map(|wire::Empty {}| ())
    }

    /// Sends the statistics of a table's open columns.
    pub(crate) async fn send_columns(
        &mut self,
        told: wire::ColumnStatistics,
    ) -> Result<wire::CompleteSchema, ConnectionError> {
        self.list(|| Outgoing::columns(&told))?;
        let request = self.request(told);
        answered(self.client.columns(request), &self.failure).await
    }

    /// Reports that there will be no update.
    pub async fn fail(&mut self, run: &str, round: u32, why: String) -> Result<(), ConnectionError> {
        let failure = wire::Failure { run: run.to_owned(), round, why };
        self.list(|| Outgoing::failure(&failure))?;
        let request = self.request(failure);
        answered(self.client.fail(request), &self.failure).await.map(|wire::Empty {}| ())
    }

    /// Tells the server that this site will not take part.
    pub async fn decline(&mut self, run: &str, why: String) -> Result<(), ConnectionError> {
        let declined = wire::Declined { run: run.to_owned(), why };
        self.list(|| Outgoing::declined(&declined))?;
        let request = self.request(declined);
        answered(self.client.decline(request), &self.failure).await.map(|wire::Empty {}| ())
    }

    /// Sends the result of evaluating a model on the hold-out.
    pub async fn evaluate(
        &mut self,
        run: &str,
        round: u32,
        found: ClientEvaluation,
    ) -> Result<(), ConnectionError> {
        let ClientEvaluation { loss, correct, total, confusion } = found;
        let (run, confusion) = (run.to_owned(), confusion.unwrap_or_default());
        let counts = wire::Counts { run, round, loss, confusion, correct, total };
        self.list(|| Outgoing::counts(&counts))?;
        let request = self.request(counts);
        answered(self.client.judge(request), &self.failure).await.map(|wire::Empty {}| ())
    }

    /// The state of the federation as JSON; for the operator.
    pub async fn status(&mut self) -> Result<String, ConnectionError> {
        let request = self.request(wire::StatusRequest {});
        answered(self.client.status(request), &self.failure).await.map(|reply| reply.json)
    }

    /// The next task; the server answers `Task::Wait` if there is none for a while.
    pub async fn pull(&mut self, run: &str) -> Result<Task, ConnectionError> {
        let pull = wire::PullRequest { run: run.to_owned() };
        self.list(|| Outgoing::pull(&pull))?;
        let request = self.request(pull);
        let mut works = answered(self.client.pull(request), &self.failure).await?;
        match self.next(&mut works).await?.and_then(|work| work.item) {
            Some(work::Item::Survey(survey)) => Ok(Task::Survey(survey)),
            Some(
                work::Item::Train(wire::Transfer { round, bytes })
                | work::Item::Evaluate(wire::Transfer { round, bytes }),
            ) if bytes > self.largest => Ok(Task::TooLarge { round, bytes }),
            Some(work::Item::Train(wire::Transfer { round, bytes })) => {
                Ok(Task::Train(round, self.chunks(works, bytes).await?))
            }
            Some(work::Item::Evaluate(wire::Transfer { round, bytes })) => {
                Ok(Task::Evaluate(round, self.chunks(works, bytes).await?))
            }
            Some(work::Item::Finished(finished)) => Ok(Task::Finished(finished)),
            Some(work::Item::Wait(_)) => Ok(Task::Wait),
            Some(work::Item::Chunk(_)) | None => {
                Err(ConnectionError::Lost("the server sent no task".to_owned()))
            }
        }
    }

    async fn next<T>(&self, stream: &mut Streaming<T>) -> Result<Option<T>, ConnectionError> {
        match tokio::time::timeout(ANSWER_TIMEOUT, stream.message()).await {
            Err(_) => Err(ConnectionError::Lost("the server stopped sending".to_owned())),
            Ok(message) => message.map_err(|status| refused(&status, &self.failure)),
        }
    }

    async fn chunks(&self, mut works: Streaming<wire::Work>, bytes: u64) -> Result<Vec<u8>, ConnectionError> {
        let mut all = Vec::new();
        while let Some(work) = self.next(&mut works).await? {
            let Some(work::Item::Chunk(chunk)) = work.item else { break };
            all.extend_from_slice(&chunk);
            if all.len() as u64 >= bytes {
                break;
            }
        }
        if all.len() as u64 == bytes {
            Ok(all)
        } else {
            Err(ConnectionError::Lost(format!("the download ended after {} of {bytes} bytes", all.len())))
        }
    }
}

/// An answer of the server, if it arrives in time.
pub(super) async fn answered<T>(
    answer: impl Future<Output = Result<Response<T>, Status>>,
    failure: &TlsFailure,
) -> Result<T, ConnectionError> {
    match tokio::time::timeout(ANSWER_TIMEOUT, answer).await {
        Err(_) => Err(ConnectionError::Lost("the server does not answer".to_owned())),
        Ok(answer) => Ok(answer.map_err(|status| refused(&status, failure))?.into_inner()),
    }
}

/// Whether a host is this machine.
fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

/// A welcome whose texts can be printed; the model, the schema and the classes are read and compared as they are.
fn printable(welcome: wire::Welcome) -> wire::Welcome {
    wire::Welcome {
        name: plain(&welcome.name),
        strategy: plain(&welcome.strategy),
        mode: plain(&welcome.mode),
        version: plain(&welcome.version),
        ..welcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_contacted_without_tls() {
        for host in ["127.0.0.1", "127.0.0.2", "::1", "localhost"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["192.0.2.1", "0.0.0.0", "example.org", "localhost.example.org", ""] {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn a_lost_connection_is_described_in_one_plain_sentence() {
        let failure = TlsFailure::default();
        let reset = || std::io::Error::from(std::io::ErrorKind::ConnectionReset);
        let status = Status::from_error(Box::new(std::io::Error::other(reset())));
        let said = "the connection to the server failed: connection reset";
        assert_eq!(lost(&status, &failure), ConnectionError::Lost(said.to_owned()));
        let alone = lost(&Status::unavailable("closing"), &failure);
        assert_eq!(alone.to_string(), "the connection to the server failed: closing");
    }

    #[tokio::test]
    async fn nobody_at_an_address_is_described_in_one_plain_sentence() {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap().to_string();
        drop(free);
        let error = Connection::dial(&address, &Security::Claimed("0".to_owned())).await.err().unwrap();
        let text = error.to_string();
        let said = "the connection to the server failed: Connection refused (os error ";
        assert!(text.starts_with(said), "{text}");
    }

    #[tokio::test]
    async fn an_address_without_a_port_is_refused() {
        for address in ["127.0.0.1", "https://127.0.0.1:1", "127.0.0.1:1/path", "localhost:", "me@127.0.0.1"]
        {
            let error = Connection::dial(address, &Security::Claimed("0".to_owned())).await.err();
            assert_eq!(error, Some(ConnectionError::Address(address.to_owned())));
        }
    }
}
