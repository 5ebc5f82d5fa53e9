//! The phase of a federation: its clients, the answers of the open round, and the clients that it waits for.

use crate::federation::partial::Partial;
use crate::federation::received::Received;
use crate::federation::stored::Reply;
use crate::wire;
use fedtvd_core::round::{ClientEvaluation, ClientId, Job, State};
use prost::bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The coordinator's mutable state.
pub(crate) struct Inner {
    /// The state with the growing roster, against which new clients are checked.
    pub(crate) enrolled: State,
    /// The size that each client counts as, and its label counts, while they are collected for the reference.
    pub(crate) histograms: Option<BTreeMap<ClientId, (u64, Vec<u64>)>>,
    /// Clients that enrolled with this process, and the size of their hold-outs.
    pub(crate) present: BTreeMap<ClientId, u64>,
    /// Clients that were in contact, and when last.
    pub(crate) seen: BTreeMap<ClientId, Seen>,
    /// Updates that are being received.
    pub(crate) sending: BTreeMap<ClientId, Arc<Received>>,
    /// Round and hash of each client's last accepted update.
    pub(crate) last_accepted: BTreeMap<ClientId, (u32, String)>,
    /// Clients that were informed that all rounds are done.
    pub(crate) informed: BTreeSet<ClientId>,
    pub(crate) phase: Phase,
    /// Accuracy after the last round.
    pub(crate) accuracy: Option<f64>,
    /// Median of the clients' accuracies after the last round, if they evaluated the model.
    pub(crate) median_accuracy: Option<f64>,
    /// The last round that clients should have evaluated and did not, counted from 0, and why.
    pub(crate) not_evaluated: Option<(u32, String)>,
    /// Clients that have a valid certificate; `None` without TLS.
    pub(crate) valid: Option<BTreeSet<ClientId>>,
    /// Whether nobody new may enrol: the first round of a fixed roster has begun.
    pub(crate) roster_closed: bool,
    pub(crate) stop: bool,
}

impl Inner {
    /// Whether a client can still answer.
    pub(crate) fn can_answer(&self, client: ClientId) -> bool {
        self.valid.as_ref().is_none_or(|valid| valid.contains(&client))
    }

    /// Clients of a roster that have not enrolled, and still may.
    pub(crate) fn absent(&self, roster: Option<&BTreeSet<ClientId>>) -> Vec<ClientId> {
        let known = |client: &ClientId| match &self.histograms {
            Some(known) => known.contains_key(client),
            None => self.enrolled.profile(*client).is_some(),
        };
        let owed = |client: &&ClientId| !known(client) && self.can_answer(**client);
        roster.into_iter().flatten().filter(owed).copied().collect()
    }

    /// Whether any enrolled client can still answer; if none is enrolled, whether any client can.
    pub(crate) fn anyone_can_answer(&self) -> bool {
        let roster = &self.enrolled.roster;
        match &self.valid {
            Some(valid) if roster.is_empty() => !valid.is_empty(),
            _ => roster.is_empty() || roster.iter().any(|profile| self.can_answer(profile.client)),
        }
    }

    /// Whether the open round waits for nobody. If no client has a valid certificate, it waits for the operator,
    /// because rounds without clients would all be over at once.
    pub(crate) fn complete(&self) -> bool {
        match &self.phase {
            Phase::Training(open) => {
                let missing = open.missing();
                let over = !missing.iter().any(|client| self.can_answer(*client));
                let enough = open.updates() >= open.needed;
                open.expired || enough || over && (missing.is_empty() || self.anyone_can_answer())
            }
            _ => true,
        }
    }
}

/// The last contact of a client.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) name: String,
    pub(crate) last: Instant,
    /// Why it does not take part, or has no update, by the last that was heard of it.
    pub(crate) problem: Option<String>,
}

/// The phase of a federation.
pub(crate) enum Phase {
    /// Waiting for clients, or between rounds.
    Between,
    /// Clients train.
    Training(Open),
    /// Clients evaluate a model.
    Evaluating(Evaluating),
    /// All rounds are done.
    Finished(wire::Finished),
}

/// The values after the heads of a round's jobs: of each branch once for clients that get initial values of the tensors that stay
/// with them, and once for the others.
#[derive(Default)]
pub(crate) struct SharedNumbers(BTreeMap<(u32, bool), Bytes>);

impl SharedNumbers {
    pub(crate) fn of(jobs: &[Job]) -> Self {
        let mut numbers = BTreeMap::new();
        for job in jobs {
            numbers.entry(Self::place(job)).or_insert_with(|| job.numbers().into());
        }
        Self(numbers)
    }

    /// Branch, and whether initial values come with the model.
    fn place(job: &Job) -> (u32, bool) {
        (job.offer.branch, !job.offer.own.is_empty())
    }

    /// Those of a job.
    pub(crate) fn of_job(&self, job: &Job) -> Bytes {
        self.0.get(&Self::place(job)).cloned().unwrap_or_default()
    }
}

/// A round in which clients train.
pub(crate) struct Open {
    pub(crate) round: u32,
    pub(crate) jobs: BTreeMap<ClientId, Job>,
    pub(crate) answers: BTreeMap<ClientId, Reply>,
    /// Uploads that broke off, at most one of each client, and can be continued.
    pub(crate) partial: BTreeMap<ClientId, Partial>,
    /// Number of updates with which it is complete.
    pub(crate) needed: usize,
    /// The parts of the jobs' bytes that several of them share.
    pub(crate) shared: SharedNumbers,
    /// How many bytes of its job each client was sent, at most in one answer.
    pub(crate) bytes_down: BTreeMap<ClientId, u64>,
    pub(crate) began: Instant,
    /// How long it waits for answers; `None` for no limit.
    pub(crate) limit: Option<Duration>,
    /// When each client's job was first sent.
    pub(crate) sent: BTreeMap<ClientId, Instant>,
    /// The longest time between the first sending of a job and the acceptance of its update.
    pub(crate) slowest: Option<Duration>,
    pub(crate) expired: bool,
}

impl Open {
    /// Measures the time that a client took, when its update is accepted.
    pub(crate) fn measure(&mut self, client: ClientId, now: Instant) {
        let took = self.sent.get(&client).map(|sent| now.saturating_duration_since(*sent));
        self.slowest = self.slowest.max(took);
    }

    /// Number of accepted updates.
    pub(crate) fn updates(&self) -> usize {
        self.answers.values().filter(|reply| reply.update().is_some()).count()
    }

    /// Clients that have not answered.
    pub(crate) fn missing(&self) -> Vec<ClientId> {
        self.jobs.keys().filter(|client| !self.answers.contains_key(client)).copied().collect()
    }
}

/// An evaluation of a model by clients.
pub(crate) struct Evaluating {
    pub(crate) round: u32,
    pub(crate) model: Bytes,
    pub(crate) asked: BTreeSet<ClientId>,
    pub(crate) counts: BTreeMap<ClientId, ClientEvaluation>,
}

impl Evaluating {
    /// Clients that have not answered.
    pub(crate) fn missing(&self) -> Vec<ClientId> {
        self.asked.iter().filter(|client| !self.counts.contains_key(client)).copied().collect()
    }
}
