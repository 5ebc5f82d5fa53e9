//! Where server and clients meet: which phase the federation is in, who is there, and who owes what.
//!
//! Requests come from many connections and are answered from here; one thread drives the rounds and waits here for
//! answers. A lock is held for moments only, and for the one rename that accepts an update.

use crate::federation::ledger::{Answer, Ledger, Opening};
use crate::federation::phase::{Inner, Phase};
use crate::federation::{Event, Log};
use fedtvd_core::labels::{Ask, Reference};
use fedtvd_core::model::Layout;
use fedtvd_core::round::{ClientId, Run, State, Survey};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

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
pub struct Coordinator {
    pub(crate) terms: Terms,
    pub(crate) ledger: Ledger,
    pub(crate) log: Log,
    inner: Mutex<Inner>,
    /// For the thread that drives the rounds: an answer came.
    pub(crate) answered: Condvar,
    /// For clients that wait: there may be something to do.
    changed: watch::Sender<()>,
}

impl Coordinator {
    /// A coordinator for a run that stands at this state.
    pub fn new(terms: Terms, ledger: Ledger, log: Log, state: State, aggregated: bool) -> Self {
        let inner = Inner {
            enrolled: state,
            histograms: aggregated.then(BTreeMap::new),
            present: BTreeMap::new(),
            seen: BTreeMap::new(),
            sending: BTreeSet::new(),
            last_accepted: BTreeMap::new(),
            informed: BTreeSet::new(),
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
    pub(crate) fn notify_clients(&self) {
        self.changed.send_replace(());
    }

    /// Something to wait at until there may be work.
    pub(crate) fn subscribe(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Tells the driver to look again.
    pub(crate) fn notify_driver(&self) {
        self.answered.notify_all();
    }

    /// Says which clients have a valid certificate: rounds do not wait for others.
    pub(crate) fn allow(&self, valid: BTreeSet<ClientId>) {
        let before = self.inner().valid.replace(valid.clone());
        if let Some(before) = &before {
            let tell = |clients: Vec<&ClientId>, what: &str| {
                if !clients.is_empty() {
                    (self.log)(&Event::Note { note: format!("clients {clients:?} {what}") });
                }
            };
            let out = before.difference(&valid).collect();
            tell(out, "have no valid certificate any more; rounds do not wait for them");
            tell(valid.difference(before).collect(), "have a valid certificate now");
        }
        if before.as_ref() != Some(&valid) {
            self.notify_driver();
        }
    }

    /// Ends the driver's waiting for good.
    pub fn stop(&self) {
        self.inner().stop = true;
        self.notify_driver();
    }

    /// Whether this round's jobs, or its model, are still to be had.
    pub(crate) fn at(&self, round: u32) -> bool {
        match &self.inner().phase {
            Phase::Training(open) => open.round == round,
            Phase::Evaluating(evaluating) => evaluating.round == round,
            Phase::Between | Phase::Finished(_) => false,
        }
    }

    /// Ends the waiting for answers to the open round, as its deadline does.
    pub fn expire(&self) {
        if let Phase::Training(open) = &mut self.inner().phase {
            open.expired = true;
        }
        self.notify_driver();
    }

    /// What a client is asked at its first contact.
    pub(crate) fn survey(&self, inner: &Inner) -> Survey {
        match &inner.histograms {
            Some(_) => Survey { ask: Ask::Histogram, reference: Reference::uniform(self.terms.classes) },
            None => {
                let ask = self.terms.run.strategy.weighting.asks();
                Survey { ask, reference: inner.enrolled.reference.clone() }
            }
        }
    }

    /// What the last round came to, for those who ask.
    pub(crate) fn publish(&self, round: u32, accuracy: Option<f64>) {
        let mut inner = self.inner();
        inner.enrolled.round = round;
        inner.accuracy = accuracy;
    }

    /// Takes over a round's roster: after a restart it is older than the coordinator.
    pub(crate) fn admit_roster(&self, round: u32, opening: &Opening) {
        let mut inner = self.inner();
        inner.enrolled.round = round;
        inner.enrolled.reference = opening.reference.clone();
        inner.histograms = None;
        for profile in &opening.roster {
            match inner.enrolled.roster.binary_search_by_key(&profile.client, |known| known.client) {
                Ok(place) => inner.enrolled.roster[place] = profile.clone(),
                Err(place) => inner.enrolled.roster.insert(place, profile.clone()),
            }
        }
    }

    /// Remembers what was accepted before a restart, so that it does not count again.
    pub fn remember(&self, round: u32, answers: &BTreeMap<ClientId, Answer>) {
        let mut inner = self.inner();
        for (client, answer) in answers {
            if let Answer::Update { hash, .. } = answer {
                inner.last_accepted.insert(*client, (round, hash.clone()));
            }
        }
    }
}
