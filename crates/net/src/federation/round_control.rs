//! The coordinator's methods for the thread that drives the rounds: open a round, wait for answers, close it.

use crate::federation::partial::Partial;
use crate::federation::phase::{Evaluating, Inner, Open, Phase, SharedNumbers};
use crate::federation::stored::Reply;
use crate::federation::table_schema::waiting_for_columns;
use crate::federation::{Coordinator, Event};
use crate::wire;
use fedtvd_core::labels::Reference;
use fedtvd_core::round::hardened::LEAST;
use fedtvd_core::round::{Assessment, ClientId, Job, Profile, hardened, needed};
use fedtvd_run::fleet::FleetFailure;
use prost::bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::MutexGuard;
use std::time::Duration;

/// How often a waiting round logs the clients that it waits for.
const REMINDER: Duration = Duration::from_secs(60);

impl Coordinator {
    /// Waits until all clients of the roster that have a valid certificate are enrolled; without a roster, until
    /// `least` clients are. Later rounds with a roster only wait until any enrolled client has a valid certificate.
    pub fn gather(&self, least: usize) -> Result<(Vec<Profile>, Reference), FleetFailure> {
        let everybody = |inner: &Inner, count: usize| match &self.terms.roster {
            Some(_) if inner.enrolled.round > 0 => inner.anyone_can_answer(),
            Some(roster) => count > 0 && inner.absent(Some(roster)).is_empty(),
            None => count >= least && inner.anyone_can_answer(),
        };
        let mut inner = self.wait(|inner| match &inner.histograms {
            None => true,
            Some(known) => everybody(inner, known.keys().filter(|client| inner.can_answer(**client)).count()),
        })?;
        if let Some(known) = inner.histograms.take() {
            let known = known.iter().filter(|(client, _)| inner.can_answer(**client));
            let known: Vec<_> = known.map(|(_, (size, counts))| (*size, counts.as_slice())).collect();
            let reference = hardened::reference(self.terms.run.mode, &known);
            inner.enrolled.reference = reference.map_err(FleetFailure::Reference)?;
            inner.present.clear();
            self.notify_clients();
        }
        drop(inner);
        let inner = self.wait(|inner| everybody(inner, inner.enrolled.roster.len()))?;
        Ok((inner.enrolled.roster.clone(), inner.enrolled.reference.clone()))
    }

    fn wait(&self, until: impl Fn(&Inner) -> bool) -> Result<MutexGuard<'_, Inner>, FleetFailure> {
        loop {
            let inner = self.wait_until(REMINDER, &until)?;
            if until(&inner) {
                return Ok(inner);
            }
            let (round, clients) = (inner.enrolled.round + 1, inner.absent(self.terms.roster.as_ref()));
            let enrolled = inner.histograms.as_ref().map_or(inner.enrolled.roster.len(), BTreeMap::len);
            drop(inner);
            let (names, missing) = (self.names(&clients), self.missing_statistics());
            (self.log)(&match missing {
                Some(missing) => Event::Note { note: waiting_for_columns(&self.names(&missing)) },
                None if clients.is_empty() => {
                    let note = format!("round {round}: waiting for more clients; {enrolled} enrolled");
                    Event::Note { note }
                }
                None => Event::Waiting { round, clients, names },
            });
        }
    }

    /// Opens a round with the answers and the incomplete uploads that it already has, for at most this long.
    pub(crate) fn open(
        &self,
        round: u32,
        roster: usize,
        jobs: &[Job],
        shared: SharedNumbers,
        (answers, partial): (BTreeMap<ClientId, Reply>, BTreeMap<ClientId, Partial>),
        limit: Option<Duration>,
    ) {
        let mut inner = self.inner();
        inner.enrolled.round = round;
        let asked = jobs.iter().map(|job| job.client).collect();
        let open = Open {
            round,
            jobs: jobs.iter().map(|job| (job.client, job.clone())).collect(),
            answers,
            partial,
            needed: needed(&self.terms.run, roster, jobs.len()),
            shared,
            bytes_down: BTreeMap::new(),
            began: self.now(),
            limit,
            sent: BTreeMap::new(),
            slowest: None,
            expired: false,
        };
        inner.phase = Phase::Training(open);
        drop(inner);
        let deadline_seconds = limit.map(|limit| limit.as_secs_f64());
        (self.log)(&Event::Opened { round: round + 1, asked, roster, deadline_seconds });
        self.notify_clients();
    }

    /// Closes the open round when everybody has answered or at its deadline.
    pub(crate) fn close(&self) -> Result<Open, FleetFailure> {
        let limit = match &self.inner().phase {
            Phase::Training(open) => open.limit.and_then(|limit| open.began.checked_add(limit)),
            _ => None,
        };
        let mut inner = loop {
            let left = limit.map(|limit| limit.saturating_duration_since(self.now()));
            let inner = self.wait_until(left.unwrap_or(REMINDER).min(REMINDER), Inner::complete)?;
            if inner.complete() || limit.is_some_and(|limit| self.now() >= limit) {
                break inner;
            }
            if let Phase::Training(open) = &inner.phase {
                let (round, clients) = (open.round + 1, open.missing());
                drop(inner);
                let names = self.names(&clients);
                (self.log)(&Event::Waiting { round, clients, names });
            }
        };
        let Phase::Training(open) = std::mem::replace(&mut inner.phase, Phase::Between) else {
            return Err(FleetFailure::Stopped);
        };
        let updates = || open.answers.iter().filter_map(|(client, reply)| Some((*client, reply.update()?)));
        let before = updates().map(|(client, update)| (client, (open.round, update.hash.clone())));
        inner.last_accepted.extend(before);
        drop(inner);
        let (accepted, late) = (updates().count(), open.missing());
        (self.log)(&Event::Closed { round: open.round + 1, accepted, late });
        Ok(open)
    }

    fn wait_until(
        &self,
        deadline: Duration,
        until: impl Fn(&Inner) -> bool,
    ) -> Result<MutexGuard<'_, Inner>, FleetFailure> {
        let limit = self.now().checked_add(deadline);
        let mut inner = self.inner();
        while !inner.stop && !until(&inner) {
            let left = limit.map_or(deadline, |limit| limit.saturating_duration_since(self.now()));
            if left.is_zero() {
                break;
            }
            inner = self.clock.wait(&self.inner, inner, left);
        }
        if inner.stop { Err(FleetFailure::Stopped) } else { Ok(inner) }
    }

    /// Evaluates a model on these clients' hold-outs, in client order. Clients that do not answer within this time, or whose
    /// certificate is not valid any more, are left out, and the log names them.
    pub fn evaluate(
        &self,
        round: u32,
        model: Bytes,
        asked: BTreeSet<ClientId>,
        limit: Option<Duration>,
    ) -> Result<Assessment, FleetFailure> {
        self.inner().phase = Phase::Evaluating(Evaluating { round, model, asked, counts: BTreeMap::new() });
        self.notify_clients();
        let end = limit.and_then(|limit| self.now().checked_add(limit));
        let over = |inner: &Inner| match &inner.phase {
            Phase::Evaluating(evaluating) => {
                !evaluating.missing().iter().any(|client| inner.can_answer(*client))
            }
            _ => true,
        };
        let mut inner = loop {
            let left = end.map(|end| end.saturating_duration_since(self.now()));
            let inner = self.wait_until(left.unwrap_or(REMINDER).min(REMINDER), over)?;
            if over(&inner) || end.is_some_and(|end| self.now() >= end) {
                break inner;
            }
            if let Phase::Evaluating(evaluating) = &inner.phase {
                let clients = evaluating.missing();
                drop(inner);
                let names = self.names(&clients);
                (self.log)(&Event::Waiting { round: round + 1, clients, names });
            }
        };
        let Phase::Evaluating(evaluating) = std::mem::replace(&mut inner.phase, Phase::Between) else {
            return Ok(Assessment::default());
        };
        drop(inner);
        let missing = evaluating.missing();
        if !missing.is_empty() {
            let names = self.names(&missing).join(", ");
            let note = format!("round {}: evaluated without {names}, who did not answer", round + 1);
            (self.log)(&Event::Note { note });
        }
        let counts = evaluating.counts.values();
        let assessment = Assessment::by_clients(self.terms.run.mode, self.terms.classes, counts);
        if assessment.accuracy.is_none() {
            let why = not_evaluated(&evaluating);
            (self.log)(&Event::Note { note: format!("round {}: not evaluated: {why}", round + 1) });
            self.inner().not_evaluated = Some((round, why));
        }
        Ok(assessment)
    }

    /// Ends the federation: waits until all clients are informed, but no longer than `patience`.
    pub fn finish(&self, rounds: u32, model_hash: String, patience: Duration) {
        self.inner().phase = Phase::Finished(wire::Finished { rounds, model_hash });
        self.notify_clients();
        let waited = self.wait_until(patience, |inner| {
            let mut roster = inner.enrolled.roster.iter().map(|profile| profile.client);
            roster.all(|client| inner.informed.contains(&client) || !inner.can_answer(client))
        });
        drop(waited);
    }
}

/// Why clients' evaluations of a model do not count.
fn not_evaluated(evaluating: &Evaluating) -> String {
    let asked = evaluating.asked.len();
    match evaluating.counts.values().filter(|found| found.total > 0).count() {
        _ if asked == 0 => "no client answered in this round".to_owned(),
        0 => format!("none of {asked} clients sent an evaluation of hold-out samples"),
        found => {
            format!(
                "{found} of {asked} clients sent an evaluation of hold-out samples, and hardened mode needs {LEAST}"
            )
        }
    }
}
