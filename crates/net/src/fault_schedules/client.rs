//! A client of a schedule: it connects, pulls work, sends the one-hot update e_k, and starts again after every failure, as
//! `client/session.rs` does. Where it writes its 1 depends on the round, so that an update that counts in another
//! round shows.

use crate::fault_schedules::plan::{CLASSES, MOST_CLIENTS};
use crate::federation::admission::Member;
use crate::wire;
use fedtvd_core::labels::{Ask, Reference, size};
use fedtvd_core::memory::Memory;
use fedtvd_core::model::Params;
use fedtvd_core::round::{ClientId, Job, Report, Upload};
use fedtvd_run::directory::sha256;
use prost::bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Number of hold-out samples of each client.
pub(super) const HOLDOUT: u64 = 8;

/// A client.
pub(super) struct Client {
    pub(super) member: Member,
    /// It does nothing until it is started again.
    pub(super) down: bool,
    pub(super) connection: Option<Connection>,
    pub(super) next: Next,
    /// The request whose answer it waits for.
    pub(super) waits_for: Option<u64>,
    /// Its update that was not acknowledged, as long as its process lives.
    pub(super) unsent: Option<Unsent>,
    /// The last update that was acknowledged.
    pub(super) sent: Option<Unsent>,
    /// Number of times that it was started.
    pub(super) starts: u32,
    /// It was refused for good.
    pub(super) left: bool,
    pub(super) finished: Option<wire::Finished>,
}

/// A connection to a server.
pub(super) struct Connection {
    pub(super) number: u64,
    pub(super) run: String,
    /// The server answers a request for work when this changes, or at this time.
    pub(super) poll: Option<(watch::Receiver<()>, Duration)>,
}

/// What a client sends next.
#[derive(Clone)]
pub(super) enum Next {
    Pull,
    Enrol(wire::Survey),
    Upload,
    Evaluate(u32),
}

/// An update that was not acknowledged.
#[derive(Clone)]
pub(super) struct Unsent {
    pub(super) job: String,
    pub(super) round: u32,
    pub(super) bytes: Bytes,
    pub(super) hash: String,
}

/// Label counts of a client, different for each.
pub(super) fn counts(client: ClientId) -> Vec<u64> {
    (0..CLASSES as u32).map(|class| 1 + u64::from((client * 7 + class * (client + 2)) % 11)).collect()
}

/// Where the 1 of a client's update is in a round.
pub(super) fn place(client: ClientId, round: u32) -> usize {
    (client + MOST_CLIENTS * round) as usize
}

impl Client {
    /// A client that has not connected yet.
    pub(super) fn new(id: ClientId) -> Self {
        let (name, peer) = (format!("client-{id}"), format!("simulated:{id}"));
        Self {
            member: Member { id, name, max_size: 1000, peer, certificate: None },
            down: false,
            connection: None,
            next: Next::Pull,
            waits_for: None,
            unsent: None,
            sent: None,
            starts: 0,
            left: false,
            finished: None,
        }
    }

    /// It has lost its connection.
    pub(super) fn disconnect(&mut self) {
        (self.connection, self.waits_for, self.next) = (None, None, Next::Pull);
    }

    /// Its process was killed and starts again; it has forgotten its update.
    pub(super) fn restart(&mut self) {
        self.disconnect();
        self.unsent = None;
        self.starts += 1;
    }

    /// The answer to a survey.
    pub(super) fn enrolment(&self, run: &str, survey: &wire::Survey) -> wire::Enrolment {
        let ask: Ask = serde_json::from_str(&survey.ask).unwrap();
        let reference: Reference = serde_json::from_str(&survey.reference).unwrap();
        let counts = counts(self.member.id);
        let statistic = serde_json::to_string(&ask.answer(&counts, &reference)).unwrap();
        wire::Enrolment { run: run.to_owned(), size: size(&counts), statistic, holdout: HOLDOUT }
    }

    /// Trains, unless its update of this job was not acknowledged yet.
    pub(super) fn train(&mut self, job: &Job, job_hash: &str, varying: bool) {
        if self.unsent.as_ref().is_some_and(|unsent| unsent.job == job_hash) {
            return;
        }
        let variant = if varying { self.starts } else { 0 };
        let bytes = Bytes::from(one_hot(job, variant).to_bytes());
        let (job, hash, round) = (job_hash.to_owned(), sha256(&bytes), job.offer.round);
        self.unsent = Some(Unsent { job, round, bytes, hash });
    }

    /// What it says about a model.
    pub(super) fn evaluation(&self, run: &str, round: u32) -> wire::Counts {
        let correct = 1 + u64::from(self.member.id) % HOLDOUT;
        wire::Counts { run: run.to_owned(), round, loss: 1.0, confusion: Vec::new(), correct, total: HOLDOUT }
    }
}

/// The answer to a job: e_k, with a minimal honest report. Variants differ in their losses only.
pub(super) fn one_hot(job: &Job, variant: u32) -> Upload {
    let (client, round) = (job.client, job.offer.round);
    let mut params = Params::zeros(Arc::clone(&job.offer.params.layout));
    params.values[place(client, round)] = 1.0;
    let [reach, _] = job.offer.local.reaches(0.0, size(&counts(client)));
    let losses = [1.0 + f64::from(variant), 0.5];
    let report = Report { round, steps: 1, reach, losses, remembers: true, branch: 0 };
    Upload { client, params, carried: Memory::default(), report }
}
