//! A federation as a fleet: clients on other machines, behind the coordinator.

use crate::federation::deadline::Timings;
use crate::federation::ledger::{Answer, Closing, Opening};
use crate::federation::phase::{Open, SharedNumbers};
use crate::federation::recovery::Recovered;
use crate::federation::server_evaluator::OpenTable;
use crate::federation::stored::{Reply, Stored, StoredUpdate};
use crate::federation::{Coordinator, Deadline, Event};
use fedtvd_core::bytes::UploadStream;
use fedtvd_core::round::{Assessment, ClientId, Job, Profile, State};
use fedtvd_core::train::Trainer;
use fedtvd_run::directory::Memories;
use fedtvd_run::fleet::{
    Answers, Evaluated, Fleet, FleetFailure, Gathered, Traffic, evaluate, evaluate_branches,
};
use prost::bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Evaluates the model after a round.
pub(crate) enum Evaluator {
    /// The server, on its own test set.
    Server { workers: Vec<Box<dyn Trainer>>, rows: Vec<u32>, classes: usize },
    /// The server, once the schema of its table is complete.
    Open(Box<OpenTable>),
    /// The clients of the round, on their hold-outs.
    Clients,
}

/// The clients of a federation.
pub(crate) struct Federation {
    coordinator: Arc<Coordinator>,
    least: usize,
    deadline: Deadline,
    timings: Timings,
    evaluator: Evaluator,
    /// The open round.
    round: u32,
    roster: Vec<Profile>,
    /// Clients that answered in the open round, with an update or with the reason why there is none: those whose
    /// training fails on a broken model must be able to say that it is broken.
    answered: BTreeSet<ClientId>,
    /// What the evaluation after the last round said; empty if there was none.
    assessment: Assessment,
    /// Always empty: clients store their own memories.
    memories: Memories,
}

impl Federation {
    /// Without a roster, the first round waits for `least` clients; a round ends at its deadline at the latest.
    pub(crate) fn new(
        coordinator: Arc<Coordinator>,
        least: usize,
        deadline: Deadline,
        evaluator: Evaluator,
    ) -> Self {
        Self {
            timings: Timings::open(&coordinator.ledger.folder),
            coordinator,
            least,
            deadline,
            evaluator,
            round: 0,
            roster: Vec::new(),
            answered: BTreeSet::new(),
            assessment: Assessment::default(),
            memories: Memories::new(),
        }
    }

    /// The answers to these jobs and the number of bytes sent to clients; from the ledger if the round was closed
    /// before a restart.
    fn answers(&mut self, jobs: &[Job]) -> Result<(BTreeMap<ClientId, Reply>, u64), FleetFailure> {
        let (round, ledger) = (self.round, &self.coordinator.ledger);
        let needs = self.coordinator.terms.run.strategy.needs();
        let check = |client: ClientId, bytes: u64| {
            let job = jobs.iter().find(|job| job.client == client)?;
            let profile = self.roster.iter().find(|profile| profile.client == client)?;
            Some(UploadStream::new(needs, profile.size, job.clone(), bytes))
        };
        let Recovered { updates: kept, partial, notes } = ledger.recover(round, &check).map_err(failed)?;
        notes.into_iter().for_each(|note| (self.coordinator.log)(&Event::Note { note }));
        for (client, update) in &kept {
            // A kill may have come between the commit of an update and the line about its acceptance.
            let (client, bytes, update) = (*client, update.bytes, update.hash.clone());
            (self.coordinator.log)(&Event::Recovered { client, round: round + 1, bytes, update });
        }
        if let Some(closing) = ledger.closing(round).map_err(failed)? {
            if let Some(replies) = closing.replies(&kept) {
                return Ok((replies, 0));
            }
            // No result depends on the answers yet: clients whose update was lost get their job again.
            (self.coordinator.log)(&Event::Note { note: format!("round {} is reopened", round + 1) });
        }
        let shared = SharedNumbers::of(jobs);
        let kept = kept.into_iter().map(|(client, update)| (client, Reply::Update(update))).collect();
        let limit = self.deadline.of_round(round, self.timings.slowest());
        self.coordinator.open(round, self.roster.len(), jobs, shared, (kept, partial), limit);
        let Open { answers: replies, bytes_down, slowest, .. } = self.coordinator.close()?;
        let roster = self.roster.iter().map(|profile| profile.client).collect();
        let answers = replies.iter().map(|(client, reply)| (*client, reply.answer())).collect();
        ledger.close(round, &Closing { roster, answers }).map_err(failed)?;
        if let Some(slowest) = slowest {
            self.timings.add(slowest).map_err(failed)?;
        }
        Ok((replies, bytes_down.values().sum()))
    }
}

impl Fleet for Federation {
    fn gather(&mut self, state: &State, _: Option<Memories>) -> Result<Gathered, FleetFailure> {
        let (round, ledger) = (state.round, &self.coordinator.ledger);
        // The checkpoint before this round is on disk: nothing older is needed.
        ledger.clean(round).map_err(failed)?;
        if round > 0
            && let Some(last) = ledger.closing(round - 1).map_err(failed)?
        {
            self.coordinator.remember(round - 1, &last.answers);
        }
        let opening = match ledger.opening(round).map_err(failed)? {
            Some(opening) => opening,
            None => {
                let (mut roster, reference) = self.coordinator.gather(self.least)?;
                if round > 0 && self.coordinator.terms.run.needs_roster() {
                    roster.retain(|profile| state.profile(profile.client).is_some());
                }
                let opening = Opening { roster, reference };
                ledger.begin(round, &opening).map_err(failed)?;
                opening
            }
        };
        self.coordinator.admit_roster(round, &opening);
        let Opening { roster, reference } = opening;
        let newcomers = roster.iter().filter(|profile| state.profile(profile.client).is_none());
        let newcomers = newcomers.cloned().collect();
        (self.round, self.roster) = (round, roster);
        Ok(Gathered { reference, newcomers })
    }

    fn work(&mut self, jobs: &[Job]) -> Result<Answers, FleetFailure> {
        let (replies, down) = self.answers(jobs)?;
        let updates = || replies.iter().filter_map(|(client, reply)| Some((*client, reply.update()?)));
        let up = updates().map(|(_, update)| update.bytes).sum();
        self.answered = replies.keys().copied().collect();
        self.assessment = Assessment::default();
        let updates = Stored::new(&self.coordinator.ledger, self.round, replies).map_err(failed)?;
        Ok(Answers { updates: Box::new(updates), traffic: Some(Traffic { up, down }) })
    }

    fn evaluate(&mut self, state: &State, _: &[Job]) -> Result<Evaluated, FleetFailure> {
        // Without the tensors that stay at clients, there is no model to evaluate.
        if !state.own.is_empty() {
            return Ok(Evaluated::default());
        }
        let grouped = self.coordinator.terms.run.strategy.grouping.is_some();
        let model = &state.params;
        if let Evaluator::Open(table) = &self.evaluator {
            self.evaluator = table.evaluator()?;
        }
        let assessment = match &mut self.evaluator {
            Evaluator::Open(_) => return Err(failed(std::io::Error::other("the table is not read"))),
            Evaluator::Server { workers, rows, classes } if grouped => {
                let branches = evaluate_branches(workers, *classes, state, rows)?;
                return Ok(Evaluated { branches, ..Evaluated::default() });
            }
            // A client would have to evaluate the model of its branch, and another one's says nothing about it.
            Evaluator::Clients if grouped => return Ok(Evaluated::default()),
            Evaluator::Server { workers, rows, classes } => {
                let evaluation = evaluate(workers, *classes, model, rows).map_err(FleetFailure::Evaluate)?;
                Assessment::from(&evaluation)
            }
            Evaluator::Clients => {
                let bytes = Bytes::from(model.to_safetensors());
                let limit = self.deadline.of_evaluation(self.round, self.timings.slowest());
                self.coordinator.evaluate(self.round, bytes, self.answered.clone(), limit)?
            }
        };
        self.assessment = assessment.clone();
        Ok(assessment.into())
    }

    fn settle(&mut self, state: &State) -> Result<&Memories, FleetFailure> {
        self.coordinator.publish(state.round, &self.assessment);
        Ok(&self.memories)
    }
}

impl Closing {
    /// The answers of a closed round with their updates, if all of these are still on disk.
    fn replies(&self, kept: &BTreeMap<ClientId, StoredUpdate>) -> Option<BTreeMap<ClientId, Reply>> {
        let reply = |(client, answer): (&ClientId, &Answer)| match answer {
            Answer::Failure(failure) => Some((*client, Reply::Failure(failure.clone()))),
            Answer::Update { hash, .. } => {
                let update = kept.get(client).filter(|update| update.hash == *hash)?;
                Some((*client, Reply::Update(update.clone())))
            }
        };
        self.answers.iter().map(reply).collect()
    }
}

fn failed(error: impl std::error::Error + Send + Sync + 'static) -> FleetFailure {
    FleetFailure::Other(Box::new(error))
}
