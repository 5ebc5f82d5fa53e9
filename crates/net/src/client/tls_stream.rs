//! The byte stream under a client's connection; it remembers why TLS ended it.

use crate::client::Security;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_util::either::Either;

/// The last TLS failure on a connection; its type is lost between TLS and gRPC.
pub(crate) type TlsFailure = Arc<Mutex<Option<rustls::Error>>>;

/// A stream that remembers why TLS ended it.
pub(crate) struct ServerStream {
    transport: Either<Box<TlsStream<TcpStream>>, TcpStream>,
    failure: TlsFailure,
}

/// Connects, with a TLS handshake if security asks for it.
pub(crate) async fn connect(
    address: &str,
    host: String,
    security: Security,
    failure: TlsFailure,
) -> io::Result<ServerStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let transport = match security {
        Security::Claimed(_) => Either::Right(stream),
        Security::Tls(config) => {
            let name = ServerName::try_from(host).map_err(io::Error::other)?;
            let connected = TlsConnector::from(config).connect(name, stream).await;
            Either::Left(Box::new(connected.inspect_err(|error| remember(&failure, error))?))
        }
    };
    Ok(ServerStream { transport, failure })
}

fn remember(failure: &TlsFailure, error: &io::Error) {
    if let Some(error) = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>()) {
        *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.clone());
    }
}

impl AsyncRead for ServerStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Self { transport, failure } = self.get_mut();
        let read = Pin::new(transport).poll_read(cx, buf);
        if let Poll::Ready(Err(error)) = &read {
            remember(failure, error);
        }
        read
    }
}

impl AsyncWrite for ServerStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().transport).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().transport).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().transport).poll_shutdown(cx)
    }
}
