//! Where connections come in: TLS handshakes side by side, each with its time limit, and a code for each that fails.

use crate::event::{Event, Log};
use crate::tls;
use fedtvd_run::digest::sha256;
use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::atomic::AtomicBool;
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
use tonic::transport::server::Connected;

/// Most connections at a time; more wait in the system's queue.
const CONNECTIONS: usize = 8192;
/// Files that the server itself needs open, for updates, checkpoints and logs; connections leave it so many.
const OWN_FILES: u64 = 256;
/// Most connections of one certificate at a time.
const CONNECTIONS_EACH: usize = 128;
/// Most handshakes at a time.
const HANDSHAKES: usize = 1024;
/// How long a handshake may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Who is at the other end, as far as the connection tells.
#[derive(Clone, Debug)]
pub struct Guest {
    /// Its address.
    pub peer: String,
    /// SHA-256 of its certificate; none without TLS.
    pub certificate: Option<Arc<str>>,
    /// Whether it said on this connection what data it has: another process may have other data.
    pub surveyed: Arc<AtomicBool>,
    /// The job or model that is on its way out.
    answering: Arc<Mutex<Option<AbortHandle>>>,
}

impl Guest {
    fn new(peer: String, certificate: Option<Arc<str>>) -> Self {
        Self { peer, certificate, surveyed: Arc::default(), answering: Arc::default() }
    }

    /// Notes what is on its way out; a new question on the same connection ends the answer to the last.
    pub(crate) fn answering(&self, answer: AbortHandle) {
        let mut answering = self.answering.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = answering.replace(answer) {
            last.abort();
        }
    }
}

/// A connection that came through the door.
pub struct Visit {
    guest: Guest,
    line: Line,
    _place: OwnedSemaphorePermit,
    _stay: Option<Stay>,
}

/// How many connections each certificate has.
type Stays = Arc<Mutex<HashMap<Arc<str>, usize>>>;

/// One connection of a certificate, until it is dropped.
struct Stay {
    certificate: Arc<str>,
    all: Stays,
}

impl Stay {
    /// One more, unless there are enough.
    fn begin(all: &Stays, certificate: &Arc<str>) -> Option<Self> {
        let mut stays = all.lock().unwrap_or_else(PoisonError::into_inner);
        let count = stays.entry(Arc::clone(certificate)).or_default();
        if *count == CONNECTIONS_EACH {
            return None;
        }
        *count += 1;
        drop(stays);
        Some(Self { certificate: Arc::clone(certificate), all: Arc::clone(all) })
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        let mut stays = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = stays.get_mut(&self.certificate) {
            *count -= 1;
            if *count == 0 {
                stays.remove(&self.certificate);
            }
        }
    }
}

enum Line {
    Tls(Box<TlsStream<TcpStream>>),
    Plain(TcpStream),
}

/// Takes connections until the receiver is dropped.
pub fn incoming(
    listener: TcpListener,
    config: Option<Arc<rustls::ServerConfig>>,
    log: Log,
) -> ReceiverStream<io::Result<Visit>> {
    let (sender, receiver) = mpsc::channel(HANDSHAKES);
    tokio::spawn(async move {
        let connections = Arc::new(Semaphore::new(places()));
        let handshakes = Arc::new(Semaphore::new(HANDSHAKES));
        let acceptor = config.map(TlsAcceptor::from);
        let stays = Stays::default();
        loop {
            let place = Arc::clone(&connections).acquire_owned().await;
            let Ok(place) = place else { return };
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = sender.closed() => return,
            };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of file descriptors, or a guest that left at once: others are still welcome.
                    log(&Event::Full { why: error.to_string() });
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            let _ = stream.set_nodelay(true);
            let (acceptor, sender, log) = (acceptor.clone(), sender.clone(), Arc::clone(&log));
            let stays = Arc::clone(&stays);
            let Ok(turn) = Arc::clone(&handshakes).acquire_owned().await else { return };
            tokio::spawn(async move {
                let peer = peer.to_string();
                let visit = match acceptor {
                    None => {
                        let guest = Guest::new(peer, None);
                        Some(Visit { guest, line: Line::Plain(stream), _place: place, _stay: None })
                    }
                    Some(acceptor) => greet(&acceptor, stream, peer, (place, turn), &stays, &log).await,
                };
                if let Some(visit) = visit {
                    let _ = sender.send(Ok(visit)).await;
                }
            });
        }
    });
    ReceiverStream::new(receiver)
}

/// How many connections there may be, with as many open files as the system allows.
#[cfg(unix)]
fn places() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // Where it may not be raised, it stays as it is.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(files.saturating_sub(OWN_FILES).max(files / 2))
        .unwrap_or(CONNECTIONS)
        .clamp(1, CONNECTIONS)
}

/// How many connections there may be.
#[cfg(not(unix))]
fn places() -> usize {
    CONNECTIONS
}

async fn greet(
    acceptor: &TlsAcceptor,
    stream: TcpStream,
    peer: String,
    (place, turn): (OwnedSemaphorePermit, OwnedSemaphorePermit),
    stays: &Stays,
    log: &Log,
) -> Option<Visit> {
    let turned_away = |peer: String, code, why| log(&Event::Handshake { peer, code, why });
    let greeted = tokio::time::timeout(PATIENCE, acceptor.accept(stream).into_fallible()).await;
    // From here on nothing is computed: others may begin.
    drop(turn);
    match greeted {
        Err(_) => {
            turned_away(peer, "tls-timeout", format!("no handshake within {} s", PATIENCE.as_secs()));
            None
        }
        Ok(Err((error, stream))) => {
            let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
            let (code, why) = cause.map_or_else(|| ("tls-failed", error.to_string()), tls::refused);
            turned_away(peer, code, why);
            let _ = tokio::time::timeout(PATIENCE, hear_out(stream)).await;
            None
        }
        Ok(Ok(stream)) => {
            let certificate = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
            let certificate: Option<Arc<str>> = certificate.map(|certificate| Arc::from(sha256(certificate)));
            let stay = certificate.as_ref().map(|certificate| Stay::begin(stays, certificate));
            if let Some(None) = stay {
                let why = format!("this certificate has {CONNECTIONS_EACH} connections already");
                turned_away(peer, "tls-too-many", why);
                return None;
            }
            let guest = Guest::new(peer, certificate);
            Some(Visit { guest, line: Line::Tls(Box::new(stream)), _place: place, _stay: stay.flatten() })
        }
    }
}

/// Lets the other side finish its sentence: a connection closed with unread bytes is reset, and the alert that says
/// why would be lost.
async fn hear_out(mut stream: TcpStream) {
    let _ = stream.shutdown().await;
    let mut rest = [0; 1024];
    let mut heard = 0;
    while let Ok(more @ 1..) = stream.read(&mut rest).await {
        heard += more;
        if heard > 64 << 10 {
            return;
        }
    }
}

impl Connected for Visit {
    type ConnectInfo = Guest;
    fn connect_info(&self) -> Guest {
        self.guest.clone()
    }
}

impl AsyncRead for Visit {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().line {
            Line::Tls(stream) => Pin::new(stream.as_mut()).poll_read(cx, buf),
            Line::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Visit {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().line {
            Line::Tls(stream) => Pin::new(stream.as_mut()).poll_write(cx, bytes),
            Line::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().line {
            Line::Tls(stream) => Pin::new(stream.as_mut()).poll_flush(cx),
            Line::Plain(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().line {
            Line::Tls(stream) => Pin::new(stream.as_mut()).poll_shutdown(cx),
            Line::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
