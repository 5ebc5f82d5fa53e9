//! Where server and clients meet: which phase the federation is in, who is there, and who owes what.
//!
//! Requests come from many connections and are answered from here; one thread drives the rounds and waits here for
//! answers. A lock is held for moments only, and for the one rename that accepts an update.

use crate::event::{Event, Log};
use crate::ledger::{Answer, Ledger};
use crate::wire;
use fedtvd_core::job::{Job, Survey};
use fedtvd_core::layout::Layout;
use fedtvd_core::profile::{ClientId, Profile};
use fedtvd_core::run::{Run, State};
use fedtvd_core::statistic::{Ask, Reference, ReferenceError};
use fedtvd_core::trainer::Evaluation;
use prost::bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use thiserror::Error;
use tokio::sync::watch;

/// How often a round that waits tells for whom.
const REMINDER: Duration = Duration::from_secs(60);
/// A client that was silent for longer is not waited for at the end.
const LATELY: Duration = Duration::from_secs(60);

/// What is constant during a federation.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The run's name.
    pub run_id: String,
    /// What the core needs to know.
    pub run: Run,
    /// The model's tensors.
    pub layout: Arc<Layout>,
    /// The model's layers, as JSON.
    pub network: String,
    /// How many classes there are.
    pub classes: usize,
    /// What they are called.
    pub class_names: Vec<String>,
    /// Training images are shifted by up to this many pixels.
    pub crop: usize,
    /// Every second training image is mirrored.
    pub flip: bool,
    /// How many rounds there will be.
    pub rounds: u32,
    /// The clients that the first round waits for, and no others; none where anybody listed may join at any time.
    pub roster: Option<BTreeSet<ClientId>>,
}

/// The meeting place.
pub struct Hall {
    pub(crate) terms: Terms,
    pub(crate) ledger: Ledger,
    pub(crate) log: Log,
    inner: Mutex<Inner>,
    /// For the thread that drives the rounds: an answer came.
    answered: Condvar,
    /// For clients that wait: there may be something to do.
    changed: watch::Sender<()>,
}

/// All that changes.
pub(crate) struct Inner {
    /// The roster as it grows, and what a newcomer is checked against.
    pub(crate) door: State,
    /// Label counts of clients, while the reference is made of them.
    pub(crate) histograms: Option<BTreeMap<ClientId, Vec<u64>>>,
    /// Clients that said to this process what they have, and how many samples they keep back.
    pub(crate) present: BTreeMap<ClientId, u64>,
    /// Who was heard of, and when last.
    pub(crate) seen: BTreeMap<ClientId, Seen>,
    /// Clients whose update is on its way.
    pub(crate) sending: BTreeSet<ClientId>,
    /// Round and hash of each client's last accepted update.
    pub(crate) before: BTreeMap<ClientId, (u32, String)>,
    pub(crate) phase: Phase,
    /// What the last round came to.
    pub(crate) accuracy: Option<f64>,
    /// Clients that have a valid certificate; none where there are no certificates.
    valid: Option<BTreeSet<ClientId>>,
    stop: bool,
}

impl Inner {
    /// Whether a client can still answer.
    fn may_come(&self, client: ClientId) -> bool {
        self.valid.as_ref().is_none_or(|valid| valid.contains(&client))
    }

    /// Clients of a roster that have not said what they have.
    pub(crate) fn absent(&self, roster: Option<&BTreeSet<ClientId>>) -> Vec<ClientId> {
        let known = |client: &ClientId| match &self.histograms {
            Some(known) => known.contains_key(client),
            None => self.door.profile(*client).is_some(),
        };
        roster.into_iter().flatten().filter(|client| !known(client)).copied().collect()
    }

    /// Whether the open round waits for nobody any more.
    fn complete(&self) -> bool {
        match &self.phase {
            Phase::Training(open) => {
                open.expired || !open.missing().into_iter().any(|client| self.may_come(client))
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
    Judging(Judging),
    /// All rounds are done.
    Finished(wire::Finished),
}

/// A round in which clients train.
pub(crate) struct Open {
    pub(crate) round: u32,
    pub(crate) state: Arc<State>,
    pub(crate) jobs: BTreeMap<ClientId, Job>,
    pub(crate) answers: BTreeMap<ClientId, Answer>,
    /// The part of the jobs' bytes that all of them share.
    pub(crate) shared: Bytes,
    pub(crate) bytes_down: u64,
    pub(crate) began: Instant,
    expired: bool,
}

impl Open {
    /// Clients that have not answered.
    fn missing(&self) -> Vec<ClientId> {
        self.jobs.keys().filter(|client| !self.answers.contains_key(client)).copied().collect()
    }
}

/// A model that clients judge.
pub(crate) struct Judging {
    pub(crate) round: u32,
    pub(crate) model: Bytes,
    pub(crate) asked: BTreeSet<ClientId>,
    pub(crate) counts: BTreeMap<ClientId, Evaluation>,
}

/// What a round's clients came to.
#[derive(Clone, Debug)]
pub struct Answers {
    /// Who answered what.
    pub answers: BTreeMap<ClientId, Answer>,
    /// Bytes that were sent to clients.
    pub bytes_down: u64,
}

/// Why the driver goes no further.
#[derive(Debug, Error)]
pub enum Interrupted {
    /// It was asked to stop.
    #[error("stopped")]
    Stopped,
    /// The clients' labels make no reference.
    #[error("labels.reference = aggregated: {0}")]
    Reference(#[from] ReferenceError),
}

impl Hall {
    /// A hall for a run that stands at this state.
    pub fn new(terms: Terms, ledger: Ledger, log: Log, state: State, aggregated: bool) -> Self {
        let inner = Inner {
            door: state,
            histograms: aggregated.then(BTreeMap::new),
            present: BTreeMap::new(),
            seen: BTreeMap::new(),
            sending: BTreeSet::new(),
            before: BTreeMap::new(),
            phase: Phase::Between,
            accuracy: None,
            valid: None,
            stop: false,
        };
        let changed = watch::Sender::new(());
        Self { terms, ledger, log, inner: Mutex::new(inner), answered: Condvar::new(), changed }
    }

    pub(crate) fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells clients that wait to look again.
    pub(crate) fn call(&self) {
        self.changed.send_replace(());
    }

    /// Something to wait at until there may be work.
    pub(crate) fn calls(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Tells the driver to look again.
    pub(crate) fn ring(&self) {
        self.answered.notify_all();
    }

    /// Says which clients have a valid certificate: rounds do not wait for others.
    pub(crate) fn allow(&self, valid: BTreeSet<ClientId>) {
        let before = self.inner().valid.replace(valid.clone());
        let out: Vec<ClientId> =
            before.iter().flatten().filter(|client| !valid.contains(client)).copied().collect();
        if !out.is_empty() {
            let note =
                format!("clients {out:?} have no valid certificate any more; rounds do not wait for them");
            (self.log)(&Event::Note { note });
        }
        if before.as_ref() != Some(&valid) {
            self.ring();
        }
    }

    /// Ends the driver's waiting for good.
    pub fn stop(&self) {
        self.inner().stop = true;
        self.ring();
    }

    /// Whether this round's jobs, or its model, are still to be had.
    pub(crate) fn at(&self, round: u32) -> bool {
        match &self.inner().phase {
            Phase::Training(open) => open.round == round,
            Phase::Judging(judging) => judging.round == round,
            Phase::Between | Phase::Finished(_) => false,
        }
    }

    /// Ends the waiting for answers to the open round, as its deadline does.
    pub fn expire(&self) {
        if let Phase::Training(open) = &mut self.inner().phase {
            open.expired = true;
        }
        self.ring();
    }

    /// What a client is asked at its first contact.
    pub(crate) fn survey(&self, inner: &Inner) -> Survey {
        match &inner.histograms {
            Some(_) => Survey { ask: Ask::Histogram, reference: Reference::uniform(self.terms.classes) },
            None => {
                let ask = self.terms.run.strategy.weighting.asks();
                Survey { ask, reference: inner.door.reference.clone() }
            }
        }
    }

    /// Waits until all of the roster are enrolled, or so many clients where there is none.
    pub fn gather(&self, least: usize) -> Result<(Vec<Profile>, Reference), Interrupted> {
        let everybody = |has: &dyn Fn(&ClientId) -> bool, count: usize| match &self.terms.roster {
            Some(roster) => roster.iter().all(has),
            None => count >= least,
        };
        let mut inner = self.wait(|inner| match &inner.histograms {
            None => true,
            Some(known) => everybody(&|client| known.contains_key(client), known.len()),
        })?;
        if let Some(known) = inner.histograms.take() {
            inner.door.reference = Reference::aggregated(known.values().map(Vec::as_slice))?;
            inner.present.clear();
            self.call();
        }
        drop(inner);
        let inner = self.wait(|inner| {
            let roster = &inner.door.roster;
            everybody(&|client| inner.door.profile(*client).is_some(), roster.len())
        })?;
        Ok((inner.door.roster.clone(), inner.door.reference.clone()))
    }

    fn wait(&self, until: impl Fn(&Inner) -> bool) -> Result<MutexGuard<'_, Inner>, Interrupted> {
        loop {
            let inner = self.wait_until(REMINDER, &until)?;
            if until(&inner) {
                return Ok(inner);
            }
            let (round, clients) = (inner.door.round + 1, inner.absent(self.terms.roster.as_ref()));
            drop(inner);
            (self.log)(&Event::Waiting { round, clients });
        }
    }

    /// Opens a round with the answers that are there already.
    pub fn open(&self, state: &State, jobs: Vec<Job>, shared: Bytes, answers: BTreeMap<ClientId, Answer>) {
        let mut inner = self.inner();
        inner.door.round = state.round;
        let asked = jobs.iter().map(|job| job.client).collect();
        let open = Open {
            round: state.round,
            state: Arc::new(state.clone()),
            jobs: jobs.into_iter().map(|job| (job.client, job)).collect(),
            answers,
            shared,
            bytes_down: 0,
            began: Instant::now(),
            expired: false,
        };
        inner.phase = Phase::Training(open);
        drop(inner);
        (self.log)(&Event::Opened { round: state.round + 1, asked, roster: state.roster.len() });
        self.call();
    }

    /// Waits until everybody has answered, or the deadline; from then on the round takes no answers.
    pub fn close(&self, deadline: Option<Duration>) -> Result<Answers, Interrupted> {
        let limit = deadline.and_then(|deadline| Instant::now().checked_add(deadline));
        let mut inner = loop {
            let left = limit.map(|limit| limit.saturating_duration_since(Instant::now()));
            let inner = self.wait_until(left.unwrap_or(REMINDER).min(REMINDER), Inner::complete)?;
            if inner.complete() || limit.is_some_and(|limit| Instant::now() >= limit) {
                break inner;
            }
            if let Phase::Training(open) = &inner.phase {
                let (round, clients) = (open.round + 1, open.missing());
                drop(inner);
                (self.log)(&Event::Waiting { round, clients });
            }
        };
        let Phase::Training(open) = std::mem::replace(&mut inner.phase, Phase::Between) else {
            return Err(Interrupted::Stopped);
        };
        for (client, answer) in &open.answers {
            if let Answer::Update { hash, .. } = answer {
                inner.before.insert(*client, (open.round, hash.clone()));
            }
        }
        drop(inner);
        let updates = open.answers.values().filter(|answer| matches!(answer, Answer::Update { .. }));
        let late = open.missing();
        (self.log)(&Event::Closed { round: open.round + 1, accepted: updates.count(), late });
        Ok(Answers { answers: open.answers, bytes_down: open.bytes_down })
    }

    fn wait_until(
        &self,
        deadline: Duration,
        until: impl Fn(&Inner) -> bool,
    ) -> Result<MutexGuard<'_, Inner>, Interrupted> {
        let waiting = |inner: &mut Inner| !inner.stop && !until(inner);
        let waited = self.answered.wait_timeout_while(self.inner(), deadline, waiting);
        let (inner, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if inner.stop { Err(Interrupted::Stopped) } else { Ok(inner) }
    }

    /// What these clients' hold-outs say of a model, summed up in client order; those that stay away are left out.
    pub fn judge(
        &self,
        round: u32,
        model: Bytes,
        asked: BTreeSet<ClientId>,
        patience: Duration,
    ) -> Result<Evaluation, Interrupted> {
        self.inner().phase = Phase::Judging(Judging { round, model, asked, counts: BTreeMap::new() });
        self.call();
        let mut inner = self.wait_until(patience, |inner| match &inner.phase {
            Phase::Judging(judging) => {
                let mut asked = judging.asked.iter();
                asked.all(|client| judging.counts.contains_key(client) || !inner.may_come(*client))
            }
            _ => true,
        })?;
        let mut total = Evaluation::empty(self.terms.classes);
        if let Phase::Judging(judging) = std::mem::replace(&mut inner.phase, Phase::Between) {
            judging.counts.values().for_each(|counts| total.add(counts));
        }
        Ok(total)
    }

    /// What the last round came to, for those who ask.
    pub fn tell(&self, state: &State, accuracy: Option<f64>) {
        let mut inner = self.inner();
        inner.door.round = state.round;
        inner.accuracy = accuracy;
    }

    /// Takes over a round's roster: after a restart it is older than the hall.
    pub(crate) fn admit_roster(&self, state: &State) {
        let mut inner = self.inner();
        inner.door.round = state.round;
        inner.door.reference = state.reference.clone();
        inner.histograms = None;
        for profile in &state.roster {
            match inner.door.roster.binary_search_by_key(&profile.client, |known| known.client) {
                Ok(place) => inner.door.roster[place] = profile.clone(),
                Err(place) => inner.door.roster.insert(place, profile.clone()),
            }
        }
    }

    /// Remembers what was accepted before a restart, so that it does not count again.
    pub fn remember(&self, round: u32, answers: &BTreeMap<ClientId, Answer>) {
        let mut inner = self.inner();
        for (client, answer) in answers {
            if let Answer::Update { hash, .. } = answer {
                inner.before.insert(*client, (round, hash.clone()));
            }
        }
    }

    /// All rounds are done: clients that were heard of lately are told so, within this time.
    pub fn finish(&self, rounds: u32, model_hash: String, patience: Duration) {
        self.inner().phase = Phase::Finished(wire::Finished { rounds, model_hash });
        self.call();
        let lately = |seen: &Seen| seen.last.elapsed() < LATELY;
        let told = self.wait_until(patience, |inner| !inner.seen.values().any(lately));
        drop(told);
    }
}
