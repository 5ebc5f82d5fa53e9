//! Receives an update: chunks are written to disk as they arrive, so that it needs memory for two chunks whatever its
//! size.

use crate::federation::admission::{Admission, Arrival, disk};
use crate::server::refusal::Refusal;
use crate::server::service::{Answered, FederationService, Replies};
use crate::wire::{self, upload_reply, upload_request};
use data_encoding::HEXLOWER;
use fedtvd_run::directory::files::create;
use prost::bytes::Bytes;
use sha2::{Digest as _, Sha256};
use std::io::Write as _;
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
        let admission =
            self.coordinator.admit(&member, &ticket).map_err(|refusal| refuse.because(&refusal))?;
        let (sender, receiver) = mpsc::channel(2);
        let reply = |step| Ok(wire::UploadReply { step: Some(step) });
        tokio::spawn(async move {
            let receipt = match admission {
                Admission::Already => Ok(wire::Receipt { already: true }),
                Admission::Wanted(arrival) => {
                    let Some(_turn) = self.upload_limit.acquire().await else { return };
                    let (coordinator, round) = (Arc::clone(&self.coordinator), arrival.round);
                    let open = move || coordinator.at(round);
                    if sender.send(reply(upload_reply::Step::Proceed(wire::Empty {}))).await.is_err() {
                        return;
                    }
                    // A client that was revoked during the upload is refused.
                    let service = Arc::clone(&self);
                    let still = move || service.caller(&caller).role.map(|_| ());
                    receive(*arrival, &mut pieces, open, still)
                        .await
                        .map(|()| wire::Receipt { already: false })
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

/// Writes an update's chunks to disk as they arrive, and accepts it if its client may still take part.
async fn receive(
    arrival: Arrival,
    pieces: &mut Streaming<wire::UploadRequest>,
    open: impl Fn() -> bool,
    still: impl FnOnce() -> Result<(), Refusal> + Send + 'static,
) -> Result<(), Refusal> {
    let (bytes, round) = (arrival.bytes, arrival.round);
    let (sender, receiver) = mpsc::channel(1);
    let writer = tokio::task::spawn_blocking(move || store(arrival, receiver, still));
    let mut got = 0;
    let began = Instant::now();
    let limit = began + STILL + Duration::from_secs(bytes / SLOWEST);
    let trouble = loop {
        let piece = match tokio::time::timeout_at(limit.min(Instant::now() + STILL), pieces.message()).await {
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
        if !open() {
            break Some(Refusal::Late { round });
        }
        got += part.len() as u64;
        if got > bytes {
            break Some(Refusal::Overrun(bytes));
        }
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

/// Writes chunks until the end, syncs the file, and accepts the update.
fn store(
    arrival: Arrival,
    mut parts: mpsc::Receiver<Option<Bytes>>,
    still: impl FnOnce() -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    let write = |error: std::io::Error| disk(&error);
    let mut file = create(&arrival.path).map_err(write)?;
    let (mut hash, mut check) = (Sha256::new(), arrival.check());
    while let Some(part) = parts.blocking_recv() {
        let Some(part) = part else {
            let got = HEXLOWER.encode(&hash.finalize());
            if got != arrival.hash {
                return Err(Refusal::WrongHash { got, announced: arrival.hash.clone() });
            }
            file.sync_all().map_err(write)?;
            still()?;
            return arrival.accept(check);
        };
        hash.update(&part);
        check.feed(&part);
        file.write_all(&part).map_err(write)?;
    }
    Err(Refusal::Truncated { got: 0, bytes: arrival.bytes })
}
