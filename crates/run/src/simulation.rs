//! The loop over rounds on one machine.

use crate::checkpoint::Memories;
use crate::experiment::{Experiment, ReferenceSource};
use crate::fleet::Threads;
use crate::manifest::Fingerprint;
use crate::setup::Setup;
use fedtvd_core::enrolment::Refusal;
use fedtvd_core::job::{Fleet, Job, Offer, Survey};
use fedtvd_core::layout::Layout;
use fedtvd_core::memory::Memory;
use fedtvd_core::params::Params;
use fedtvd_core::record::RoundRecord;
use fedtvd_core::round::{close, plan};
use fedtvd_core::run::{Run, State};
use fedtvd_core::statistic::{Ask, Reference, ReferenceError, Statistic};
use fedtvd_core::trainer::{Evaluation, TrainFailure, Trainer};
use fedtvd_core::updates::{ReadFailure, Updates, Upload};
use fedtvd_nn::{Cpu, CpuError};
use std::sync::Arc;
use std::time::Instant;
use thiserror::Error;

/// A run in progress.
pub struct Simulation {
    run: Run,
    state: State,
    fleet: Threads,
    test_rows: Vec<u32>,
    fingerprint: Fingerprint,
}

/// What a run may use; it changes no bit of the result.
#[derive(Clone, Copy, Debug)]
pub struct Means {
    /// Threads that train clients.
    pub workers: usize,
    /// Bytes of updates that stay in memory; the others go to a temporary file.
    pub update_memory: usize,
}

impl Means {
    /// So many workers and the usual memory.
    pub fn workers(workers: usize) -> Self {
        Self { workers, update_memory: 128 << 20 }
    }
}

/// Why a run cannot start or go on.
#[derive(Debug, Error)]
pub enum SimulationError {
    /// The model cannot be trained here.
    #[error(transparent)]
    Cpu(#[from] CpuError),
    /// A client is not enrolled.
    #[error(transparent)]
    Refusal(#[from] Refusal),
    /// The reference does not fit.
    #[error("labels.reference: {0}")]
    Reference(#[from] ReferenceError),
    /// The reference is for another number of classes.
    #[error("labels.reference has {got} numbers; the data set has {classes} classes")]
    Classes {
        /// How many numbers.
        got: usize,
        /// How many classes.
        classes: usize,
    },
    /// An update could not be read back.
    #[error(transparent)]
    Read(#[from] ReadFailure),
    /// The disk did not take the updates.
    #[error(
        "the updates of a round do not fit into a temporary file in {folder}: {why}; make room there, let TMPDIR name \
         another folder, or keep more updates in memory with --update-memory"
    )]
    Spool {
        /// Where temporary files are made.
        folder: String,
        /// What the system says.
        why: String,
    },
    /// Nothing to judge the model by.
    #[error("the data set has no test rows to judge the model by")]
    NoTest,
    /// The global model could not be evaluated.
    #[error("evaluating the global model: {0}")]
    Evaluate(#[from] TrainFailure),
    /// The clients of a federation could not be reached or served.
    #[error("{0}")]
    Clients(String),
    /// The run was asked to stop in the middle of a round.
    #[error("stopped")]
    Stopped,
}

/// What a round came to.
#[derive(Clone, Debug)]
pub struct Round {
    /// Who counted how much, and why.
    pub record: RoundRecord,
    /// The global model on the test set.
    pub evaluation: Evaluation,
    /// How long it took.
    pub seconds: f64,
    /// What the clients of a real federation would have sent.
    pub bytes_up: u64,
    /// What they would have been sent.
    pub bytes_down: u64,
}

/// Where rounds come from: clients on this machine or on others.
pub trait Rounds: Send {
    /// One round: plan, work, close, evaluate.
    fn round(&mut self) -> Result<Round, SimulationError>;
    /// All that changes during the run.
    fn state(&self) -> &State;
    /// What each client remembers; nothing where clients keep it themselves.
    fn memories(&self) -> &Memories;
}

impl SimulationError {
    /// Whether the request was wrong, rather than the work.
    pub fn request(&self) -> bool {
        matches!(self, Self::Cpu(_) | Self::Reference(_) | Self::Classes { .. } | Self::NoTest)
    }
}

impl Simulation {
    /// Everything before the first round: workers, the initial model, the clients' profiles.
    pub fn new(experiment: &Experiment, setup: &Arc<Setup>, means: Means) -> Result<Self, SimulationError> {
        let worker = |_| Cpu::new(&setup.network, Arc::clone(&setup.samples));
        let cpus: Vec<Cpu> = (0..means.workers.max(1)).map(worker).collect::<Result<_, _>>()?;
        let fingerprint = Fingerprint::here(&cpus[0]);
        let workers = cpus.into_iter().map(|cpu| Box::new(cpu) as Box<dyn Trainer>).collect();
        Self::with_workers(experiment, setup, workers, fingerprint, means.update_memory)
    }

    /// The same on these trainers, of machines with this fingerprint.
    pub fn with_workers(
        experiment: &Experiment,
        setup: &Arc<Setup>,
        workers: Vec<Box<dyn Trainer>>,
        fingerprint: Fingerprint,
        update_memory: usize,
    ) -> Result<Self, SimulationError> {
        let test_rows = setup.samples.test_rows();
        if test_rows.is_empty() {
            return Err(SimulationError::NoTest);
        }
        let mut fleet = Threads::new(Arc::clone(setup), workers, update_memory, experiment.trouble);
        let run = experiment.run.clone();
        let reference = reference(&experiment.reference, setup.samples.classes(), &mut fleet)?;
        let params = Params::initial(Arc::clone(&setup.layout), experiment.seed);
        let survey = Survey { ask: run.strategy.weighting.asks(), reference: reference.clone() };
        let mut state = State::new(&run, params, reference);
        for profile in fleet.survey(&survey) {
            state.enrol(&run, profile)?;
        }
        Ok(Self { run, state, fleet, test_rows, fingerprint })
    }

    /// Goes on from a saved state; clients' memories are the fleet's.
    pub fn restore(&mut self, state: State) {
        self.state = state;
    }

    /// What the bits of the result depend on beside the seed.
    pub fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }

    /// The clients.
    pub fn fleet(&mut self) -> &mut Threads {
        &mut self.fleet
    }
}

impl Rounds for Simulation {
    fn round(&mut self) -> Result<Round, SimulationError> {
        let started = Instant::now();
        let jobs = plan(&self.run, &self.state);
        let updates = self.fleet.work(&jobs);
        if let Some(why) = self.fleet.spool_failure() {
            let folder = std::env::temp_dir().display().to_string();
            return Err(SimulationError::Spool { folder, why: why.to_owned() });
        }
        let (next, record) = close(&self.run, &self.state, &jobs, updates.as_ref())?;
        let (bytes_up, bytes_down) = traffic(&jobs, updates.as_ref());
        self.state = next;
        self.fleet.settle(&jobs, &self.state.accepted);
        let evaluation = self.fleet.evaluate(&self.state.params, &self.test_rows)?;
        Ok(Round { record, evaluation, seconds: started.elapsed().as_secs_f64(), bytes_up, bytes_down })
    }

    fn state(&self) -> &State {
        &self.state
    }

    fn memories(&self) -> &Memories {
        self.fleet.memories()
    }
}

/// Bytes up and down in a real federation, to a few digits of the headers: one job and one upload are encoded without
/// their numbers, and the others of the round are like them.
fn traffic(jobs: &[Job], updates: &dyn Updates) -> (u64, u64) {
    let Some(job) = jobs.first() else { return (0, 0) };
    let layout = &job.offer.params.layout;
    let carried = job.offer.carried.arrays().map(|(_, array)| array.len()).sum::<usize>();
    let numbers = 4 * (layout.len() + carried) as u64;
    let (params, carried) = (Params::zeros(Arc::new(Layout::vector(0))), Memory::default());
    let offer =
        Offer { params: Arc::new(params.clone()), carried: Arc::default(), ..Offer::clone(&job.offer) };
    let down = numbers + Job { offer: Arc::new(offer), ..job.clone() }.to_bytes().len() as u64;
    let mut answered = updates.outcomes().iter().filter_map(|outcome| outcome.answer.as_ref().ok());
    let up = answered.next().map_or(0, |report| {
        let upload = Upload { client: job.client, params, carried, report: *report };
        (numbers + upload.to_bytes().len() as u64) * (1 + answered.count() as u64)
    });
    (up, down * jobs.len() as u64)
}

/// Q, collected from all clients where the experiment says so.
fn reference(
    source: &ReferenceSource,
    classes: usize,
    fleet: &mut Threads,
) -> Result<Reference, SimulationError> {
    match source {
        ReferenceSource::Uniform => Ok(Reference::uniform(classes)),
        ReferenceSource::Given(given) if given.classes() == classes => Ok(given.clone()),
        ReferenceSource::Given(given) => Err(SimulationError::Classes { got: given.classes(), classes }),
        ReferenceSource::Aggregated => {
            let survey = Survey { ask: Ask::Histogram, reference: Reference::uniform(classes) };
            let profiles = fleet.survey(&survey);
            let counts = profiles.iter().filter_map(|profile| match &profile.statistic {
                Statistic::Histogram(counts) => Some(counts.as_slice()),
                _ => None,
            });
            Ok(Reference::aggregated(counts)?)
        }
    }
}
