//! Receives an update: chunks are written to disk as they arrive, so that it needs memory for two chunks whatever its
//! size.

use crate::federation::Coordinator;
use crate::federation::admission::Admission;
use crate::federation::arrival::Arrival;
use crate::federation::received::Received;
use crate::server::refusal::Refusal;
use crate::server::service::{Answered, FederationService, Replies};
use crate::wire::{self, upload_reply, upload_request};
use prost::bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Streaming};

/// How long an upload may stall.
pub(crate) const STILL: Duration = Duration::from_secs(60);

/// Minimum speed of an upload in bytes per second, apart from the time for which it may stall.
const SLOWEST: u64 = 8 << 10;

impl FederationService {
    pub(crate) async fn upload(
        self: Arc<Self>,
        request: Request<Streaming<wire::UploadRequest>>,
    ) -> Answered<Replies<wire::UploadReply>> {
        let (member, refuse) = self.member(&request)?;
        let (metadata, extensions, mut pieces) = request.into_parts();
        let caller = Request::from_parts(metadata, extensions, ());
        let first = match tokio::time::timeout(STILL, pieces.message()).await {
            Ok(first) => first?,
            Err(_) => return Err(refuse.because(&Refusal::Stalled(STILL.as_secs()))),
        };
        let Some(wire::UploadRequest { content: Some(upload_request::Content::Ticket(ticket)) }) = first
        else {
            return Err(refuse.because(&Refusal::NoTicket));
        };
        let refuse = refuse.with(&ticket);
        let admission =
            self.coordinator.admit(&member, &ticket).map_err(|refusal| refuse.because(&refusal))?;
        let (sender, receiver) = mpsc::channel(2);
        let reply = |step| Ok(wire::UploadReply { step: Some(step) });
        tokio::spawn(async move {
            let receipt = match admission {
                Admission::Already => Ok(wire::Receipt { already: true }),
                Admission::Wanted(arrival) => {
                    // If another connection takes the upload over meanwhile, there is nothing to begin with.
                    let taken_over = arrival.received.taken_over.clone();
                    let _turn = tokio::select! {
                        turn = self.upload_limit.acquire() => turn,
                        () = taken_over.cancelled() => None,
                    };
                    // A client that was revoked during the upload is refused.
                    let service = Arc::clone(&self);
                    let still = move || service.caller(&caller).role.map(|_| ());
                    let received = match begin(arrival).await {
                        Err(refusal) => Err(refusal),
                        Ok((arrival, offset)) => {
                            let proceed = upload_reply::Step::Proceed(wire::Proceed { offset });
                            if sender.send(reply(proceed)).await.is_err() {
                                return;
                            }
                            receive(arrival, offset, &mut pieces, &self.coordinator, still).await
                        }
                    };
                    received.map(|()| wire::Receipt { already: false })
                }
            };
            let last = match receipt {
                Ok(receipt) => reply(upload_reply::Step::Receipt(receipt)),
                Err(refusal) => Err(refuse.because(&refusal)),
            };
            let _ = sender.send(last).await;
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }
}

/// Opens the file of an upload. Returns the number of bytes that it has already.
async fn begin(mut arrival: Box<Arrival>) -> Result<(Box<Arrival>, u64), Refusal> {
    let begun = tokio::task::spawn_blocking(move || arrival.begin().map(|offset| (arrival, offset)));
    begun.await.unwrap_or(Err(Refusal::Disk))
}

/// Writes an update's chunks to disk as they arrive, and accepts it if its client may still take part.
async fn receive(
    arrival: Box<Arrival>,
    offset: u64,
    pieces: &mut Streaming<wire::UploadRequest>,
    coordinator: &Coordinator,
    still: impl FnOnce() -> Result<(), Refusal> + Send + 'static,
) -> Result<(), Refusal> {
    let received = Arc::clone(&arrival.received);
    let Received { client, bytes, round, .. } = *received;
    let (sender, receiver) = mpsc::channel(1);
    let writer = tokio::task::spawn_blocking(move || store(arrival, receiver, still));
    let mut got = offset;
    let began = Instant::now();
    let limit = began + STILL + Duration::from_secs((bytes - offset) / SLOWEST);
    let trouble = loop {
        let piece = tokio::select! {
            piece = tokio::time::timeout_at(limit.min(Instant::now() + STILL), pieces.message()) => piece,
            () = received.taken_over.cancelled() => break Some(Refusal::TakenOver(client)),
        };
        let piece = match piece {
            _ if Instant::now() >= limit => {
                break Some(Refusal::TooSlow { got, bytes, seconds: began.elapsed().as_secs() });
            }
            Err(_) => break Some(Refusal::Stalled(STILL.as_secs())),
            Ok(Err(_) | Ok(None)) => break (got < bytes).then_some(Refusal::Truncated { got, bytes }),
            Ok(Ok(Some(piece))) => piece,
        };
        let Some(upload_request::Content::Chunk(part)) = piece.content else {
            break Some(Refusal::SecondTicket);
        };
        // An upload whose round is over must not hold its model and a place in the queue.
        if !coordinator.at(round) {
            break Some(Refusal::Late { round });
        }
        got += part.len() as u64;
        if sender.send(Some(part)).await.is_err() {
            // The writer has failed, and its result says why.
            break None;
        }
    };
    if trouble.is_none() {
        let _ = sender.send(None).await;
    }
    drop(sender);
    let stored = writer.await.unwrap_or(Err(Refusal::Disk));
    trouble.map_or(stored, Err)
}

/// Stores chunks until the end, and accepts the update.
fn store(
    mut arrival: Box<Arrival>,
    mut parts: mpsc::Receiver<Option<Bytes>>,
    still: impl FnOnce() -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    while let Some(part) = parts.blocking_recv() {
        match part {
            Some(part) => arrival.write(&part)?,
            None => return arrival.accept(still),
        }
    }
    // The connection was lost, and whoever read it knows how.
    Err(Refusal::Truncated { got: 0, bytes: arrival.received.bytes })
}
