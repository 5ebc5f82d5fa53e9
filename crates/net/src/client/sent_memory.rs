//! What a site remembers by `sent.jsonl`: the references that its label distribution was compared with, in all runs, and what it
//! answered today.

use crate::client::outgoing::UPDATE;
use crate::client::policy::{Policy, Violation};
use crate::client::sent_log::{EVALUATION, FAIL, SentLine, UPLOAD};
use std::collections::BTreeSet;
use time::OffsetDateTime;

/// What was disclosed of one data set to servers of one authority, and the data set's answers of today.
#[derive(Debug)]
pub(crate) struct Remembered {
    authority: String,
    data: String,
    references: BTreeSet<String>,
    day: String,
    /// Hashes of the updates.
    updates: BTreeSet<String>,
    /// Number of jobs without an update: what made them fail depends on the data, too.
    failures: u64,
    /// Number of evaluations of models.
    evaluations: u64,
}

impl Remembered {
    /// Nothing yet.
    pub(crate) fn new(authority: &str, data: &str) -> Self {
        let (authority, data, day) = (authority.to_owned(), data.to_owned(), today());
        Self {
            authority,
            data,
            references: BTreeSet::new(),
            day,
            updates: BTreeSet::new(),
            failures: 0,
            evaluations: 0,
        }
    }

    /// Remembers a message.
    pub(crate) fn add(&mut self, line: &SentLine) {
        self.turn_day();
        if line.data != self.data {
            return;
        }
        if line.authority == self.authority {
            self.references.extend(line.reference.clone());
        }
        if !line.time.starts_with(&self.day) {
            return;
        }
        match (update_hash(line), line.message.as_str()) {
            (Some(hash), _) => _ = self.updates.insert(hash.to_owned()),
            (None, FAIL) => self.failures += line.count,
            (None, EVALUATION) => self.evaluations += line.count,
            _ => {}
        }
    }

    /// Number of references that the distribution was compared with.
    pub(crate) fn references(&self) -> usize {
        self.references.len()
    }

    /// Number of jobs of today that were answered, with an update or without; an update that is sent again after a lost
    /// connection counts once.
    pub(crate) fn jobs_today(&mut self) -> u64 {
        self.turn_day();
        self.updates.len() as u64 + self.failures
    }

    /// Number of evaluations of today.
    pub(crate) fn evaluations_today(&mut self) -> u64 {
        self.turn_day();
        self.evaluations
    }

    /// Checks a message that is about to be sent: another client of the same site may have used up what the policy allows.
    pub(crate) fn check(&mut self, policy: &Policy, line: &SentLine) -> Result<(), Violation> {
        if let Some(reference) = &line.reference {
            self.check_reference(policy, reference)?;
        }
        match update_hash(line) {
            Some(hash) if !self.updates.contains(hash) => policy.check_rounds(self.jobs_today()),
            None if line.message == EVALUATION => policy.check_evaluations(self.evaluations_today()),
            _ => Ok(()),
        }
    }

    /// Whether a distance to this reference is not one too many.
    pub(crate) fn check_reference(&self, policy: &Policy, reference: &str) -> Result<(), Violation> {
        if policy.histogram()
            || self.references.contains(reference)
            || self.references.len() < policy.references
        {
            return Ok(());
        }
        Err(Violation {
            asked: format!(
                "a distance to another reference distribution: this data set was compared with {} for the same authority",
                self.references.len()
            ),
            key: "references",
            allowed: policy.references.to_string(),
            passing: false,
        })
    }

    fn turn_day(&mut self) {
        let day = today();
        if self.day != day {
            (self.day, self.updates) = (day, BTreeSet::new());
            (self.failures, self.evaluations) = (0, 0);
        }
    }
}

/// The hash of the update that a line lists, which is its last word.
fn update_hash(line: &SentLine) -> Option<&str> {
    let update = line.message == UPLOAD && line.content.starts_with(UPDATE);
    update.then(|| line.content.rsplit(' ').next().unwrap_or_default())
}

/// Today's date in UTC.
pub(crate) fn today() -> String {
    OffsetDateTime::now_utc().date().to_string()
}
