//! The stream under a client's connection; it remembers why TLS ended it.

use crate::link::Security;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls;
use tokio_rustls::rustls::pki_types::ServerName;

/// The last TLS failure on a connection; between TLS and gRPC its type is lost.
pub(crate) type Heard = Arc<Mutex<Option<rustls::Error>>>;

/// A stream that remembers why TLS ended it.
pub(crate) struct Line {
    inner: Inner,
    heard: Heard,
}

enum Inner {
    Tls(Box<tokio_rustls::client::TlsStream<TcpStream>>),
    Plain(TcpStream),
}

/// Dials, and greets by TLS where that is asked for.
pub(crate) async fn connect(
    address: &str,
    host: String,
    security: Security,
    heard: Heard,
) -> io::Result<Line> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let inner = match security {
        Security::Claimed(_) => Inner::Plain(stream),
        Security::Tls(config) => {
            let name = ServerName::try_from(host).map_err(io::Error::other)?;
            let dialled = TlsConnector::from(config).connect(name, stream).await;
            Inner::Tls(Box::new(dialled.inspect_err(|error| note(&heard, error))?))
        }
    };
    Ok(Line { inner, heard })
}

fn note(heard: &Heard, error: &io::Error) {
    if let Some(error) = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>()) {
        *heard.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.clone());
    }
}

impl AsyncRead for Line {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Self { inner, heard } = self.get_mut();
        let read = match inner {
            Inner::Tls(stream) => Pin::new(stream.as_mut()).poll_read(cx, buf),
            Inner::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
        };
        if let Poll::Ready(Err(error)) = &read {
            note(heard, error);
        }
        read
    }
}

impl AsyncWrite for Line {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().inner {
            Inner::Tls(stream) => Pin::new(stream.as_mut()).poll_write(cx, bytes),
            Inner::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().inner {
            Inner::Tls(stream) => Pin::new(stream.as_mut()).poll_flush(cx),
            Inner::Plain(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().inner {
            Inner::Tls(stream) => Pin::new(stream.as_mut()).poll_shutdown(cx),
            Inner::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
