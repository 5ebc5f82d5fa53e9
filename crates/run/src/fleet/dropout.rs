//! Clients that drop out or stop early: a wrapper around any fleet.

use crate::directory::Memories;
use crate::fleet::{Answers, Evaluated, Fleet, FleetFailure, Gathered};
use fedtvd_core::round::{Job, Offer, State};
use fedtvd_core::stream::{Key, Purpose};
use fedtvd_core::train::Local;
use std::sync::Arc;

/// How often clients drop out, drawn for each client and round.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dropout {
    /// The seed.
    pub seed: u64,
    /// Probability that a client does not answer.
    pub absent: f64,
    /// Probability that it finishes fewer epochs, at least one.
    pub partial: f64,
}

impl Dropout {
    /// Whether any client can drop out or stop early.
    pub fn any(&self) -> bool {
        self.absent > 0.0 || self.partial > 0.0
    }

    /// The job with the epochs that its client finishes; `None` if it does not answer.
    fn job(&self, job: &Job) -> Option<Job> {
        let ordered = job.offer.local.epochs;
        let mut stream = Key::of(self.seed).at(Purpose::Absence, job.offer.round, job.client).stream(0);
        let (absent, partial) = (stream.unit() < self.absent, stream.unit() < self.partial);
        let fewer = 1 + stream.below(u64::from(ordered.max(2) - 1)) as u32;
        match (absent, partial && fewer < ordered) {
            (true, _) => None,
            (false, false) => Some(job.clone()),
            (false, true) => {
                let local = Local { epochs: fewer, ..job.offer.local };
                Some(Job { offer: Arc::new(Offer { local, ..Offer::clone(&job.offer) }), ..job.clone() })
            }
        }
    }
}

/// A fleet some of whose clients drop out.
pub struct Unreliable {
    /// The clients.
    pub fleet: Box<dyn Fleet>,
    /// How often they drop out.
    pub dropout: Dropout,
}

impl Fleet for Unreliable {
    fn gather(&mut self, state: &State, memories: Option<Memories>) -> Result<Gathered, FleetFailure> {
        self.fleet.gather(state, memories)
    }

    fn work(&mut self, jobs: &[Job]) -> Result<Answers, FleetFailure> {
        let jobs: Vec<Job> = jobs.iter().filter_map(|job| self.dropout.job(job)).collect();
        self.fleet.work(&jobs)
    }

    fn evaluate(&mut self, state: &State, own: &[Job]) -> Result<Evaluated, FleetFailure> {
        self.fleet.evaluate(state, own)
    }

    fn settle(&mut self, state: &State) -> Result<&Memories, FleetFailure> {
        self.fleet.settle(state)
    }
}
