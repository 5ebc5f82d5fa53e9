//! What a client does next, and the sending of jobs.

use crate::federation::Coordinator;
use crate::federation::admission::Member;
use crate::federation::phase::Phase;
use crate::server::refusal::Refusal;
use crate::wire::{self, work};
use fedtvd_core::round::{ClientId, Job};
use prost::bytes::Bytes;

/// A client's next task.
pub(crate) enum Todo {
    /// Nothing yet.
    Wait,
    /// A survey, or the end of the federation.
    Message(work::Item),
    /// A job, and the part of its bytes that the jobs of its offer share.
    Train(Job, Bytes),
    /// The model after a round, to be evaluated.
    Evaluate(u32, Bytes),
}

impl Coordinator {
    /// The next task of a client of this run; `surveyed` if it has enrolled on this connection.
    pub(crate) fn next_work(&self, member: &Member, run: &str, surveyed: bool) -> Result<Todo, Refusal> {
        self.note_contact(member, Some(run))?;
        let mut inner = self.inner();
        let client = member.id;
        if let Phase::Finished(finished) = &inner.phase {
            let finished = finished.clone();
            inner.informed.insert(client);
            drop(inner);
            self.notify_driver();
            return Ok(Todo::Message(work::Item::Finished(finished)));
        }
        if !surveyed || !inner.present.contains_key(&client) {
            let survey = self.survey(&inner);
            let ask = serde_json::to_string(&survey.ask).unwrap_or_default();
            let reference = serde_json::to_string(&survey.reference).unwrap_or_default();
            return Ok(Todo::Message(work::Item::Survey(wire::Survey { ask, reference })));
        }
        Ok(match &mut inner.phase {
            Phase::Training(open) if !open.answers.contains_key(&client) => match open.jobs.get(&client) {
                Some(job) => Todo::Train(job.clone(), open.shared.of_job(job)),
                None => Todo::Wait,
            },
            Phase::Evaluating(evaluating)
                if evaluating.asked.contains(&client) && !evaluating.counts.contains_key(&client) =>
            {
                Todo::Evaluate(evaluating.round, evaluating.model.clone())
            }
            _ => Todo::Wait,
        })
    }

    /// Notes that a job is being sent; returns the part of its bytes that is its own.
    pub(crate) fn begin_sending(&self, job: &Job) -> Bytes {
        let head = Bytes::from(job.head());
        let now = self.now();
        match &mut self.inner().phase {
            // The round may have closed since the client was given its job.
            Phase::Training(open) if open.round == job.offer.round => {
                open.sent.entry(job.client).or_insert(now);
            }
            _ => {}
        }
        head
    }

    /// Notes how many bytes of its job a client was sent in one answer. Of a client that asks again only the longest answer
    /// counts, so that nobody can make up traffic.
    pub(crate) fn count_sent(&self, client: ClientId, round: u32, bytes: u64) {
        if let Phase::Training(open) = &mut self.inner().phase
            && open.round == round
        {
            let most = open.bytes_down.entry(client).or_default();
            *most = bytes.max(*most);
        }
    }
}
