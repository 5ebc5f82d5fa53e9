//! A small HTTP responder for `/metrics` and `/health`: one request per connection, a limited number of connections, short
//! requests only, and little time, so that connections that send nothing delay nobody for long.

use crate::server::Server;
use crate::server::metrics::Metrics;
use crate::server::service::Guard;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

/// Maximum number of open connections; more wait in the system's queue.
const CONNECTIONS: usize = 128;
/// Maximum size of a request with its headers.
const LARGEST_REQUEST: usize = 8 << 10;
/// Time for a request to arrive.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(1);
/// Time for a request and its answer.
const TIMEOUT: Duration = Duration::from_secs(5);

impl Server {
    /// Answers `/metrics` and `/health` on another address; returns it.
    pub fn monitor(&self, listener: TcpListener, metrics: Metrics) -> io::Result<SocketAddr> {
        let address = listener.local_addr()?;
        let Some(runtime) = &self.runtime else { return Ok(address) };
        listener.set_nonblocking(true)?;
        let _inside = runtime.enter();
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let (guard, slots) = (self.guard.clone(), Arc::new(Semaphore::new(CONNECTIONS)));
        runtime.spawn(async move {
            loop {
                let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
                let Ok((stream, _)) = listener.accept().await else {
                    // Out of file descriptors, or a peer that left at once.
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                };
                let (guard, metrics) = (guard.clone(), metrics.clone());
                tokio::spawn(async move {
                    let _ = tokio::time::timeout(TIMEOUT, answer(stream, &guard, &metrics)).await;
                    drop(slot);
                });
            }
        });
        Ok(address)
    }
}

/// Reads one request and answers it.
async fn answer(mut stream: TcpStream, guard: &Guard, metrics: &Metrics) -> io::Result<()> {
    let request = tokio::time::timeout(REQUEST_TIMEOUT, head(&mut stream)).await??;
    let (status, kind, body) = match request.as_deref().map(target) {
        None => ("431 Request Header Fields Too Large", "text/plain", "the request is too long\n".to_owned()),
        Some(None) => ("400 Bad Request", "text/plain", "not an HTTP request\n".to_owned()),
        Some(Some(("GET" | "HEAD", "/metrics"))) => {
            ("200 OK", "text/plain; version=0.0.4", guard.metrics(metrics))
        }
        Some(Some(("GET" | "HEAD", "/health"))) => match guard.trouble(metrics) {
            None => ("200 OK", "text/plain", "ok\n".to_owned()),
            Some(why) => ("503 Service Unavailable", "text/plain", why + "\n"),
        },
        Some(Some(("GET" | "HEAD", _))) => {
            ("404 Not Found", "text/plain", "there are /metrics and /health\n".to_owned())
        }
        Some(Some(_)) => {
            ("405 Method Not Allowed", "text/plain", "only GET and HEAD are allowed\n".to_owned())
        }
    };
    let length = body.len();
    let only_head = request.is_some_and(|request| request.starts_with("HEAD "));
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {length}\r\n\
         Cache-Control: no-store\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    if !only_head {
        stream.write_all(body.as_bytes()).await?;
    }
    stream.shutdown().await
}

/// The request up to its empty line, as text; `None` if it is too long.
async fn head(stream: &mut TcpStream) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    let mut block = [0; 1024];
    loop {
        let read = stream.read(&mut block).await?;
        bytes.extend_from_slice(&block[..read]);
        if read == 0 || bytes.windows(4).any(|four| four == b"\r\n\r\n") {
            return Ok(Some(String::from_utf8_lossy(&bytes).into_owned()));
        }
        if bytes.len() > LARGEST_REQUEST {
            return Ok(None);
        }
    }
}

/// Method and path of a request, without its query.
fn target(request: &str) -> Option<(&str, &str)> {
    let mut words = request.lines().next()?.split(' ');
    let (method, path, version) = (words.next()?, words.next()?, words.next()?);
    let known = version.starts_with("HTTP/1.") && words.next().is_none();
    known.then(|| (method, path.split('?').next().unwrap_or(path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_request_of_three_words_and_version_1_is_a_request() {
        assert_eq!(target("GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\n\r\n"), Some(("GET", "/metrics")));
        for wrong in [
            "",
            "GET",
            "GET /metrics",
            "GET /metrics HTTP/2\r\n\r\n",
            "GET / a HTTP/1.1\r\n\r\n",
            "\u{16}\u{3}",
        ] {
            assert_eq!(target(wrong), None, "{wrong}");
        }
    }
}
