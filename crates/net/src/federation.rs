//! The rounds of a federation: the same `plan` and `close` as a simulation's, with clients elsewhere.

use crate::drive::Interrupted;
use crate::event::Event;
use crate::hall::Hall;
use crate::ledger::{Answer, Closing, LedgerError, Opening};
use crate::stored::Stored;
use fedtvd_core::job::Job;
use fedtvd_core::layout::Layout;
use fedtvd_core::profile::ClientId;
use fedtvd_core::round::{close, plan};
use fedtvd_core::run::{Run, State};
use fedtvd_core::trainer::{Evaluation, Trainer};
use fedtvd_run::checkpoint::Memories;
use fedtvd_run::fleet::evaluate;
use fedtvd_run::simulation::{Round, Rounds, SimulationError};
use prost::bytes::Bytes;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Who judges the model after a round.
pub(crate) enum Judge {
    /// The server, by its own test set.
    Here { workers: Vec<Box<dyn Trainer>>, rows: Vec<u32>, classes: usize },
    /// The clients of the round, by their hold-outs, within this time.
    Clients(Duration),
}

/// A federation's rounds.
pub(crate) struct Federation {
    pub(crate) hall: Arc<Hall>,
    pub(crate) run: Run,
    pub(crate) state: State,
    pub(crate) layout: Arc<Layout>,
    pub(crate) least: usize,
    pub(crate) deadline: Option<Duration>,
    pub(crate) judge: Judge,
    pub(crate) memories: Memories,
}

impl Federation {
    /// Updates of the open round, or of one that was closed before a crash.
    fn answers(&mut self) -> Result<(Closing, u64), SimulationError> {
        let round = self.state.round;
        let ledger = &self.hall.ledger;
        if let Some(opening) = ledger.opening(round).map_err(clients)? {
            (self.state.roster, self.state.reference) = (opening.roster, opening.reference);
        } else {
            let (roster, reference) = self.hall.gather(self.least).map_err(interrupted)?;
            (self.state.roster, self.state.reference) = (roster, reference);
            let opening =
                Opening { roster: self.state.roster.clone(), reference: self.state.reference.clone() };
            ledger.begin(round, &opening).map_err(clients)?;
        }
        self.hall.admit_roster(&self.state);
        let (kept, notes) = ledger.recover(round).map_err(clients)?;
        notes.into_iter().for_each(|note| (self.hall.log)(&Event::Note { note }));
        if let Some(closing) = ledger.closing(round).map_err(clients)? {
            let whole = |(client, answer): (&ClientId, &Answer)| match answer {
                Answer::Update { .. } => kept.get(client) == Some(answer),
                Answer::Failure(_) => true,
            };
            if closing.answers.iter().all(whole) {
                return Ok((closing, 0));
            }
            // Nothing was made of the answers yet: whose update is gone is asked again.
            (self.hall.log)(&Event::Note { note: format!("round {} is opened again", round + 1) });
        }
        let jobs = plan(&self.run, &self.state);
        let kept =
            kept.into_iter().filter(|(client, _)| jobs.iter().any(|job| job.client == *client)).collect();
        let shared = jobs.first().map(Job::numbers).unwrap_or_default().into();
        self.hall.open(&self.state, jobs, shared, kept);
        let answers = self.hall.close(self.deadline).map_err(interrupted)?;
        let roster = self.state.roster.iter().map(|profile| profile.client).collect();
        let closing = Closing { roster, answers: answers.answers };
        ledger.close(round, &closing).map_err(clients)?;
        Ok((closing, answers.bytes_down))
    }

    fn evaluation(&mut self, round: u32, closing: &Closing) -> Result<Evaluation, SimulationError> {
        match &mut self.judge {
            Judge::Here { workers, rows, classes } => {
                Ok(evaluate(workers, *classes, &self.state.params, rows)?)
            }
            Judge::Clients(patience) => {
                let asked =
                    closing.answers.iter().filter(|(_, answer)| matches!(answer, Answer::Update { .. }));
                let asked = asked.map(|(client, _)| *client).collect();
                let model = Bytes::from(self.state.params.to_safetensors());
                self.hall.judge(round, model, asked, *patience).map_err(interrupted)
            }
        }
    }
}

impl Rounds for Federation {
    fn round(&mut self) -> Result<Round, SimulationError> {
        let started = Instant::now();
        let round = self.state.round;
        // The checkpoint of this round's beginning is on the disk: nothing older is needed.
        self.hall.ledger.clean(round).map_err(clients)?;
        if round > 0
            && let Some(last) = self.hall.ledger.closing(round - 1).map_err(clients)?
        {
            self.hall.remember(round - 1, &last.answers);
        }
        let (closing, bytes_down) = self.answers()?;
        let jobs = plan(&self.run, &self.state);
        let updates = Stored::new(&self.hall.ledger, round, &closing.answers, &self.layout)?;
        let (next, record) = close(&self.run, &self.state, &jobs, &updates)?;
        self.state = next;
        let evaluation = self.evaluation(round, &closing)?;
        let judged = (evaluation.samples() > 0).then(|| evaluation.accuracy());
        self.hall.tell(&self.state, judged);
        let bytes_up = closing.answers.values().map(|answer| match answer {
            Answer::Update { bytes, .. } => *bytes,
            Answer::Failure(_) => 0,
        });
        let bytes_up = bytes_up.sum();
        Ok(Round { record, evaluation, seconds: started.elapsed().as_secs_f64(), bytes_up, bytes_down })
    }

    fn state(&self) -> &State {
        &self.state
    }

    fn memories(&self) -> &Memories {
        &self.memories
    }
}

fn interrupted(interrupted: Interrupted) -> SimulationError {
    match interrupted {
        Interrupted::Stopped => SimulationError::Stopped,
        Interrupted::Reference(error) => SimulationError::Reference(error),
    }
}

fn clients(error: LedgerError) -> SimulationError {
    SimulationError::Clients(error.to_string())
}
