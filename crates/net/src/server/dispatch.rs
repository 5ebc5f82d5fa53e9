//! Dispatches work to clients by long polling: a request waits until there is work.

use crate::federation::admission::Member;
use crate::federation::phase::Phase;
use crate::server::connections::Peer;
use crate::server::receive::STILL;
use crate::server::service::{Answered, FederationService, Replies};
use crate::wire::{self, CHUNK, work};
use fedtvd_core::round::Job;
use prost::bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
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
            let noted = self.coordinator.note_contact(&member, Some(&request.get_ref().run));
            noted.map_err(|refusal| refuse.because(&refusal))?;
            match self.todo(&member, surveyed(&request)) {
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

    fn todo(&self, member: &Member, surveyed: bool) -> Todo {
        let mut inner = self.coordinator.inner();
        let client = member.id;
        if let Phase::Finished(finished) = &inner.phase {
            let finished = finished.clone();
            inner.informed.insert(client);
            drop(inner);
            self.coordinator.notify_driver();
            return Todo::Message(work::Item::Finished(finished));
        }
        if !surveyed || !inner.present.contains_key(&client) {
            let survey = self.coordinator.survey(&inner);
            let ask = serde_json::to_string(&survey.ask).unwrap_or_default();
            let reference = serde_json::to_string(&survey.reference).unwrap_or_default();
            return Todo::Message(work::Item::Survey(wire::Survey { ask, reference }));
        }
        match &mut inner.phase {
            Phase::Training(open) if !open.answers.contains_key(&client) => match open.jobs.get(&client) {
                Some(job) => Todo::Train(job.clone(), open.shared.clone()),
                None => Todo::Wait,
            },
            Phase::Evaluating(evaluating)
                if evaluating.asked.contains(&client) && !evaluating.counts.contains_key(&client) =>
            {
                Todo::Evaluate(evaluating.round, evaluating.model.clone())
            }
            _ => Todo::Wait,
        }
    }

    async fn send(
        &self,
        todo: Todo,
        sender: &mpsc::Sender<Result<wire::Work, Status>>,
    ) -> Result<(), mpsc::error::SendError<Result<wire::Work, Status>>> {
        let work = |item| Ok(wire::Work { item: Some(item) });
        let (round, first, parts) = match todo {
            Todo::Wait => return sender.send(work(work::Item::Wait(wire::Empty {}))).await,
            Todo::Message(item) => return sender.send(work(item)).await,
            Todo::Evaluate(round, model) => (
                round,
                work::Item::Evaluate(wire::Transfer { round, bytes: model.len() as u64 }),
                [model, Bytes::new()],
            ),
            Todo::Train(job, shared) => {
                let (round, head) = (job.offer.round, Bytes::from(job.head()));
                let bytes = (head.len() + shared.len()) as u64;
                if let Phase::Training(open) = &mut self.coordinator.inner().phase {
                    open.bytes_down += bytes;
                    open.sent.entry(job.client).or_insert_with(Instant::now);
                }
                (round, work::Item::Train(wire::Transfer { round, bytes }), [head, shared])
            }
        };
        sender.send(work(first)).await?;
        for part in parts {
            for start in (0..part.len()).step_by(CHUNK) {
                let end = part.len().min(start + CHUNK);
                let part = sender.send(work(work::Item::Chunk(part.slice(start..end))));
                match tokio::time::timeout(STILL, part).await {
                    Ok(sent) if self.coordinator.at(round) => sent?,
                    // A client that stopped reading, or whose round is over, must not hold a model in memory.
                    _ => return Ok(()),
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

/// A client's next task.
enum Todo {
    Wait,
    Message(work::Item),
    Train(Job, Bytes),
    Evaluate(u32, Bytes),
}
