//! The listening server: its threads, its address, its limits.

use crate::allow::{AllowError, Watched};
use crate::caller::Identity;
use crate::door;
use crate::event::Event;
use crate::hall::Hall;
use crate::service::Service;
use crate::tls::{self, TlsError};
use fedtvd_run::digest::sha256;
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

/// A server at work; it ends when this is dropped.
pub struct Server {
    runtime: Option<Runtime>,
    address: SocketAddr,
    /// Dropped, it ends the taking of connections.
    open: Option<oneshot::Sender<()>>,
    serving: Option<JoinHandle<()>>,
}

/// How the server shows who it is and knows who asks.
pub struct Keys {
    identity: Identity,
    tls: Option<ServerConfig>,
}

/// Why certificates cannot be used.
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
    /// Those of an authority's folder.
    pub fn open(folder: &Path) -> Result<Self, KeysError> {
        let tls = tls::server(folder)?;
        let own = tls::chain(&folder.join("server.pem"))?;
        let operator = own.first().map_or_else(String::new, |certificate| sha256(certificate));
        let list = Arc::new(Watched::new(folder.join("clients.toml"))?);
        Ok(Self { identity: Identity::Certificates { list, operator }, tls: Some(tls) })
    }

    /// None: clients are who they say they are. On one machine only.
    pub fn none() -> Self {
        Self { identity: Identity::Claimed, tls: None }
    }
}

/// Silence after which the other side is asked whether it is still there, and after which it is not.
const ALIVE: Duration = Duration::from_secs(20);
/// How long requests that are being answered may take at the end.
const LAST: Duration = Duration::from_secs(2);
/// Bytes that a client may send ahead, in one upload and in all of its connection.
const AHEAD: u32 = 64 << 10;

impl Server {
    /// Listens for clients of this hall, and reads so many of their uploads at a time.
    pub fn start(hall: &Arc<Hall>, keys: Keys, listener: TcpListener, uploads: usize) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let address = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        let service = Service::new(Arc::clone(hall), keys.identity, uploads);
        let log = Arc::clone(&hall.log);
        let inside = runtime.enter();
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let incoming = door::incoming(listener, keys.tls.map(Arc::new), Arc::clone(&log));
        drop(inside);
        runtime.spawn(service.clone().watch());
        let (open, closed) = oneshot::channel::<()>();
        let serving = runtime.spawn(async move {
            let served = tonic::transport::Server::builder()
                .http2_keepalive_interval(Some(ALIVE))
                .http2_keepalive_timeout(Some(ALIVE))
                .initial_stream_window_size(AHEAD)
                .initial_connection_window_size(2 * AHEAD)
                .max_concurrent_streams(16)
                .http2_max_header_list_size(16 << 10)
                .serve_with_incoming_shutdown(service, incoming, async {
                    let _ = closed.await;
                })
                .await;
            if let Err(error) = served {
                log(&Event::Note { note: format!("the server takes no more connections: {error}") });
            }
        });
        Ok(Self { runtime: Some(runtime), address, open: Some(open), serving: Some(serving) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    /// Finishes what is being answered, within a moment.
    fn drop(&mut self) {
        drop(self.open.take());
        if let (Some(runtime), Some(serving)) = (self.runtime.take(), self.serving.take()) {
            // A thread of its own, since whoever drops this may be asynchronous itself.
            let ending = std::thread::spawn(move || {
                let _ = runtime.block_on(async { tokio::time::timeout(LAST, serving).await });
                runtime.shutdown_timeout(LAST);
            });
            let _ = ending.join();
        }
    }
}
