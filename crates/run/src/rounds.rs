//! The loop over rounds: gather, plan, work, close, evaluate, settle, record. The same for every fleet.

use crate::configuration::EvaluationOptions;
use crate::directory::Memories;
use crate::directory::{ClientResult, client_results, digest};
use crate::fleet::own_models::by_labels;
use crate::fleet::{Answers, Evaluated, Fleet, FleetFailure, Gathered, Traffic};
use crate::setup::Setup;
use fedtvd_core::labels::tvd;
use fedtvd_core::round::{
    Holdouts, Job, OwnResults, ReadFailure, Refusal, RoundRecord, Run, Spread, State, close, plan,
    plan_own_models,
};
use std::sync::Arc;
use std::time::Instant;
use thiserror::Error;

/// A run in progress.
pub struct Rounds {
    run: Run,
    state: State,
    fleet: Box<dyn Fleet>,
    /// Memories of a checkpoint that the fleet has not received yet.
    restored: Option<Memories>,
    /// The clients' data in a simulation; `None` in a federation.
    setup: Option<Arc<Setup>>,
    evaluation: EvaluationOptions,
    /// What the hold-outs said after the last round, if it was evaluated by this process.
    holdouts: Option<Holdouts>,
    /// How the models did that clients use themselves, likewise.
    own: Option<OwnResults>,
}

/// Why a round cannot be finished. The state stays that before the round.
#[derive(Debug, Error)]
pub enum RoundError {
    /// The clients.
    #[error(transparent)]
    Fleet(#[from] FleetFailure),
    /// A client is not enrolled.
    #[error(transparent)]
    Refusal(#[from] Refusal),
    /// An update could not be read back.
    #[error(transparent)]
    Read(#[from] ReadFailure),
    /// A rule from outside the program could not answer.
    #[error("{0}")]
    Rule(String),
}

impl RoundError {
    /// Whether the user's input is at fault, rather than the work itself.
    pub fn request(&self) -> bool {
        matches!(self, Self::Fleet(FleetFailure::Reference(_)))
    }
}

impl Rounds {
    /// The rounds after this state.
    pub fn new(
        run: Run,
        evaluation: EvaluationOptions,
        state: State,
        fleet: Box<dyn Fleet>,
        setup: Option<Arc<Setup>>,
    ) -> Self {
        Self { run, state, fleet, restored: None, setup, evaluation, holdouts: None, own: None }
    }

    /// Continues from a checkpoint.
    pub fn restore(&mut self, state: State, memories: Memories) {
        self.state = state;
        self.restored = Some(memories);
    }

    /// Everything that changes during the run.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The clients.
    pub fn fleet(&mut self) -> &mut dyn Fleet {
        self.fleet.as_mut()
    }

    /// The content of a checkpoint: the state, and the memories of clients that do not store their own.
    pub fn checkpoint(&mut self) -> Result<(&State, &Memories), RoundError> {
        let memories = match &self.restored {
            Some(memories) => memories,
            None => self.fleet.settle(&self.state)?,
        };
        Ok((&self.state, memories))
    }

    /// The current model on the hold-out of each client of a simulation; `None` if no client has one.
    pub(crate) fn client_results(&mut self) -> Result<Option<Vec<ClientResult>>, RoundError> {
        let Some(setup) = self.setup.clone() else { return Ok(None) };
        if self.holdouts.is_none()
            && self.own.is_none()
            && setup.clients.iter().any(|client| !client.holdout.is_empty())
        {
            // Clients' own models need what the clients remember.
            if let Some(memories) = self.restored.take() {
                self.fleet.gather(&self.state, Some(memories))?;
            }
            let jobs = self.own_model_jobs(&self.state);
            let Evaluated { holdouts, own, .. } = self.fleet.evaluate(&self.state, &jobs)?;
            (self.holdouts, self.own) = (holdouts, own);
        }
        let found = client_results(self.holdouts.as_ref(), self.own.as_ref(), &setup, &self.state.reference);
        Ok((!found.is_empty()).then_some(found))
    }

    /// What the clients need to make the models that they use themselves; empty if the strategy has no such models.
    fn own_model_jobs(&self, state: &State) -> Vec<Job> {
        match self.run.strategy.is_personal() {
            true => {
                plan_own_models(&self.run, state, state.roster.iter().map(|known| known.client).collect())
            }
            false => Vec::new(),
        }
    }

    /// Fails if a rule from outside could not answer: the round does not count.
    fn answered(&self) -> Result<(), RoundError> {
        self.run.strategy.failure().map_or(Ok(()), |why| Err(RoundError::Rule(why)))
    }

    /// One round.
    pub fn round(&mut self) -> Result<RoundRecord, RoundError> {
        let started = Instant::now();
        let Gathered { reference, newcomers } = self.fleet.gather(&self.state, self.restored.take())?;
        let mut state = State { reference, ..self.state.clone() };
        for profile in newcomers {
            state.enrol(&self.run, profile)?;
        }
        let jobs = plan(&self.run, &state);
        self.answered()?;
        let Answers { updates, traffic } = self.fleet.work(&jobs)?;
        self.answered()?;
        let (next, mut record) = close(&self.run, &state, &jobs, updates.as_ref())?;
        self.answered()?;
        let traffic = traffic.unwrap_or_else(|| Traffic::of(&jobs, updates.as_ref()));
        drop(updates);
        let due = self.evaluation.due(record.round);
        let evaluated = match due {
            true => self.fleet.evaluate(&next, &self.own_model_jobs(&next))?,
            false => Evaluated::default(),
        };
        self.fleet.settle(&next)?;
        self.state = next;
        (record.bytes_up, record.bytes_down) = (traffic.up, traffic.down);
        (record.model_hash, record.tensor_hashes) = digest::models(self.state.models());
        describe_evaluation(&mut record, &evaluated, self.evaluation.details);
        (self.holdouts, self.own) = (evaluated.holdouts, evaluated.own);
        if let Some(setup) = &self.setup {
            describe_clients(&mut record, setup, &self.state);
        }
        record.seconds = started.elapsed().as_secs_f64();
        Ok(record)
    }
}

/// Adds what an evaluation found.
fn describe_evaluation(
    record: &mut RoundRecord,
    Evaluated { assessment, holdouts, own, branches }: &Evaluated,
    details: bool,
) {
    (record.accuracy, record.loss) = (assessment.accuracy, assessment.loss);
    (record.chance, record.balanced) = (assessment.chance, assessment.balanced);
    (record.macro_f1, record.missed_classes) = (assessment.macro_f1, assessment.missed_classes.clone());
    (record.median_accuracy, record.median_loss) = (assessment.median_accuracy, assessment.median_loss);
    record.personal = own.as_ref().and_then(OwnResults::summary);
    for own in &mut record.branches {
        if let Some(found) = branches.get(&own.branch) {
            (own.accuracy, own.loss) = (found.accuracy, found.loss);
        }
    }
    record.validation = holdouts.as_ref().and_then(Holdouts::validation);
    record.classes = match (assessment.accuracy, holdouts) {
        (Some(_), _) => Some(assessment.class_accuracy.len()),
        (None, Some(holdouts)) => Some(holdouts.total.class_accuracies().len()),
        (None, None) => None,
    };
    if details && assessment.accuracy.is_some() {
        record.class_accuracy = Some(assessment.class_accuracy.clone());
    }
}

/// Adds what only a simulation knows: the distances that do not follow from what clients reported. A reported distance
/// stays, also that of a liar, because the weights were computed from it.
fn describe_clients(record: &mut RoundRecord, setup: &Setup, state: &State) {
    for client in record.clients.iter_mut().filter(|client| client.tvd.is_none()) {
        let data = setup.clients.get(client.client as usize);
        client.tvd = data.map(|data| tvd(&data.counts, &state.reference));
    }
    if let Some(classes) = &record.class_accuracy {
        let accuracies = setup.clients.iter().map(|client| by_labels(&client.counts, classes));
        record.client_accuracy = Some(Spread::of(accuracies.collect()));
    }
}
