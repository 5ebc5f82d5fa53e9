//! Clients played by threads: workers pull jobs from a queue, longest first, each with its own trainer.

use crate::checkpoint::Memories;
use crate::setup::Setup;
use crate::spool::Spool;
use fedtvd_core::client;
use fedtvd_core::failure::ClientFailure;
use fedtvd_core::job::{Fleet, Job, Offer, Survey};
use fedtvd_core::local::Local;
use fedtvd_core::memory::Memory;
use fedtvd_core::notation;
use fedtvd_core::params::Params;
use fedtvd_core::profile::{ClientId, Profile};
use fedtvd_core::recipe::Strategy;
use fedtvd_core::statistic::size;
use fedtvd_core::stream::{Key, Purpose};
use fedtvd_core::trainer::{Evaluation, TrainFailure, Trainer};
use fedtvd_core::updates::{Outcome, Updates, Upload};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// All clients of a simulation.
pub struct Threads {
    setup: Arc<Setup>,
    workers: Vec<Box<dyn Trainer>>,
    /// For each client what it remembers, by the round in which it learned it.
    memories: Memories,
    /// Bytes of updates that stay in memory; the others go to a temporary file.
    update_memory: usize,
    trouble: Trouble,
    spool_failure: Option<String>,
}

/// What can happen to clients, drawn for each client and round.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trouble {
    /// Where it is drawn from.
    pub seed: u64,
    /// Probability that a client vanishes.
    pub absent: f64,
    /// Probability that it finishes fewer epochs, at least one.
    pub partial: f64,
}

impl Trouble {
    /// How many epochs a client finishes; `None` where it vanishes.
    fn epochs(&self, job: &Job) -> Option<u32> {
        let ordered = job.offer.local.epochs;
        if self.absent == 0.0 && self.partial == 0.0 {
            return Some(ordered);
        }
        let mut stream = Key::of(self.seed).at(Purpose::Absence, job.offer.round, job.client).stream(0);
        let (vanishes, tires) = (stream.unit() < self.absent, stream.unit() < self.partial);
        let fewer = 1 + stream.below(u64::from(ordered.max(2) - 1)) as u32;
        (!vanishes).then_some(if tires { fewer.min(ordered) } else { ordered })
    }
}

/// Test rows evaluated at once: the sum of the losses must not depend on the number of workers.
const CHUNK: usize = 250;

impl Threads {
    /// A fleet over these clients, one worker per trainer.
    ///
    /// # Panics
    /// When there is no trainer.
    pub fn new(
        setup: Arc<Setup>,
        workers: Vec<Box<dyn Trainer>>,
        update_memory: usize,
        trouble: Trouble,
    ) -> Self {
        assert!(!workers.is_empty(), "a fleet needs at least one worker");
        Self { setup, workers, memories: Memories::new(), update_memory, trouble, spool_failure: None }
    }

    /// Evaluates a model on all workers; the sums are taken in the order of the rows.
    pub fn evaluate(&mut self, params: &Params, rows: &[u32]) -> Result<Evaluation, TrainFailure> {
        evaluate(&mut self.workers, self.setup.samples.classes(), params, rows)
    }

    /// What each client remembers, by the round in which it learned it.
    pub fn memories(&self) -> &Memories {
        &self.memories
    }

    /// Gives clients their memories back.
    pub fn remember(&mut self, memories: Memories) {
        self.memories = memories;
    }

    /// Why the last round's updates could not all be kept, if they could not.
    pub fn spool_failure(&self) -> Option<&str> {
        self.spool_failure.as_deref()
    }

    /// Lets go of all that the clients of these jobs remember but what they learned in their last accepted round, as
    /// the state after the round has it.
    pub fn settle(&mut self, jobs: &[Job], accepted: &BTreeMap<ClientId, u32>) {
        for Job { client, .. } in jobs {
            if let Some(versions) = self.memories.get_mut(client) {
                versions.retain(|round, _| accepted.get(client) == Some(round));
            }
        }
    }

    /// Keeps the memory that the job went on from, in case its update is not accepted, and the new one.
    fn learn(&mut self, job: &Job, memory: Memory) {
        let versions = self.memories.entry(job.client).or_default();
        versions.retain(|round, _| Some(*round) == job.accepted);
        versions.insert(job.offer.round, memory);
    }
}

impl Fleet for Threads {
    fn survey(&mut self, survey: &Survey) -> Vec<Profile> {
        let answer = |(id, data): (usize, &crate::setup::ClientData)| Profile {
            client: id as ClientId,
            size: size(&data.counts),
            statistic: survey.ask.answer(&data.counts, &survey.reference),
        };
        self.setup.clients.iter().enumerate().map(answer).collect()
    }

    fn work(&mut self, jobs: &[Job]) -> Box<dyn Updates> {
        let spool = Spool::new(self.update_memory);
        let Some(first) = jobs.first() else { return Box::new(spool.close(Vec::new())) };
        let strategy = notation::strategy(&first.offer.strategy, [])
            .map_err(|error| ClientFailure::BadJob(error.to_string()));
        let mut longest_first: Vec<&Job> = jobs.iter().collect();
        longest_first
            .sort_by_key(|job| std::cmp::Reverse(self.setup.client(job.client).map(|c| c.rows.len())));
        let (setup, memories, trouble) = (&self.setup, &self.memories, &self.trouble);
        let answers = share_out(&mut self.workers, longest_first.len(), |trainer, place| {
            let job = longest_first[place];
            if let Some(failure) = spool.failure() {
                return Err(ClientFailure::Training(format!("there is no room for its update: {failure}")));
            }
            let strategy = strategy.as_ref().map_err(Clone::clone)?;
            let job = shortened(job, trouble.epochs(job).ok_or(ClientFailure::Absent)?);
            let (mut upload, memory) = answer(setup, memories, strategy, &job, trainer)?;
            let kept = spool.keep(&mut upload);
            Ok((upload.report, kept, memory))
        });
        self.spool_failure = spool.failure();
        let mut kept = Vec::with_capacity(jobs.len());
        for (job, answer) in longest_first.into_iter().zip(answers) {
            let client = job.client;
            kept.push(match answer {
                Ok((report, update, memory)) => {
                    if !memory.is_empty() {
                        self.learn(job, memory);
                    }
                    (Outcome { client, answer: Ok(report) }, Some(update))
                }
                Err(failure) => (Outcome { client, answer: Err(failure) }, None),
            });
        }
        Box::new(spool.close(kept))
    }
}

/// Evaluates a model on all workers; the sums are taken in the order of the rows.
pub fn evaluate(
    workers: &mut [Box<dyn Trainer>],
    classes: usize,
    params: &Params,
    rows: &[u32],
) -> Result<Evaluation, TrainFailure> {
    let chunks: Vec<&[u32]> = rows.chunks(CHUNK).collect();
    let parts =
        share_out(workers, chunks.len(), |trainer, chunk| trainer.evaluate(params, chunks[chunk], None));
    let mut total = Evaluation::empty(classes);
    for part in parts {
        total.add(&part?);
    }
    Ok(total)
}

/// The job with so many epochs.
fn shortened(job: &Job, epochs: u32) -> Job {
    if epochs == job.offer.local.epochs {
        return job.clone();
    }
    let local = Local { epochs, ..job.offer.local };
    Job { offer: Arc::new(Offer { local, ..Offer::clone(&job.offer) }), ..job.clone() }
}

fn answer(
    setup: &Setup,
    memories: &Memories,
    strategy: &Strategy,
    job: &Job,
    trainer: &mut dyn Trainer,
) -> Result<(Upload, Memory), ClientFailure> {
    let client = setup
        .client(job.client)
        .ok_or_else(|| ClientFailure::BadJob(format!("there is no client {}", job.client)))?;
    let memory = job.accepted.and_then(|round| memories.get(&job.client)?.get(&round));
    client::train(strategy, job, &client, memory, trainer)
}

/// Does `count` pieces of work on all workers, and gives the results in the order of the pieces.
fn share_out<T: Send>(
    workers: &mut [Box<dyn Trainer>],
    count: usize,
    work: impl Fn(&mut dyn Trainer, usize) -> T + Sync,
) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(count));
    let pull = |trainer: &mut dyn Trainer| {
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            if place >= count {
                return;
            }
            let result = work(trainer, place);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((place, result));
        }
    };
    match workers {
        [only] => pull(only.as_mut()),
        several => std::thread::scope(|scope| {
            for trainer in several {
                scope.spawn(|| pull(trainer.as_mut()));
            }
        }),
    }
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, result)| result).collect()
}
