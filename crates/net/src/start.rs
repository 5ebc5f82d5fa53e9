//! From a configuration to a federation that is ready to be served, and from its last round to its end.

use crate::event::{Event, Log};
use crate::federation::{Evaluator, Federation};
use crate::hall::{Hall, Terms};
use crate::known::Known;
use crate::ledger::{Ledger, LedgerError};
use fedtvd_core::layout::Layout;
use fedtvd_core::params::Params;
use fedtvd_core::profile::ClientId;
use fedtvd_core::run::State;
use fedtvd_core::samples::{Samples, Values};
use fedtvd_core::statistic::Reference;
use fedtvd_core::trainer::Trainer;
use fedtvd_data::set::Places;
use fedtvd_nn::Cpu;
use fedtvd_run::checkpoints::Checkpoints;
use fedtvd_run::config::Config;
use fedtvd_run::directory::RunDirectory;
use fedtvd_run::experiment::{Experiment, ReferenceSource};
use fedtvd_run::manifest::{FORMAT, Fingerprint, Manifest};
use fedtvd_run::rounds::Rounds;
use fedtvd_run::runner::{RunError, Runner};
use fedtvd_run::setup::{SetupError, network_for};
use fedtvd_run::simulation::SimulationError;
use fedtvd_run::summary::Summary;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use thiserror::Error;

/// What an operator decides beside the configuration.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The clients that the first round waits for, and no others.
    pub roster: Option<BTreeSet<ClientId>>,
    /// Without a roster: clients that the first round waits for.
    pub least: usize,
    /// How long a round waits for answers.
    pub deadline: Option<Duration>,
    /// Whether the server's own test set is left aside and clients judge the model by their hold-outs.
    pub clients_judge: bool,
    /// Threads that evaluate the model here.
    pub workers: usize,
}

/// Why a federation cannot start.
#[derive(Debug, Error)]
pub enum FederationError {
    /// The run directory or its files.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The ledger.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// A strategy that needs to know all clients before it starts.
    #[error("{0} needs to know all clients before the first round; name them with --roster FILE")]
    NeedsRoster(String),
    /// A roster of nobody.
    #[error("the roster names nobody; write one client's name per line, or leave --roster out")]
    EmptyRoster,
    /// The run began with another roster.
    #[error(
        "the run began {before} and cannot go on with the roster {now:?}; leave --roster out to go on as it began"
    )]
    OtherRoster {
        /// With which.
        before: String,
        /// What is asked for.
        now: BTreeSet<ClientId>,
    },
    /// Troubles that only a simulation makes.
    #[error("cohort.absent and cohort.partial make trouble in simulations; real clients have their own")]
    Trouble,
    /// A data set that is not here and not known.
    #[error(
        "data.set = \"{0}\" is not here, and its shape is not known; name a set of the catalogue, or the folder of one \
         site that fedtvd split --export wrote"
    )]
    Shapeless(String),
    /// The directory holds a run of another configuration.
    #[error("{0} holds a run of another configuration; leave the configuration out to go on with it")]
    OtherConfig(String),
    /// The directory holds a simulation.
    #[error("{0} holds a simulation; choose another --out")]
    Simulation(String),
    /// The model cannot be trained on this machine.
    #[error(transparent)]
    Cpu(#[from] fedtvd_nn::CpuError),
}

/// A federation that is ready to be served.
pub struct Ready {
    /// Where clients are met.
    pub hall: Arc<Hall>,
    /// What is left to do.
    pub work: Work,
}

/// What is left to do in a federation.
#[expect(clippy::large_enum_variant, reason = "there is one of them in a process")]
pub enum Work {
    /// Rounds, which this drives.
    Rounds(Runner),
    /// Nothing but to tell clients that were away that it is over.
    Farewell(Summary),
}

/// How long clients may take to judge a model where rounds have no deadline.
const JUDGING: Duration = Duration::from_secs(60);

/// Starts a federation in a run directory, or goes on with the one that is there.
pub fn prepare(
    config: Option<&Config>,
    places: &Places,
    out: &Path,
    mut options: Options,
    log: Log,
) -> Result<Ready, FederationError> {
    let taken = out.join("manifest.json").is_file();
    let own = out.display().to_string();
    let config = if taken {
        let directory = RunDirectory::open(out).map_err(RunError::from)?;
        if !directory.is_federation() {
            return Err(FederationError::Simulation(own));
        }
        let text = directory.config().map_err(RunError::from)?;
        let there = Config::parse(&text).map_err(RunError::from)?;
        if config.is_some_and(|config| config.resolved() != there.resolved()) {
            return Err(FederationError::OtherConfig(own));
        }
        there
    } else {
        config.cloned().unwrap_or_default()
    };
    options.roster = roster(out, options.roster)?;
    let mut experiment = Experiment::of(&config).map_err(RunError::from)?;
    if experiment.dropout.any() {
        return Err(FederationError::Trouble);
    }
    let aggregated = experiment.reference == ReferenceSource::Aggregated;
    let carries = !experiment.run.strategy.local.needs().carries.is_empty();
    if options.roster.is_none() && (carries || aggregated) {
        let what = if carries {
            experiment.run.strategy.label.clone()
        } else {
            "labels.reference = aggregated".into()
        };
        return Err(FederationError::NeedsRoster(what));
    }
    experiment.run.fixed_roster = options.roster.is_some();
    let site = Known::find(&experiment, places, options.clients_judge)?;
    let network = network_for(&experiment, site.shape, site.classes).map_err(RunError::from)?;
    let layout = Arc::new(Layout::of(&network).map_err(SetupError::from).map_err(RunError::from)?);
    let blank = Samples::new(
        site.shape,
        site.classes,
        Values::Floats(vec![0.0; site.shape.iter().product()]),
        vec![0],
        1,
    )
    .expect("one blank sample of label 0 is a data set");
    let fingerprint = Fingerprint::here(&Cpu::new(&network, Arc::new(blank))?);
    let directory = if taken {
        RunDirectory::open(out)
    } else {
        // Before the manifest: a directory with a manifest and this folder holds a federation.
        let folder = out.join("federation");
        std::fs::create_dir_all(&folder)
            .map_err(fedtvd_run::files::doing("making", &folder))
            .map_err(RunError::from)?;
        let manifest = Manifest {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            fingerprint,
            strategy: experiment.run.strategy.label.clone(),
            data_checksum: site.checksum.clone(),
            split_hash: String::new(),
        };
        RunDirectory::create(out, &config.resolved(), &manifest, None)
    };
    let directory = directory.map_err(RunError::from)?;
    let ledger = Ledger::open(&directory.file("federation"))?;
    let resolved = experiment.reference.resolve(site.classes);
    let resolved = resolved.map_err(SimulationError::from).map_err(RunError::from)?;
    let reference = resolved.unwrap_or_else(|| Reference::uniform(site.classes));
    let params = Params::initial(Arc::clone(&layout), experiment.seed);
    let mut state = State::new(&experiment.run, params, reference);
    let (restored, checkpoints) = restore(&directory, &layout, &log)?;
    let known = restored.as_ref().is_some_and(|state| state.round > 0) || ledger.opening(0)?.is_some();
    if let Some(saved) = restored {
        state = saved;
    }
    // Clients are met before the rounds go on: they are asked against what the open round began with.
    if let Some(opening) = ledger.opening(state.round)? {
        (state.roster, state.reference) = (opening.roster, opening.reference);
    }
    let evaluator = match site.data {
        Some(data) => {
            let rows = data.loaded.samples.test_rows();
            let cpu = |_| Cpu::new(&network, Arc::clone(&data.loaded.samples));
            let cpus: Vec<Cpu> = (0..options.workers.max(1)).map(cpu).collect::<Result<_, _>>()?;
            let workers = cpus.into_iter().map(|cpu| Box::new(cpu) as Box<dyn Trainer>).collect();
            Evaluator::Server { workers, rows, classes: site.classes }
        }
        None => Evaluator::Clients(options.deadline.unwrap_or(JUDGING)),
    };
    let terms = Terms {
        run_id: ledger.run(&new_name(), options.roster.as_ref())?,
        run: experiment.run.clone(),
        layout: Arc::clone(&layout),
        network: serde_json::to_string(&network).expect("a network is plain data"),
        classes: site.classes,
        class_names: site.names,
        crop: experiment.data.crop,
        flip: experiment.data.flip,
        rounds: experiment.rounds,
        roster: options.roster,
    };
    let hall = Arc::new(Hall::new(terms, ledger, log, state.clone(), aggregated && !known));
    if let Some(summary) = directory.summary().map_err(RunError::from)? {
        return Ok(Ready { hall, work: Work::Farewell(summary) });
    }
    let fleet = Federation::new(Arc::clone(&hall), options.least.max(1), options.deadline, evaluator);
    let rounds = Rounds::new(experiment.run.clone(), state, Box::new(fleet), None, experiment.details);
    let runner = Runner::over(directory, experiment, rounds, checkpoints)?;
    Ok(Ready { hall, work: Work::Rounds(runner) })
}

/// The roster that a run goes on with: the one that it began with.
fn roster(
    out: &Path,
    wanted: Option<BTreeSet<ClientId>>,
) -> Result<Option<BTreeSet<ClientId>>, FederationError> {
    if wanted.as_ref().is_some_and(BTreeSet::is_empty) {
        return Err(FederationError::EmptyRoster);
    }
    match (Ledger::roster(&out.join("federation"))?, wanted) {
        (None, wanted) => Ok(wanted),
        (Some(kept), None) => Ok(kept),
        (Some(kept), Some(now)) if kept.as_ref() == Some(&now) => Ok(Some(now)),
        (Some(kept), Some(now)) => {
            let before = kept
                .map_or_else(|| "without a roster".to_owned(), |kept| format!("with the roster {kept:?}"));
            Err(FederationError::OtherRoster { before, now })
        }
    }
}

/// The newest checkpoint that reads and that the lines reach, and where further ones go.
fn restore(
    directory: &RunDirectory,
    layout: &Arc<Layout>,
    log: &Log,
) -> Result<(Option<State>, Checkpoints), FederationError> {
    let done = directory.lines().map_err(RunError::from)?.len() as u32;
    let found = Checkpoints::find(directory.file("checkpoint"), layout, done).map_err(RunError::from)?;
    for note in found.notes {
        log(&Event::Note { note });
    }
    Ok((found.checkpoint.map(|checkpoint| checkpoint.state), found.checkpoints))
}

/// A name that no other run has.
fn new_name() -> String {
    use std::hash::{BuildHasher as _, RandomState};
    let draw = || RandomState::new().hash_one(Instant::now());
    format!("{:016x}{:016x}", draw(), draw())
}

/// What is left to do when all rounds are done: updates go, and clients are told until all know, or for so long.
pub fn farewell(
    hall: &Hall,
    out: &Path,
    summary: &Summary,
    patience: Duration,
) -> Result<(), FederationError> {
    hall.ledger.clean(u32::MAX)?;
    let lines = RunDirectory::open(out).and_then(|directory| directory.lines()).map_err(RunError::from)?;
    let hash = lines.last().map_or_else(String::new, |line| line.model_hash.clone());
    hall.finish(summary.rounds, hash, patience);
    Ok(())
}
