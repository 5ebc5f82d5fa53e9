//! Accepts connections: concurrent TLS handshakes, each with a timeout, and a code for each that fails.

use crate::federation::{Event, Log};
use crate::identity::tls;
use crate::server::handshake_limit::{HandshakeLimit, Pending};
use crate::server::open_connections::{CONNECTIONS_EACH, OpenConnections, Slot};
use fedtvd_run::directory::sha256;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::AbortHandle;
use tokio_rustls::server::TlsStream;
use tokio_rustls::{TlsAcceptor, rustls};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::either::Either;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::transport::server::Connected;

/// Maximum number of open connections; more wait in the system's queue.
const CONNECTIONS: usize = 8192;
/// File descriptors reserved for the server's own files (updates, checkpoints and logs) and for monitoring.
const OWN_FILES: u64 = 384;
/// Accepted connections that wait until they are served.
const ACCEPTED: usize = 1024;
/// Share of all connections that may wait for their handshakes at one address: one of this many.
const PENDING_SHARE: usize = 4;
/// Timeout of a handshake, with the time that it waits for others of its address.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// Time within which a new connection must send its first request.
const FIRST_REQUEST_TIMEOUT: Duration = Duration::from_secs(20);

/// The other end of a connection, as far as the connection itself shows.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    /// Its address.
    pub(crate) address: String,
    /// SHA-256 of its certificate; none without TLS.
    pub(crate) certificate: Option<Arc<str>>,
    /// Whether it has enrolled on this connection: another process of the same client may have other data.
    pub(crate) surveyed: Arc<AtomicBool>,
    /// Whether it has sent a request.
    pub(crate) requested: Arc<AtomicBool>,
    /// The task that sends it a job or a model.
    sending: Arc<Mutex<Option<AbortHandle>>>,
}

impl Peer {
    fn new(address: String, certificate: Option<Arc<str>>) -> Self {
        let (surveyed, requested, sending) = Default::default();
        Self { address, certificate, surveyed, requested, sending }
    }

    /// Registers the task that sends a job or a model; a new request on the same connection aborts the previous one.
    pub(crate) fn sending(&self, task: AbortHandle) {
        let mut sending = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(previous) = sending.replace(task) {
            previous.abort();
        }
    }
}

/// The byte stream of an accepted connection.
pub(crate) struct PeerStream {
    peer: Peer,
    transport: Transport,
    _permit: OwnedSemaphorePermit,
    /// The place among the connections of its certificate; none without TLS.
    _slot: Option<Slot>,
    /// Cancelled when the connection must end.
    closed: CancellationToken,
    /// Wakes whoever reads.
    closing: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl PeerStream {
    fn new(peer: Peer, transport: Transport, permit: OwnedSemaphorePermit, slot: Option<Slot>) -> Self {
        let closed = slot.as_ref().map_or_else(CancellationToken::new, Slot::closed);
        let closing = Box::pin(closed.clone().cancelled_owned());
        Self { peer, transport, _permit: permit, _slot: slot, closed, closing }
    }

    /// Closes the connection if no request arrives in time.
    fn expect_request(&self, log: &Log) {
        let (peer, closed, log) = (self.peer.clone(), self.closed.clone(), Arc::clone(log));
        tokio::spawn(async move {
            let _ = tokio::time::timeout(FIRST_REQUEST_TIMEOUT, closed.cancelled()).await;
            if !peer.requested.load(Ordering::Relaxed) && !closed.is_cancelled() {
                closed.cancel();
                let why = format!("no request within {} s", FIRST_REQUEST_TIMEOUT.as_secs());
                log(&Event::Handshake { peer: peer.address, code: "no-request", why });
            }
        });
    }

    /// Fails once the connection was closed from outside.
    fn check(&self) -> io::Result<()> {
        if self.closed.is_cancelled() {
            return Err(io::Error::new(io::ErrorKind::ConnectionAborted, "the server closed the connection"));
        }
        Ok(())
    }
}

impl Drop for PeerStream {
    fn drop(&mut self) {
        // Whoever waits for its first request need not.
        self.closed.cancel();
    }
}

/// With TLS, or without.
type Transport = Either<Box<TlsStream<TcpStream>>, TcpStream>;

/// Accepts connections until the receiver is dropped.
pub(crate) fn incoming(
    listener: TcpListener,
    config: Option<Arc<rustls::ServerConfig>>,
    slots: Arc<OpenConnections>,
    log: Log,
) -> ReceiverStream<io::Result<PeerStream>> {
    let (sender, receiver) = mpsc::channel(ACCEPTED);
    tokio::spawn(async move {
        let most = connection_limit();
        let connections = Arc::new(Semaphore::new(most));
        let handshakes = HandshakeLimit::new((most / PENDING_SHARE).max(1));
        let acceptor = config.map(TlsAcceptor::from);
        loop {
            let Ok(permit) = Arc::clone(&connections).acquire_owned().await else { return };
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = sender.closed() => return,
            };
            let (stream, address) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of file descriptors, or a peer that left at once: others are still accepted.
                    log(&Event::Full { why: error.to_string() });
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            let _ = stream.set_nodelay(true);
            let (acceptor, sender, log) = (acceptor.clone(), sender.clone(), Arc::clone(&log));
            let slots = Arc::clone(&slots);
            let Some(pending) = handshakes.enter(address.ip()) else {
                let why = "too many connections of this address wait for their handshakes".to_owned();
                log(&Event::Handshake { peer: address.to_string(), code: "tls-busy", why });
                continue;
            };
            tokio::spawn(async move {
                let address = address.to_string();
                let connection = match acceptor {
                    None => {
                        let peer = Peer::new(address, None);
                        let transport = Either::Right(stream);
                        Some(PeerStream::new(peer, transport, permit, None))
                    }
                    Some(acceptor) => {
                        shake_hands(&acceptor, stream, address, (permit, pending), &slots, &log).await
                    }
                };
                if let Some(connection) = connection {
                    connection.expect_request(&log);
                    let _ = sender.send(Ok(connection)).await;
                }
            });
        }
    });
    ReceiverStream::new(receiver)
}

/// Maximum number of connections, after the limit of open files was raised as far as the system allows.
#[cfg(unix)]
fn connection_limit() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // Where it may not be raised, it stays as it is.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(files.saturating_sub(OWN_FILES).max(files / 2))
        .unwrap_or(CONNECTIONS)
        .clamp(1, CONNECTIONS)
}

/// Maximum number of connections.
#[cfg(not(unix))]
fn connection_limit() -> usize {
    CONNECTIONS
}

async fn shake_hands(
    acceptor: &TlsAcceptor,
    stream: TcpStream,
    address: String,
    (permit, pending): (OwnedSemaphorePermit, Pending),
    slots: &Arc<OpenConnections>,
    log: &Log,
) -> Option<PeerStream> {
    let refused = |peer: String, code, why| log(&Event::Handshake { peer, code, why });
    let shaking = async {
        let _turn = pending.turn().await;
        acceptor.accept(stream).into_fallible().await
    };
    let accepted = tokio::time::timeout(HANDSHAKE_TIMEOUT, shaking).await;
    // From here on nothing is computed: other handshakes may begin.
    drop(pending);
    match accepted {
        Err(_) => {
            let seconds = HANDSHAKE_TIMEOUT.as_secs();
            refused(address, "tls-timeout", format!("no handshake within {seconds} s"));
            None
        }
        Ok(Err((error, stream))) => {
            let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
            let (code, why) = cause.map_or_else(|| ("tls-failed", error.to_string()), tls::refused);
            refused(address, code, why);
            let _ = tokio::time::timeout(HANDSHAKE_TIMEOUT, drain(stream)).await;
            None
        }
        Ok(Ok(stream)) => {
            let certificate = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
            let certificate: Option<Arc<str>> = certificate.map(|certificate| Arc::from(sha256(certificate)));
            let slot = certificate.as_ref().map(|certificate| slots.open(certificate));
            if let Some((_, true)) = slot {
                let why = format!(
                    "this certificate had {CONNECTIONS_EACH} connections; the oldest was closed for this one"
                );
                refused(address.clone(), "tls-too-many", why);
            }
            let (peer, transport) = (Peer::new(address, certificate), Either::Left(Box::new(stream)));
            Some(PeerStream::new(peer, transport, permit, slot.map(|(slot, _)| slot)))
        }
    }
}

/// Reads what the peer still sends: a connection closed with unread bytes is reset, and the alert that says why it was
/// refused would be lost.
async fn drain(mut stream: TcpStream) {
    let _ = stream.shutdown().await;
    let mut buffer = [0; 1024];
    let mut drained = 0;
    while let Ok(more @ 1..) = stream.read(&mut buffer).await {
        drained += more;
        if drained > 64 << 10 {
            return;
        }
    }
}

impl Connected for PeerStream {
    type ConnectInfo = Peer;
    fn connect_info(&self) -> Peer {
        self.peer.clone()
    }
}

impl AsyncRead for PeerStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let stream = self.get_mut();
        if !stream.closed.is_cancelled() {
            // Registers for the wake-up.
            let _ = stream.closing.as_mut().poll(cx);
        }
        stream.check()?;
        Pin::new(&mut stream.transport).poll_read(cx, buf)
    }
}

impl AsyncWrite for PeerStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.get_mut().transport).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().transport).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().transport).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio_stream::StreamExt as _;

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_never_sends_a_request_is_closed_and_others_stay_open() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let codes = Arc::new(Mutex::new(Vec::new()));
        let log: Log = {
            let codes = Arc::clone(&codes);
            Arc::new(move |event: &Event| {
                if let Event::Handshake { code, .. } = event {
                    codes.lock().unwrap().push(*code);
                }
            })
        };
        let mut incoming = incoming(listener, None, Arc::default(), log);
        let _silent = TcpStream::connect(address).await.unwrap();
        let mut silent = incoming.next().await.unwrap().unwrap();
        let _asking = TcpStream::connect(address).await.unwrap();
        let asking = incoming.next().await.unwrap().unwrap();
        asking.peer.requested.store(true, Ordering::Relaxed);
        let error = silent.read_u8().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionAborted);
        tokio::time::sleep(FIRST_REQUEST_TIMEOUT).await;
        assert!(asking.check().is_ok());
        assert_eq!(*codes.lock().unwrap(), ["no-request"]);
    }
}
