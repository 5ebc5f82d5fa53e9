//! The same rounds without a coordinator, a ledger or a disk: the loop of a simulation, over clients that answer exactly as
//! a schedule's ledger says they did.

use crate::fault_schedules::client::{counts, one_hot};
use crate::federation::coordinator::Terms;
use crate::federation::ledger::{Answer, Closing};
use fedtvd_core::labels::{Reference, size};
use fedtvd_core::model::Params;
use fedtvd_core::round::{
    ClientId, Job, Outcome, Profile, ReadFailure, Run, State, UpdatePart, Updates, check,
};
use fedtvd_run::configuration::EvaluationOptions;
use fedtvd_run::directory::Memories;
use fedtvd_run::fleet::{Answers, Evaluated, Fleet, FleetFailure, Gathered};
use fedtvd_run::rounds::Rounds;
use std::ops::Range;
use std::sync::Arc;

/// The hash of the model after each round.
pub(super) fn model_hashes(
    terms: &Terms,
    seed: u64,
    reference: &Reference,
    closings: Vec<Closing>,
) -> Vec<String> {
    let (run, rounds) = (terms.run.clone(), closings.len());
    let initial = Params::initial(Arc::clone(&terms.layout), seed);
    let state = State::new(&run, initial, reference.clone());
    let (reference, memories) = (reference.clone(), Memories::new());
    let fleet = Simulated { run: run.clone(), reference, closings, round: 0, memories };
    let mut rounds_of = Rounds::new(run, EvaluationOptions::default(), state, Box::new(fleet), None);
    (0..rounds).map(|_| rounds_of.round().unwrap().model_hash).collect()
}

struct Simulated {
    run: Run,
    reference: Reference,
    closings: Vec<Closing>,
    round: usize,
    memories: Memories,
}

impl Fleet for Simulated {
    fn gather(&mut self, state: &State, _: Option<Memories>) -> Result<Gathered, FleetFailure> {
        self.round = state.round as usize;
        let ask = self.run.strategy.asks();
        let profile = |client: &ClientId| {
            let counts = counts(*client);
            Profile::new(*client, size(&counts), ask.answer(&counts, &self.reference))
        };
        let roster = self.closings[self.round].roster.iter();
        let newcomers = roster.filter(|client| state.profile(**client).is_none()).map(profile).collect();
        Ok(Gathered { reference: self.reference.clone(), newcomers })
    }

    fn work(&mut self, jobs: &[Job]) -> Result<Answers, FleetFailure> {
        let (needs, mut updates) = (self.run.strategy.needs(), InMemory::default());
        for job in jobs {
            let client = job.client;
            let (answer, params) = match self.closings[self.round].answers.get(&client) {
                None => continue,
                Some(Answer::Failure(failure)) => (Err(failure.clone()), None),
                Some(Answer::Update { .. }) => {
                    let upload = one_hot(job, 0);
                    (check(&needs, size(&counts(client)), job, &upload), Some(upload.params))
                }
            };
            updates.outcomes.push(Outcome { client, answer });
            updates.params.push(params);
        }
        Ok(Answers { updates: Box::new(updates), traffic: None })
    }

    fn evaluate(&mut self, _: &State, _: &[Job]) -> Result<Evaluated, FleetFailure> {
        Ok(Evaluated::default())
    }

    fn settle(&mut self, _: &State) -> Result<&Memories, FleetFailure> {
        Ok(&self.memories)
    }
}

#[derive(Default)]
struct InMemory {
    outcomes: Vec<Outcome>,
    params: Vec<Option<Params>>,
}

impl Updates for InMemory {
    fn outcomes(&self) -> &[Outcome] {
        &self.outcomes
    }

    fn read(
        &self,
        index: usize,
        _: UpdatePart<'_>,
        range: Range<usize>,
        out: &mut [f32],
    ) -> Result<(), ReadFailure> {
        let params = self.params[index].as_ref().expect("only updates are read");
        out.copy_from_slice(&params.values[range]);
        Ok(())
    }
}
