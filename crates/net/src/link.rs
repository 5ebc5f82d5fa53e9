//! A client's connection: it dials, speaks the protocol, and says in words why something was refused.

use crate::line::{Heard, connect};
use crate::tls::{self, TlsError};
use crate::wire::federation_client::FederationClient;
use crate::wire::{
    self, CHUNK, CLIENT, CODE, LARGEST_MESSAGE, PROTOCOL, VERSION, VersionMismatch, upload_reply,
    upload_request, work,
};
use fedtvd_core::trainer::Evaluation;
use hyper_util::rt::TokioIo;
use prost::bytes::Bytes;
use std::error::Error as StdError;
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use thiserror::Error;
use tokio::sync::mpsc;
use tokio_rustls::rustls::ClientConfig;
use tokio_stream::wrappers::ReceiverStream;
use tonic::metadata::MetadataValue;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Response, Status, Streaming};

/// How a client proves who it is.
#[derive(Clone)]
pub enum Security {
    /// By its certificate.
    Tls(Arc<ClientConfig>),
    /// Not at all: it says who it is. On one machine only.
    Claimed(String),
}

impl Security {
    /// A client's, from its folder.
    pub fn client(folder: &Path) -> Result<Self, TlsError> {
        Ok(Self::Tls(Arc::new(tls::client(folder)?)))
    }

    /// The operator's, from the authority's folder.
    pub fn operator(folder: &Path) -> Result<Self, TlsError> {
        Ok(Self::Tls(Arc::new(tls::operator(folder)?)))
    }
}

/// Why the server did not do what was asked.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum LinkError {
    /// It refused.
    #[error("{why} [{code}]")]
    Refused {
        /// For scripts.
        code: String,
        /// For people.
        why: String,
        /// Whether the same may succeed later.
        passing: bool,
    },
    /// The handshake failed for a reason that time does not heal.
    #[error("{why} [{code}]")]
    Tls {
        /// For scripts.
        code: &'static str,
        /// For people.
        why: String,
    },
    /// The server speaks another version of the protocol.
    #[error(transparent)]
    Version(#[from] VersionMismatch),
    /// An address that is none.
    #[error("{0} is no address; write HOST:PORT")]
    Address(String),
    /// Without TLS, to another machine.
    #[error("{0} may be another machine; without TLS only 127.0.0.1, [::1] and localhost are dialled")]
    Elsewhere(String),
    /// The connection failed.
    #[error("{0}")]
    Lost(String),
}

/// What a client is to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Task {
    /// Say what your labels are like.
    Survey(wire::Survey),
    /// Train: a job's bytes.
    Train(u32, Vec<u8>),
    /// Judge: a model's bytes.
    Judge(u32, Vec<u8>),
    /// Ask again.
    Wait,
    /// There is nothing more.
    Finished(wire::Finished),
}

/// How long the server may take to say something.
const PATIENCE: Duration = Duration::from_secs(90);
const DIALLING: Duration = Duration::from_secs(10);
const ALIVE: Duration = Duration::from_secs(20);

/// A connection to the server.
pub struct Link {
    client: FederationClient<Channel>,
    said: Option<MetadataValue<tonic::metadata::Ascii>>,
    heard: Heard,
}

impl Link {
    /// Dials.
    pub async fn dial(address: &str, security: &Security) -> Result<Self, LinkError> {
        Self::dial_as(address, None, security).await
    }

    /// Dials a server that must show this name, where it is not the host's.
    pub(crate) async fn dial_as(
        address: &str,
        name: Option<&str>,
        security: &Security,
    ) -> Result<Self, LinkError> {
        let wrong = || LinkError::Address(address.to_owned());
        let endpoint = Endpoint::from_shared(format!("http://{address}")).map_err(|_| wrong())?;
        let host = endpoint.uri().host().ok_or_else(wrong)?.trim_matches(['[', ']']).to_owned();
        let authority = endpoint.uri().authority();
        if authority.is_none_or(|own| own.as_str() != address || own.port_u16().is_none()) {
            return Err(wrong());
        }
        if matches!(security, Security::Claimed(_)) && !here(&host) {
            return Err(LinkError::Elsewhere(address.to_owned()));
        }
        let endpoint = endpoint
            .connect_timeout(DIALLING)
            .http2_keep_alive_interval(ALIVE)
            .keep_alive_timeout(ALIVE)
            .keep_alive_while_idle(true);
        let heard = Heard::default();
        let said = match security {
            Security::Claimed(said) => Some(said.parse().map_err(|_| wrong())?),
            Security::Tls(_) => None,
        };
        let host = name.map_or(host, str::to_owned);
        let dialled = address.to_owned();
        let (security, ear) = (security.clone(), Arc::clone(&heard));
        let connector = tower::service_fn(move |_| {
            let (address, host) = (dialled.clone(), host.clone());
            let (security, heard) = (security.clone(), Arc::clone(&ear));
            async move { connect(&address, host, security, heard).await.map(TokioIo::new) }
        });
        let channel = endpoint.connect_with_connector(connector).await;
        let channel = channel.map_err(|error| trouble(&error, &heard))?;
        let client = FederationClient::new(channel).max_decoding_message_size(LARGEST_MESSAGE);
        Ok(Self { client, said, heard })
    }

    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(said) = &self.said {
            request.metadata_mut().insert(CLIENT, said.clone());
        }
        request
    }

    /// Says hello.
    pub async fn hello(&mut self) -> Result<wire::Welcome, LinkError> {
        let version = VERSION.to_owned();
        let request = self.request(wire::HelloRequest { protocol: PROTOCOL, version });
        let welcome = answered(self.client.hello(request), &self.heard).await?;
        VersionMismatch::at_client(welcome.protocol, &welcome.version)?;
        Ok(welcome)
    }

    /// Says once what the site has.
    pub async fn enrol(&mut self, enrolment: wire::Enrolment) -> Result<(), LinkError> {
        let request = self.request(enrolment);
        answered(self.client.enrol(request), &self.heard).await.map(|wire::Empty {}| ())
    }

    /// Says that there will be no update.
    pub async fn fail(&mut self, run: &str, round: u32, why: String) -> Result<(), LinkError> {
        let request = self.request(wire::Failure { run: run.to_owned(), round, why });
        answered(self.client.fail(request), &self.heard).await.map(|wire::Empty {}| ())
    }

    /// Sends what the hold-out says of a model.
    pub async fn judge(&mut self, run: &str, round: u32, found: Evaluation) -> Result<(), LinkError> {
        let Evaluation { loss, confusion } = found;
        let request = self.request(wire::Counts { run: run.to_owned(), round, loss, confusion });
        answered(self.client.judge(request), &self.heard).await.map(|wire::Empty {}| ())
    }

    /// How the federation stands, as JSON; for the operator.
    pub async fn status(&mut self) -> Result<String, LinkError> {
        let request = self.request(wire::StatusRequest {});
        answered(self.client.status(request), &self.heard).await.map(|reply| reply.json)
    }

    /// What there is to do; waits a while for something.
    pub async fn pull(&mut self, run: &str) -> Result<Task, LinkError> {
        let request = self.request(wire::PullRequest { run: run.to_owned() });
        let mut works = answered(self.client.pull(request), &self.heard).await?;
        match self.next(&mut works).await?.and_then(|work| work.item) {
            Some(work::Item::Survey(survey)) => Ok(Task::Survey(survey)),
            Some(work::Item::Train(wire::Transfer { round, bytes })) => {
                Ok(Task::Train(round, self.chunks(works, bytes).await?))
            }
            Some(work::Item::Evaluate(wire::Transfer { round, bytes })) => {
                Ok(Task::Judge(round, self.chunks(works, bytes).await?))
            }
            Some(work::Item::Finished(finished)) => Ok(Task::Finished(finished)),
            Some(work::Item::Wait(_)) => Ok(Task::Wait),
            Some(work::Item::Chunk(_)) | None => Err(LinkError::Lost("the server broke off".to_owned())),
        }
    }

    async fn next<T>(&self, stream: &mut Streaming<T>) -> Result<Option<T>, LinkError> {
        match tokio::time::timeout(PATIENCE, stream.message()).await {
            Err(_) => Err(LinkError::Lost("the server fell silent".to_owned())),
            Ok(message) => message.map_err(|status| refused(&status, &self.heard)),
        }
    }

    async fn chunks(&self, mut works: Streaming<wire::Work>, bytes: u64) -> Result<Vec<u8>, LinkError> {
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
            Err(LinkError::Lost(format!("{} of {bytes} bytes came", all.len())))
        }
    }

    /// Sends an update; when this returns, it is on the server's disk.
    pub async fn upload(&mut self, ticket: wire::Ticket, bytes: Bytes) -> Result<wire::Receipt, LinkError> {
        let message = |content| wire::UploadRequest { content: Some(content) };
        let (sender, receiver) = mpsc::channel(2);
        let _ = sender.send(message(upload_request::Content::Ticket(ticket))).await;
        let request = self.request(ReceiverStream::new(receiver));
        let mut replies = answered(self.client.upload(request), &self.heard).await?;
        let mut sender = Some(sender);
        loop {
            // Without a time limit: a server with many uploads at hand lets others wait.
            let next = replies.message().await.map_err(|status| refused(&status, &self.heard))?;
            match next.and_then(|reply| reply.step) {
                Some(upload_reply::Step::Receipt(receipt)) => return Ok(receipt),
                Some(upload_reply::Step::Proceed(_)) => {
                    let Some(sender) = sender.take() else { continue };
                    for start in (0..bytes.len()).step_by(CHUNK) {
                        let chunk = bytes.slice(start..bytes.len().min(start + CHUNK));
                        if sender.send(message(upload_request::Content::Chunk(chunk))).await.is_err() {
                            // The server has heard enough and says why.
                            break;
                        }
                    }
                }
                None => return Err(LinkError::Lost("the server gave no receipt".to_owned())),
            }
        }
    }
}

/// An answer of the server, if it comes in time.
async fn answered<T>(
    answer: impl Future<Output = Result<Response<T>, Status>>,
    heard: &Heard,
) -> Result<T, LinkError> {
    match tokio::time::timeout(PATIENCE, answer).await {
        Err(_) => Err(LinkError::Lost("the server does not answer".to_owned())),
        Ok(answer) => Ok(answer.map_err(|status| refused(&status, heard))?.into_inner()),
    }
}

fn refused(status: &Status, heard: &Heard) -> LinkError {
    match status.metadata().get(CODE).and_then(|code| code.to_str().ok()) {
        Some(code) => LinkError::Refused {
            code: code.to_owned(),
            why: status.message().to_owned(),
            passing: status.code() == tonic::Code::Unavailable,
        },
        None => trouble(status, heard),
    }
}

/// Whether a host is this machine.
fn here(host: &str) -> bool {
    host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

fn trouble(error: &(dyn StdError + 'static), heard: &Heard) -> LinkError {
    if let Some(error) = &*heard.lock().unwrap_or_else(PoisonError::into_inner) {
        let (code, why) = tls::declined(error);
        return LinkError::Tls { code, why };
    }
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    LinkError::Lost(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_dialled_without_tls() {
        for host in ["127.0.0.1", "127.0.0.2", "::1", "localhost"] {
            assert!(here(host), "{host}");
        }
        for host in ["192.0.2.1", "0.0.0.0", "example.org", "localhost.example.org", ""] {
            assert!(!here(host), "{host}");
        }
    }

    #[tokio::test]
    async fn an_address_without_a_port_is_none() {
        for address in ["127.0.0.1", "https://127.0.0.1:1", "127.0.0.1:1/path", "localhost:", "me@127.0.0.1"]
        {
            let error = Link::dial(address, &Security::Claimed("0".to_owned())).await.err();
            assert_eq!(error, Some(LinkError::Address(address.to_owned())));
        }
    }
}
