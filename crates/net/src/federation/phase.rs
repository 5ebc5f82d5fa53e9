//! What a federation is doing: who is there, what the open round has, and for whom it waits.

use crate::federation::stored::Reply;
use crate::wire;
use fedtvd_core::round::{ClientId, Job, State};
use fedtvd_core::train::Evaluation;
use prost::bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// All that changes.
pub(crate) struct Inner {
    /// The roster as it grows, and what a newcomer is checked against.
    pub(crate) enrolled: State,
    /// Label counts of clients, while the reference is made of them.
    pub(crate) histograms: Option<BTreeMap<ClientId, Vec<u64>>>,
    /// Clients that said to this process what they have, and how many samples they keep back.
    pub(crate) present: BTreeMap<ClientId, u64>,
    /// Who was heard of, and when last.
    pub(crate) seen: BTreeMap<ClientId, Seen>,
    /// Clients whose update is on its way.
    pub(crate) sending: BTreeSet<ClientId>,
    /// Round and hash of each client's last accepted update.
    pub(crate) last_accepted: BTreeMap<ClientId, (u32, String)>,
    /// Clients that know that all rounds are done.
    pub(crate) informed: BTreeSet<ClientId>,
    pub(crate) phase: Phase,
    /// What the last round came to.
    pub(crate) accuracy: Option<f64>,
    /// Clients that have a valid certificate; none where there are no certificates.
    pub(crate) valid: Option<BTreeSet<ClientId>>,
    pub(crate) stop: bool,
}

impl Inner {
    /// Whether a client can still answer.
    pub(crate) fn can_answer(&self, client: ClientId) -> bool {
        self.valid.as_ref().is_none_or(|valid| valid.contains(&client))
    }

    /// Clients of a roster that have not said what they have, and still may.
    pub(crate) fn absent(&self, roster: Option<&BTreeSet<ClientId>>) -> Vec<ClientId> {
        let known = |client: &ClientId| match &self.histograms {
            Some(known) => known.contains_key(client),
            None => self.enrolled.profile(*client).is_some(),
        };
        let owed = |client: &&ClientId| !known(client) && self.can_answer(**client);
        roster.into_iter().flatten().filter(owed).copied().collect()
    }

    /// Whether any enrolled client can still answer, or, where none is enrolled, any at all.
    pub(crate) fn anyone_can_answer(&self) -> bool {
        let roster = &self.enrolled.roster;
        match &self.valid {
            Some(valid) if roster.is_empty() => !valid.is_empty(),
            _ => roster.is_empty() || roster.iter().any(|profile| self.can_answer(profile.client)),
        }
    }

    /// Whether the open round waits for nobody any more. Where nobody at all may come, all certificates are gone, it
    /// waits for the operator: rounds of nobody would pass in moments.
    pub(crate) fn complete(&self) -> bool {
        match &self.phase {
            Phase::Training(open) => {
                let missing = open.missing();
                let over = !missing.iter().any(|client| self.can_answer(*client));
                open.expired || over && (missing.is_empty() || self.anyone_can_answer())
            }
            _ => true,
        }
    }
}

/// When a client was heard of last.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) name: String,
    pub(crate) last: Instant,
}

/// What the federation is doing.
pub(crate) enum Phase {
    /// Waiting for clients, or between rounds.
    Between,
    /// Clients train.
    Training(Open),
    /// Clients judge a model.
    Evaluating(Evaluating),
    /// All rounds are done.
    Finished(wire::Finished),
}

/// A round in which clients train.
pub(crate) struct Open {
    pub(crate) round: u32,
    pub(crate) jobs: BTreeMap<ClientId, Job>,
    pub(crate) answers: BTreeMap<ClientId, Reply>,
    /// The part of the jobs' bytes that all of them share.
    pub(crate) shared: Bytes,
    pub(crate) bytes_down: u64,
    pub(crate) began: Instant,
    pub(crate) expired: bool,
}

impl Open {
    /// Clients that have not answered.
    pub(crate) fn missing(&self) -> Vec<ClientId> {
        self.jobs.keys().filter(|client| !self.answers.contains_key(client)).copied().collect()
    }
}

/// A model that clients judge.
pub(crate) struct Evaluating {
    pub(crate) round: u32,
    pub(crate) model: Bytes,
    pub(crate) asked: BTreeSet<ClientId>,
    pub(crate) counts: BTreeMap<ClientId, Evaluation>,
}
