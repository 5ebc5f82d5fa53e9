//! Updates that failed or were rejected, and rounds that left the model unchanged. A client without an answer has not
//! failed: dropouts are part of federated learning.

use super::left_out::{self, LeftOut, Tally};
use super::recent::Recent;
use crate::directory::LAST;
use fedtvd_core::round::{ClientFailure, ClientRecord, RoundRecord};
use serde::{Deserialize, Serialize};

/// The failed updates of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FailedUpdates {
    /// Updates that clients sent or failed to make; clients without an answer are not counted.
    pub updates: u64,
    /// How many of them failed or were rejected.
    pub failed_updates: u64,
    /// The first failure: round, client and reason.
    pub first_failure: Option<String>,
    /// Clients that sent at least three updates, of which more than half were not used.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
}

impl FailedUpdates {
    /// All of them in one sentence, and the clients that are left out in another; `None` if no update failed.
    pub fn sentence(&self) -> Option<String> {
        let first = self.first_failure.as_ref()?;
        let left_out = left_out::sentence(&self.left_out).map_or(String::new(), |named| format!("\n{named}"));
        Some(format!("{} of {} updates failed, first: {first}{left_out}", self.failed_updates, self.updates))
    }
}

/// The updates of a round, and those that failed, by client id.
struct Answers<'a> {
    updates: usize,
    failed: Vec<(&'a ClientRecord, &'a ClientFailure)>,
}

impl<'a> Answers<'a> {
    fn of(record: &'a RoundRecord) -> Self {
        let failure = |client: &'a ClientRecord| Some((client, client.failure.as_ref()?));
        let (absent, failed): (Vec<_>, Vec<_>) =
            record.clients.iter().filter_map(failure).partition(|(_, failure)| is_absence(failure));
        Self { updates: record.clients.len() - absent.len(), failed }
    }

    fn first(&self) -> Option<String> {
        self.failed.first().map(|(client, failure)| format!("client {}: {failure}", client.client))
    }
}

/// Whether a client did not answer, also if the failure was read from a record.
pub fn is_absence(failure: &ClientFailure) -> bool {
    failure.to_string() == ClientFailure::Absent.to_string()
}

/// The failed updates of a round in one sentence; `None` if no update failed.
pub fn failed(record: &RoundRecord) -> Option<String> {
    let answers = Answers::of(record);
    let first = answers.first()?;
    Some(format!("{} of {} updates failed, first: {first}", answers.failed.len(), answers.updates))
}

/// What one round says.
#[derive(Clone, Debug)]
struct Outcome {
    updates: usize,
    failed: usize,
    first: Option<String>,
    unchanged: Option<String>,
}

/// The failures of the last rounds, and of all.
#[derive(Clone, Debug, Default)]
pub(super) struct Failures {
    recent: Recent<Outcome, LAST>,
    tally: Tally,
    all: FailedUpdates,
}

impl Failures {
    /// The sign of trouble in this round, if at least half of its updates failed, or their result was discarded.
    pub(super) fn observe(&mut self, record: &RoundRecord) -> Option<String> {
        let answers = Answers::of(record);
        self.tally.observe(record);
        let (updates, failed, first) = (answers.updates, answers.failed.len(), answers.first());
        self.all.updates += updates as u64;
        self.all.failed_updates += failed as u64;
        if let (None, Some(first)) = (&self.all.first_failure, &first) {
            self.all.first_failure = Some(format!("round {}, {first}", record.round));
        }
        let failures = (failed > 0 && 2 * failed >= updates).then(|| self::failed(record)).flatten();
        let discarded = record.unchanged.as_ref().filter(|_| record.discarded);
        let discarded = discarded.map(|why| format!("the result was discarded: {why}"));
        let signs: Vec<String> = failures.into_iter().chain(discarded).collect();
        let sign = (!signs.is_empty()).then(|| signs.join("; "));
        self.recent.push(Outcome { updates, failed, first, unchanged: record.unchanged.clone() });
        sign
    }

    /// The failed updates of all rounds.
    pub(super) fn all(&self) -> FailedUpdates {
        FailedUpdates { left_out: self.tally.left_out(), ..self.all.clone() }
    }

    /// Why the result cannot be used, by the last rounds.
    pub(super) fn verdict(&self) -> Option<String> {
        let sum = |part: fn(&Outcome) -> usize| self.recent.iter().map(part).sum::<usize>();
        let (updates, failed) = (sum(|round| round.updates), sum(|round| round.failed));
        let rounds = match self.recent.len() {
            1 => "last round".to_owned(),
            rounds => format!("last {rounds} rounds"),
        };
        if 2 * failed > updates {
            let first = self.recent.iter().find_map(|round| round.first.clone()).unwrap_or_default();
            return Some(format!("{failed} of {updates} updates in the {rounds} failed, first: {first}"));
        }
        let unchanged =
            self.recent.iter().map(|round| round.unchanged.as_ref()).collect::<Option<Vec<_>>>()?;
        unchanged.last().map(|why| format!("the model was unchanged in the {rounds}: {why}"))
    }
}
