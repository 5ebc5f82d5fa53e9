//! The shared state of a federation: its phase, its clients, and the answers that it waits for.
//!
//! Requests of many connections are answered from here; one thread drives the rounds and waits here for answers. The
//! lock is held only briefly, and for the rename that accepts an update.

use crate::federation::clock::Clock;
use crate::federation::ledger::{Answer, Ledger, Opening};
use crate::federation::phase::{Inner, Phase};
use crate::federation::table_schema::TableSchema;
use crate::federation::{Event, Log};
use fedtvd_core::labels::{Ask, Reference};
use fedtvd_core::model::Layout;
use fedtvd_core::round::{Assessment, ClientId, Run, State, Survey};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::watch;

/// What is constant during a federation.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    /// The run's name.
    pub run_id: String,
    /// The core's settings.
    pub run: Run,
    /// The tensors that travel of the model that the run begins with; later ones may have other widths.
    #[cfg_attr(not(test), expect(dead_code, reason = "fault schedules begin with it"))]
    pub layout: Arc<Layout>,
    /// The model's layers, as JSON.
    pub network: String,
    /// Number of classes.
    pub classes: usize,
    /// Names of the classes.
    pub class_names: Vec<String>,
    /// Training images are shifted by up to this many pixels.
    pub crop: usize,
    /// Training images are mirrored with probability 1/2.
    pub flip: bool,
    /// Number of rounds.
    pub rounds: u32,
    /// The only clients that may take part; the first round waits for all of them. `None` if any listed client may join
    /// at any time.
    pub roster: Option<BTreeSet<ClientId>>,
    /// The clients' names, as far as they are known.
    pub names: BTreeMap<ClientId, String>,
    /// The schema of the clients' tables, if they are tables.
    pub tables: Option<Arc<TableSchema>>,
    /// Whether clients evaluate models, since the server has no test set.
    pub clients_evaluate: bool,
}

/// Coordinates clients and rounds.
pub struct Coordinator {
    pub(crate) terms: Terms,
    pub(crate) ledger: Ledger,
    pub(crate) log: Log,
    pub(crate) inner: Mutex<Inner>,
    pub(super) clock: Arc<dyn Clock>,
    /// Wakes waiting clients: there may be work.
    changed: watch::Sender<()>,
}

impl Coordinator {
    /// A coordinator for a run in this state.
    pub(crate) fn new(
        terms: Terms,
        ledger: Ledger,
        log: Log,
        clock: Arc<dyn Clock>,
        state: State,
        aggregated: bool,
    ) -> Self {
        let inner = Inner {
            enrolled: state,
            histograms: aggregated.then(BTreeMap::new),
            present: BTreeMap::new(),
            seen: BTreeMap::new(),
            sending: BTreeMap::new(),
            last_accepted: BTreeMap::new(),
            informed: BTreeSet::new(),
            phase: Phase::Between,
            accuracy: None,
            median_accuracy: None,
            not_evaluated: None,
            valid: None,
            roster_closed: false,
            stop: false,
        };
        let changed = watch::Sender::new(());
        Self { terms, ledger, log, inner: Mutex::new(inner), clock, changed }
    }

    pub(crate) fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time.
    pub(crate) fn now(&self) -> Instant {
        self.clock.now()
    }

    /// The names of clients; of those without one, their numbers.
    pub(crate) fn names(&self, clients: &[ClientId]) -> Vec<String> {
        let name = |client: &ClientId| match self.terms.names.get(client) {
            Some(name) => name.clone(),
            None => format!("client {client}"),
        };
        clients.iter().map(name).collect()
    }

    /// Wakes waiting clients.
    pub(crate) fn notify_clients(&self) {
        self.changed.send_replace(());
    }

    /// Receives a notification when there may be work.
    pub(crate) fn subscribe(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Wakes the thread that drives the rounds.
    pub(crate) fn notify_driver(&self) {
        self.clock.notify();
    }

    /// Sets the clients that have a valid certificate: rounds do not wait for others.
    pub(crate) fn allow(&self, valid: BTreeSet<ClientId>) {
        let before = self.inner().valid.replace(valid.clone());
        if let Some(before) = &before {
            let note = |clients: Vec<&ClientId>, what: &str| {
                if !clients.is_empty() {
                    (self.log)(&Event::Note { note: format!("clients {clients:?} {what}") });
                }
            };
            let out = before.difference(&valid).collect();
            note(out, "no longer have a valid certificate; rounds do not wait for them");
            note(valid.difference(before).collect(), "have a valid certificate now");
        }
        if before.as_ref() != Some(&valid) {
            self.notify_driver();
        }
    }

    /// Stops the thread that drives the rounds.
    pub fn stop(&self) {
        self.inner().stop = true;
        self.notify_driver();
    }

    /// Whether this round's jobs, or its model, are still available.
    pub(crate) fn at(&self, round: u32) -> bool {
        match &self.inner().phase {
            Phase::Training(open) => open.round == round,
            Phase::Evaluating(evaluating) => evaluating.round == round,
            Phase::Between | Phase::Finished(_) => false,
        }
    }

    /// Ends the open round as if its deadline had passed.
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
                let ask = self.terms.run.strategy.asks();
                Survey { ask, reference: inner.enrolled.reference.clone() }
            }
        }
    }

    /// What clients are asked first.
    pub(crate) fn first_survey(&self) -> Survey {
        self.survey(&self.inner())
    }

    /// Publishes the result of the last round, for status requests.
    pub(crate) fn publish(&self, round: u32, assessment: &Assessment) {
        let mut inner = self.inner();
        inner.enrolled.round = round;
        (inner.accuracy, inner.median_accuracy) = (assessment.accuracy, assessment.median_accuracy);
        inner.not_evaluated = inner.not_evaluated.take().filter(|(evaluated, _)| evaluated + 1 == round);
    }

    /// Restores a round's roster, which after a restart is older than the coordinator.
    pub(crate) fn admit_roster(&self, round: u32, opening: &Opening) {
        let mut inner = self.inner();
        inner.enrolled.round = round;
        inner.enrolled.reference = opening.reference.clone();
        inner.histograms = None;
        inner.roster_closed = self.terms.run.needs_roster();
        for profile in &opening.roster {
            match inner.enrolled.roster.binary_search_by_key(&profile.client, |known| known.client) {
                Ok(place) => inner.enrolled.roster[place] = profile.clone(),
                Err(place) => inner.enrolled.roster.insert(place, profile.clone()),
            }
        }
    }

    /// Remembers the updates accepted before a restart, so that they do not count again.
    pub fn remember(&self, round: u32, answers: &BTreeMap<ClientId, Answer>) {
        let mut inner = self.inner();
        for (client, answer) in answers {
            if let Answer::Update { hash, .. } = answer {
                inner.last_accepted.insert(*client, (round, hash.clone()));
            }
        }
    }
}
