//! A proxy that delays every byte by the same time in each direction, as a long line does, without loss and without a
//! limit of speed.
//!
//! ```text
//! cargo run --release --example delay -- SERVER_ADDRESS_FILE OWN_ADDRESS_FILE MILLISECONDS
//! ```
//!
//! It connects clients to the server whose address is in the first file and writes its own address to the second.

use std::error::Error;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Forwards what arrives, each piece after the delay; pieces under way do not wait for each other.
async fn forward(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, delay: Duration) {
    let (sender, mut receiver) = mpsc::channel::<(Instant, Vec<u8>)>(1 << 12);
    tokio::spawn(async move {
        while let Some((due, piece)) = receiver.recv().await {
            tokio::time::sleep_until(due).await;
            if to.write_all(&piece).await.is_err() {
                return;
            }
        }
        let _ = to.shutdown().await;
    });
    let mut buffer = vec![0; 64 << 10];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        if sender.send((Instant::now() + delay, buffer[..read].to_vec())).await.is_err() {
            return;
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [server, own, milliseconds] = arguments.as_slice() else {
        return Err("usage: delay SERVER_ADDRESS_FILE OWN_ADDRESS_FILE MILLISECONDS".into());
    };
    let delay = Duration::from_millis(milliseconds.parse()?);
    let server = std::fs::read_to_string(server)?.trim().to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    std::fs::write(own, listener.local_addr()?.to_string())?;
    loop {
        let (client, _) = listener.accept().await?;
        let server = TcpStream::connect(&server).await?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let ((client_read, client_write), (server_read, server_write)) =
            (client.into_split(), server.into_split());
        tokio::spawn(forward(client_read, server_write, delay));
        tokio::spawn(forward(server_read, client_write, delay));
    }
}
