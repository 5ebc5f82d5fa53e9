//! A proxy between client and server that counts what clients send, and can cut their connections in the middle.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// A proxy on a free loopback port.
pub(crate) struct Proxy {
    pub(crate) address: String,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// Bytes that clients have sent, over all connections.
    sent: AtomicU64,
    /// Both directions of a connection are cut before this number of bytes is exceeded.
    most: AtomicU64,
}

impl Proxy {
    /// A proxy in front of this server that cuts nothing.
    pub(crate) async fn before(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let state = Arc::new(State { most: AtomicU64::new(u64::MAX), ..State::default() });
        let (server, shared) = (server.to_owned(), Arc::clone(&state));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if let Ok(server) = TcpStream::connect(&server).await {
                    tokio::spawn(forward(client, server, Arc::clone(&shared)));
                }
            }
        });
        Self { address, state }
    }

    /// Bytes that clients have sent so far.
    pub(crate) fn sent(&self) -> u64 {
        self.state.sent.load(SeqCst)
    }

    /// Cuts connections when clients have sent this many bytes more.
    pub(crate) fn cut_after(&self, bytes: u64) {
        self.state.most.store(self.sent() + bytes, SeqCst);
    }

    /// Cuts nothing any more.
    pub(crate) fn mend(&self) {
        self.state.most.store(u64::MAX, SeqCst);
    }
}

async fn forward(mut client: TcpStream, mut server: TcpStream, state: Arc<State>) {
    let (mut up, mut down) = (vec![0; 4096], vec![0; 4096]);
    loop {
        let forwarded = tokio::select! {
            read = client.read(&mut up) => match read {
                Ok(read @ 1..) if state.sent.fetch_add(read as u64, SeqCst) + read as u64 <= state.most.load(SeqCst) => {
                    server.write_all(&up[..read]).await
                }
                _ => {
                    // The server receives what was forwarded before.
                    drop(client);
                    let _ = server.shutdown().await;
                    while let Ok(1..) = server.read(&mut down).await {}
                    return;
                }
            },
            read = server.read(&mut down) => match read {
                Ok(read @ 1..) => client.write_all(&down[..read]).await,
                _ => return,
            },
        };
        if forwarded.is_err() {
            return;
        }
    }
}
