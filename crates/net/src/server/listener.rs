//! The listening server: its threads, address and limits.

use crate::federation::{Coordinator, Event};
use crate::identity::AllowError;
use crate::identity::peer_identity::Authentication;
use crate::identity::tls::{self, TlsError};
use crate::identity::watched_list::Watched;
use crate::server::connections;
use crate::server::open_connections::OpenConnections;
use crate::server::service::Guard;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_rustls::rustls::ServerConfig;

/// A running server; dropping it shuts it down.
pub struct Server {
    pub(super) runtime: Option<Runtime>,
    pub(super) guard: Guard,
    address: SocketAddr,
    /// Dropping it stops the server from accepting connections.
    open: Option<oneshot::Sender<()>>,
    serving: Option<JoinHandle<()>>,
}

/// How the server proves its identity and identifies clients.
pub struct Keys {
    authentication: Authentication,
    tls: Option<ServerConfig>,
}

/// Why keys cannot be loaded.
#[derive(Debug, Error)]
pub enum KeysError {
    /// The certificates.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The list of clients.
    #[error(transparent)]
    Allow(#[from] AllowError),
}

impl Keys {
    /// The keys in an authority's folder.
    pub fn open(folder: &Path) -> Result<Self, KeysError> {
        let own = Arc::new(tls::server_certificate(folder)?);
        let tls = tls::server_with(folder, Arc::clone(&own))?;
        let list = Arc::new(Watched::new(folder.join("clients.toml"))?);
        Ok(Self { authentication: Authentication::Certificates { list, own }, tls: Some(tls) })
    }

    /// No keys: clients are who they claim to be. On one machine only.
    pub fn none() -> Self {
        Self { authentication: Authentication::Claimed, tls: None }
    }
}

/// HTTP/2 keep-alive interval and timeout.
const KEEP_ALIVE: Duration = Duration::from_secs(20);
/// Time that open requests get to finish during shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);
/// HTTP/2 flow-control window of a stream, and of a connection: how much may be under way to the server. Larger ones make
/// long lines faster, and take more memory for concurrent uploads (`bench/README.md`).
const WINDOW: u32 = 512 << 10;
/// Maximum number of concurrent requests on a connection: a client needs one, and each can fill buffers.
const STREAMS: u32 = 4;

impl Server {
    /// Serves the clients of this coordinator, and reads at most `uploads` of their updates at a time.
    pub fn start(
        coordinator: &Arc<Coordinator>,
        keys: Keys,
        listener: TcpListener,
        uploads: usize,
    ) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let address = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        let connections = Arc::<OpenConnections>::default();
        let service =
            Guard::new(Arc::clone(coordinator), keys.authentication, uploads, Arc::clone(&connections));
        let log = Arc::clone(&coordinator.log);
        let inside = runtime.enter();
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let tls = keys.tls.map(Arc::new);
        let incoming = connections::incoming(listener, tls, connections, Arc::clone(&log));
        drop(inside);
        runtime.spawn(service.clone().watch());
        let guard = service.clone();
        let (open, closed) = oneshot::channel::<()>();
        let serving = runtime.spawn(async move {
            let served = tonic::transport::Server::builder()
                .http2_keepalive_interval(Some(KEEP_ALIVE))
                .http2_keepalive_timeout(Some(KEEP_ALIVE))
                .initial_stream_window_size(WINDOW)
                .initial_connection_window_size(WINDOW)
                .max_concurrent_streams(STREAMS)
                .http2_max_header_list_size(16 << 10)
                .serve_with_incoming_shutdown(service, incoming, async {
                    let _ = closed.await;
                })
                .await;
            if let Err(error) = served {
                log(&Event::Note { note: format!("the server accepts no more connections: {error}") });
            }
        });
        Ok(Self { runtime: Some(runtime), guard, address, open: Some(open), serving: Some(serving) })
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Reads the list of clients again, whether or not its file seems to have changed, and logs the result.
    pub fn reloader(&self) -> impl Fn() + Send + 'static {
        let guard = self.guard.clone();
        move || guard.reload()
    }
}

impl Drop for Server {
    /// Lets open requests finish, within a short time.
    fn drop(&mut self) {
        drop(self.open.take());
        if let (Some(runtime), Some(serving)) = (self.runtime.take(), self.serving.take()) {
            // On its own thread, because a runtime must not block inside another one.
            let ending = std::thread::spawn(move || {
                let _ = runtime.block_on(async { tokio::time::timeout(SHUTDOWN_TIMEOUT, serving).await });
                runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
            });
            let _ = ending.join();
        }
    }
}
