//! Sends an update: announces it, waits for its turn, and sends the bytes that the server does not have yet.

use crate::client::connection::{ANSWER_TIMEOUT, answered};
use crate::client::connection_error::refused;
use crate::client::outgoing::Outgoing;
use crate::client::{Connection, ConnectionError};
use crate::wire::{self, CHUNK, upload_reply, upload_request};
use prost::bytes::Bytes;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

/// How long an upload waits for its turn.
const TURN_TIMEOUT: Duration = Duration::from_secs(3600);

impl Connection {
    /// Sends an update, or the rest of one that broke off; when this returns, it is on the server's disk.
    pub async fn upload(
        &mut self,
        ticket: wire::Ticket,
        bytes: Bytes,
    ) -> Result<wire::Receipt, ConnectionError> {
        self.list(|| Outgoing::ticket(&ticket))?;
        let message = |content| wire::UploadRequest { content: Some(content) };
        let (sender, receiver) = mpsc::channel(2);
        let _ = sender.send(message(upload_request::Content::Ticket(ticket.clone()))).await;
        let request = self.request(ReceiverStream::new(receiver));
        let mut replies = answered(self.client.upload(request), &self.failure).await?;
        let mut sender = Some(sender);
        loop {
            // A server with many uploads lets the others wait before they send.
            let patience = if sender.is_some() { TURN_TIMEOUT } else { ANSWER_TIMEOUT };
            let next = tokio::time::timeout(patience, replies.message()).await;
            let next = next.map_err(|_| ConnectionError::Lost("the server does not answer".to_owned()))?;
            let next = next.map_err(|status| refused(&status, &self.failure))?;
            match next.and_then(|reply| reply.step) {
                Some(upload_reply::Step::Receipt(receipt)) => return Ok(receipt),
                Some(upload_reply::Step::Proceed(wire::Proceed { offset })) => {
                    let Some(sender) = sender.take() else {
                        return Err(ConnectionError::Lost("the server asks twice for an update".to_owned()));
                    };
                    let Some(first) = usize::try_from(offset).ok().filter(|first| *first <= bytes.len())
                    else {
                        let why = format!("the server has {offset} bytes of an update of {}", bytes.len());
                        return Err(ConnectionError::Lost(why));
                    };
                    self.list(|| Outgoing::update(&ticket, offset))?;
                    for start in (first..bytes.len()).step_by(CHUNK) {
                        let chunk = bytes.slice(start..bytes.len().min(start + CHUNK));
                        if sender.send(message(upload_request::Content::Chunk(chunk))).await.is_err() {
                            // The server has closed the stream; its answer says why.
                            break;
                        }
                    }
                }
                None => return Err(ConnectionError::Lost("the server sent no receipt".to_owned())),
            }
        }
    }
}
