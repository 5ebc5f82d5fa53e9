//! Clients simulated by threads: workers pull jobs from a queue, longest first, each with its own trainer.

use crate::directory::Memories;
use crate::fleet::own_models::OwnModels;
use crate::fleet::spool::Spool;
use crate::fleet::{Answers, Evaluated, Fleet, FleetFailure, Gathered};
use crate::setup::Setup;
use fedtvd_core::labels::size;
use fedtvd_core::memory::Memory;
use fedtvd_core::model::Params;
use fedtvd_core::round::{
    Assessment, ClientFailure, ClientId, Holdouts, Job, Outcome, Profile, State, Upload, check,
};
use fedtvd_core::rules::Strategy;
use fedtvd_core::train::{Evaluation, TrainFailure, Trainer, client};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// All clients of a simulation.
pub struct Threads {
    setup: Arc<Setup>,
    workers: Vec<Box<dyn Trainer>>,
    /// Each client's memories, by the round that produced them.
    memories: Memories,
    /// Bytes of updates that stay in memory; the others go to a temporary file.
    update_memory: usize,
    strategy: Strategy,
    /// Whether the model is evaluated on the test set.
    test: bool,
}

/// Rows evaluated at once; fixed, because the sum of the losses must not depend on the number of workers.
const CHUNK: usize = 250;

impl Threads {
    /// A fleet over these clients, one worker per trainer. Without `test`, the test set is never read.
    ///
    /// # Panics
    /// Panics if there is no trainer.
    pub fn new(
        setup: Arc<Setup>,
        workers: Vec<Box<dyn Trainer>>,
        update_memory: usize,
        strategy: Strategy,
        test: bool,
    ) -> Self {
        assert!(!workers.is_empty(), "a fleet needs at least one worker");
        Self { setup, workers, memories: Memories::new(), update_memory, strategy, test }
    }

    /// Keeps the memory that the job started from, in case its update is rejected, and the new one.
    fn learn(&mut self, job: &Job, memory: Memory) {
        let versions = self.memories.entry(job.client).or_default();
        versions.retain(|round, _| Some(*round) == job.accepted);
        versions.insert(job.offer.round, memory);
    }
}

impl Fleet for Threads {
    fn gather(&mut self, state: &State, memories: Option<Memories>) -> Result<Gathered, FleetFailure> {
        if let Some(memories) = memories {
            self.memories = memories;
        }
        let reference = state.reference.clone();
        if !state.roster.is_empty() {
            return Ok(Gathered { reference, newcomers: Vec::new() });
        }
        let clients = &self.setup.clients;
        let ask = self.strategy.asks();
        let profiles = clients.iter().enumerate().map(|(id, data)| {
            Profile::new(id as ClientId, size(&data.counts), ask.answer(&data.counts, &reference))
        });
        let newcomers = profiles.collect();
        Ok(Gathered { reference, newcomers })
    }

    fn work(&mut self, jobs: &[Job]) -> Result<Answers, FleetFailure> {
        let spool = Spool::new(self.update_memory);
        let mut longest_first: Vec<&Job> = jobs.iter().collect();
        let clients = &self.setup.clients;
        let rows = |job: &&Job| clients.get(job.client as usize).map(|client| client.rows.len());
        longest_first.sort_by_key(|job| std::cmp::Reverse(rows(job)));
        let (setup, memories, strategy) = (&self.setup, &self.memories, &self.strategy);
        let needs = strategy.needs();
        let answers = share_out(&mut self.workers, longest_first.len(), |trainer, place| {
            let job = longest_first[place];
            if let Some(failure) = spool.failure() {
                return Err(ClientFailure::Training(format!("its update could not be stored: {failure}")));
            }
            let (mut upload, memory) = answer(setup, memories, strategy, job, trainer)?;
            let samples = setup.clients.get(job.client as usize).map_or(0, |client| size(&client.counts));
            let checked = check(&needs, samples, job, &upload)?;
            Ok((checked, spool.keep(&mut upload), memory))
        });
        spool.complete()?;
        let mut kept = Vec::with_capacity(jobs.len());
        for (job, answer) in longest_first.into_iter().zip(answers) {
            let client = job.client;
            kept.push(match answer {
                Ok((checked, update, memory)) => {
                    if !memory.is_empty() {
                        self.learn(job, memory);
                    }
                    (Outcome { client, answer: Ok(checked) }, Some(update))
                }
                Err(failure) => (Outcome { client, answer: Err(failure) }, None),
            });
        }
        Ok(Answers { updates: Box::new(spool.close(kept)), traffic: None })
    }

    fn evaluate(&mut self, state: &State, own: &[Job]) -> Result<Evaluated, FleetFailure> {
        let own = match own {
            [] => None,
            jobs => {
                let clients =
                    OwnModels { setup: &self.setup, memories: &self.memories, strategy: &self.strategy };
                Some(clients.evaluate(jobs, self.test, &mut self.workers))
            }
        };
        // Without the tensors that stay at clients, there is no model to evaluate.
        if !self.setup.parts.all_travel() {
            return Ok(Evaluated { own, ..Evaluated::default() });
        }
        let (classes, workers) = (self.setup.samples.classes(), &mut self.workers);
        let rows = self.setup.samples.test_rows();
        if self.strategy.grouping.is_some() {
            let branches =
                if self.test { evaluate_branches(workers, classes, state, &rows)? } else { BTreeMap::new() };
            return Ok(Evaluated { own, branches, ..Evaluated::default() });
        }
        let model = &state.params;
        let assessment = if self.test {
            let evaluation = evaluate(workers, classes, model, &rows).map_err(FleetFailure::Evaluate)?;
            Assessment::from(&evaluation)
        } else {
            Assessment::default()
        };
        let holdouts = evaluate_holdouts(workers, &self.setup, model).map_err(FleetFailure::Evaluate)?;
        Ok(Evaluated { assessment, holdouts, own, ..Evaluated::default() })
    }

    fn settle(&mut self, state: &State) -> Result<&Memories, FleetFailure> {
        for (client, versions) in &mut self.memories {
            versions.retain(|round, _| state.accepted.get(client) == Some(round));
        }
        Ok(&self.memories)
    }
}

/// Evaluates a model on all workers; the results are summed in the order of the rows.
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

/// Evaluates the models in use.
pub fn evaluate_branches(
    workers: &mut [Box<dyn Trainer>],
    classes: usize,
    state: &State,
    rows: &[u32],
) -> Result<BTreeMap<u32, Assessment>, FleetFailure> {
    let models = state.leaves().filter_map(|branch| Some((branch, state.model(branch)?)));
    let evaluated = models.map(|(branch, model)| {
        let found = evaluate(workers, classes, model, rows).map_err(FleetFailure::Evaluate)?;
        Ok((branch, Assessment::from(&found)))
    });
    evaluated.collect()
}

/// Evaluates a model on the hold-out of every client that has one; `None` if none has. As above, the results do not depend on the
/// number of workers.
pub fn evaluate_holdouts(
    workers: &mut [Box<dyn Trainer>],
    setup: &Setup,
    params: &Params,
) -> Result<Option<Holdouts>, TrainFailure> {
    let clients = || (0..).zip(&setup.clients);
    let chunks: Vec<(ClientId, &[u32])> = clients()
        .flat_map(|(client, data)| data.holdout.chunks(CHUNK).map(move |rows| (client, rows)))
        .collect();
    if chunks.is_empty() {
        return Ok(None);
    }
    let parts =
        share_out(workers, chunks.len(), |trainer, place| trainer.evaluate(params, chunks[place].1, None));
    let classes = setup.samples.classes();
    let mut total = Evaluation::empty(classes);
    let mut each: Vec<(ClientId, Evaluation)> = Vec::new();
    for ((client, _), part) in chunks.into_iter().zip(parts) {
        let part = part?;
        total.add(&part);
        match each.last_mut().filter(|(last, _)| *last == client) {
            Some((_, own)) => own.add(&part),
            None => each.push((client, part)),
        }
    }
    let clients = each.into_iter().map(|(client, own)| (client, own.into())).collect();
    Ok(Some(Holdouts { total, clients }))
}

fn answer(
    setup: &Setup,
    memories: &Memories,
    strategy: &Strategy,
    job: &Job,
    trainer: &mut dyn Trainer,
) -> Result<(Upload, Memory), ClientFailure> {
    let missing = || ClientFailure::BadJob(format!("there is no client {}", job.client));
    let client = setup.clients.get(job.client as usize).ok_or_else(missing)?;
    let memory = job.accepted.and_then(|round| memories.get(&job.client)?.get(&round));
    client::train(strategy, &setup.layout, job, client, memory, trainer)
}

/// Runs `count` tasks on all workers and returns the results in the order of the tasks.
pub(super) fn share_out<T: Send>(
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
