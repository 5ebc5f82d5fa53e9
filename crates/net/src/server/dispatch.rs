//! Dispatches work to clients by long polling: a request waits until there is work.

use crate::federation::next_work::Todo;
use crate::server::connections::Peer;
use crate::server::receive::STILL;
use crate::server::service::{Answered, FederationService, Replies};
use crate::wire::{self, CHUNK, work};
use prost::bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

/// How long a request waits for work.
pub(crate) const POLL: Duration = Duration::from_secs(25);

impl FederationService {
    pub(crate) async fn pull(
        self: Arc<Self>,
        request: Request<wire::PullRequest>,
    ) -> Answered<Replies<wire::Work>> {
        let mut calls = self.coordinator.subscribe();
        let limit = tokio::time::Instant::now() + POLL;
        let todo = loop {
            calls.mark_unchanged();
            // Checked each time: a client that was revoked while it waited gets no work.
            let (member, refuse) = self.member(&request)?;
            let todo = self.coordinator.next_work(&member, &request.get_ref().run, surveyed(&request));
            match todo.map_err(|refusal| refuse.because(&refusal))? {
                Todo::Wait => {}
                todo => break todo,
            }
            if tokio::time::timeout_at(limit, calls.changed()).await.is_err() {
                break Todo::Wait;
            }
        };
        let (sender, receiver) = mpsc::channel(2);
        let service = Arc::clone(&self);
        let answering = tokio::spawn(async move {
            // An error means that the client has disconnected.
            let _ = service.send(todo, &sender).await;
        });
        if let Some(peer) = request.extensions().get::<Peer>() {
            peer.sending(answering.abort_handle());
        }
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    async fn send(
        &self,
        todo: Todo,
        sender: &mpsc::Sender<Result<wire::Work, Status>>,
    ) -> Result<(), mpsc::error::SendError<Result<wire::Work, Status>>> {
        let work = |item| Ok(wire::Work { item: Some(item) });
        let (round, client, first, parts) = match todo {
            Todo::Wait => return sender.send(work(work::Item::Wait(wire::Empty {}))).await,
            Todo::Message(item) => return sender.send(work(item)).await,
            Todo::Evaluate(round, model) => (
                round,
                None,
                work::Item::Evaluate(wire::Transfer { round, bytes: model.len() as u64 }),
                [model, Bytes::new()],
            ),
            Todo::Train(job, shared) => {
                let (round, head) = (job.offer.round, self.coordinator.begin_sending(&job));
                let bytes = (head.len() + shared.len()) as u64;
                let first = work::Item::Train(wire::Transfer { round, bytes });
                (round, Some(job.client), first, [head, shared])
            }
        };
        sender.send(work(first)).await?;
        let mut bytes = 0;
        for part in parts {
            for start in (0..part.len()).step_by(CHUNK) {
                let end = part.len().min(start + CHUNK);
                bytes += (end - start) as u64;
                let part = sender.send(work(work::Item::Chunk(part.slice(start..end))));
                match tokio::time::timeout(STILL, part).await {
                    Ok(sent) if self.coordinator.at(round) => sent?,
                    // A client that stopped reading, or whose round is over, must not hold a model in memory.
                    _ => return Ok(()),
                }
                if let Some(client) = client {
                    self.coordinator.count_sent(client, round, bytes);
                }
            }
        }
        Ok(())
    }
}

/// Whether the client has enrolled on this connection.
fn surveyed<T>(request: &Request<T>) -> bool {
    request.extensions().get::<Peer>().is_some_and(|peer| peer.surveyed.load(Ordering::Relaxed))
}
