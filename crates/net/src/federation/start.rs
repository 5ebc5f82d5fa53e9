//! Starts or resumes a federation from a configuration, and ends it after its last round.

use crate::federation::clock::{Clock, SystemClock};
use crate::federation::coordinator::Terms;
use crate::federation::dataset_info::DatasetInfo;
use crate::federation::federation_error::FederationError;
use crate::federation::fleet::{Evaluator, Federation};
use crate::federation::ledger::Ledger;
use crate::federation::resumed_schema::Resumed;
use crate::federation::rollback::{restart_memories, roll_back};
use crate::federation::server_evaluator::{Judge, server_evaluator};
use crate::federation::table_schema::TableSchema;
use crate::federation::{Coordinator, Deadline, Event, Log, extra_clients, resumed_schema};
use fedtvd_core::labels::Reference;
use fedtvd_core::model::{Layout, ModelDefinition, Parts};
use fedtvd_core::round::quorum::{check_cohort, check_selection, fewest_clients};
use fedtvd_core::round::{ClientId, State, cohort_size};
use fedtvd_core::train::{Samples, Values};
use fedtvd_data::set::Places;
use fedtvd_run::backend::Device;
use fedtvd_run::configuration::{Config, Experiment, ReferenceSource};
use fedtvd_run::directory::files::{make_folder, write};
use fedtvd_run::directory::{
    Checkpoints, FORMAT, Fingerprint, Inputs, Manifest, RunDirectory, Summary, rules, sha256,
};
use fedtvd_run::rounds::Rounds;
use fedtvd_run::runner::Runner;
use fedtvd_run::setup::{SetupError, definition, parts};
use fedtvd_run::simulation::SimulationError;
use fedtvd_run::start_model::StartModel;
use fedtvd_run::{RunError, fits, same_rules};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The operator's options, besides the configuration.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The only clients that may take part; the first round waits for all of them.
    pub roster: Option<BTreeSet<ClientId>>,
    /// Without a roster: number of clients that the first round waits for, if not as few as the mode allows.
    pub least: Option<usize>,
    /// How long a round waits for answers.
    pub deadline: Deadline,
    /// Whether clients evaluate the model on their hold-outs even if the server has a test set.
    pub clients_evaluate: bool,
    /// Number of threads that evaluate the model on the server.
    pub workers: usize,
    /// What evaluates the model on the server.
    pub device: Device,
    /// The clients' names, as far as they are known.
    pub names: BTreeMap<ClientId, String>,
    /// The round to go back to before the run continues; 0 for the start.
    pub rollback: Option<u32>,
}

/// A federation that is ready to be served.
pub struct Ready {
    /// The coordinator that serves the clients.
    pub coordinator: Arc<Coordinator>,
    /// What is left to do.
    pub work: Work,
}

/// The file in a run directory that says that clients evaluate the models, although the server may have a test set.
const NO_TEST_SET: &str = "no-test-set";

/// What is left to do in a federation.
#[expect(clippy::large_enum_variant, reason = "a process has only one of them")]
pub enum Work {
    /// Rounds, run by this runner.
    Rounds(Runner),
    /// All rounds are done; clients that were away must still be informed.
    Farewell(Summary),
}

/// Starts a federation in a run directory, or resumes the one that is there.
pub fn prepare(
    config: Option<&Config>,
    places: &Places,
    out: &Path,
    options: Options,
    log: Log,
) -> Result<Ready, FederationError> {
    prepare_with(config, places, out, options, log, Arc::new(SystemClock::default()))
}

/// The same with another clock.
pub(crate) fn prepare_with(
    config: Option<&Config>,
    places: &Places,
    out: &Path,
    mut options: Options,
    log: Log,
    clock: Arc<dyn Clock>,
) -> Result<Ready, FederationError> {
    let wanted = config.map(Config::for_federation);
    let existing = existing_federation(out, wanted.as_ref())?;
    if existing.is_none() && options.rollback.is_some() {
        return Err(FederationError::NoFederation(out.display().to_string()));
    }
    options.roster = roster(out, options.roster)?;
    let no_test_set = out.join("federation").join(NO_TEST_SET);
    options.clients_evaluate |= existing.is_some() && no_test_set.exists();
    let Subject { config, mut experiment, info, resumed, least } =
        Subject::of(existing.as_ref(), wanted, places, &options, &log)?;
    let weights = experiment.run.class_weights.check(info.classes);
    weights.map_err(SetupError::from).map_err(RunError::from)?;
    let model = Model::of(&experiment, &info, &options.device)?;
    let directory = existing.map(|(directory, _)| directory);
    directory.iter().for_each(|directory| directory.use_start(&mut experiment));
    let start = StartModel::of(&experiment, &model.definition, &model.parts.whole)
        .map_err(SimulationError::from)
        .map_err(RunError::from)?;
    let directory = match directory {
        Some(directory) => directory,
        None => create(out, &config, &experiment, &info, &model, &start)?,
    };
    let ledger = Ledger::open(&directory.file("federation"))?;
    if options.clients_evaluate && !no_test_set.exists() {
        write(&no_test_set, b"").map_err(RunError::from)?;
    }
    if resumed == Resumed::Edited {
        resumed_schema::take_up(&directory, &config, &info, &new_name())?;
    }
    resumed_schema::store(&directory, &info)?;
    roll_back(&directory, &ledger, &model.parts.shared, options.rollback, &log)?;
    let resolved = experiment.reference.resolve(info.classes);
    let resolved = resolved.map_err(SimulationError::from).map_err(RunError::from)?;
    let aggregated = resolved.is_none();
    let reference = resolved.unwrap_or_else(|| Reference::uniform(info.classes));
    let checkpoints = Checkpoints::new(directory.file("checkpoint"), experiment.rounds);
    let (restored, checkpoints) = restore(&directory, checkpoints, &model.parts.shared, &log)?;
    if let Some(state) = &restored {
        fits(out, &experiment, state).map_err(RunError::from)?;
    }
    let known = restored.as_ref().is_some_and(|state| state.round > 0) || ledger.opening(0)?.is_some();
    let mut state = restored.unwrap_or_else(|| State::new(&experiment.run, start.params, reference));
    restart_memories(&directory, &experiment.run, &mut state, &log)?;
    ledger.discard_after(state.round)?;
    // Clients may connect before their round is gathered, and are checked against the opening of the round.
    if let Some(opening) = ledger.opening(state.round)? {
        (state.roster, state.reference) = (opening.roster, opening.reference);
    }
    let clients_evaluate = options.clients_evaluate || !experiment.evaluation.test;
    let evaluation = info.evaluation(&experiment.data.set, clients_evaluate);
    let tables = TableSchema::of(info.schema, &directory).map_err(RunError::from)?.map(Arc::new);
    let evaluator = match &info.data {
        Some(data) => {
            let (model, device) = (model.definition.clone(), options.device.clone());
            let judge = Judge { model, device, workers: options.workers };
            server_evaluator(&data.loaded, judge, tables.as_ref())?
        }
        None => Evaluator::Clients,
    };
    if experiment.evaluation.patience.is_some() && !matches!(evaluator, Evaluator::Clients) {
        return Err(FederationError::Patience);
    }
    let terms = Terms {
        run_id: ledger.run(&new_name(), options.roster.as_ref())?,
        run: experiment.run.clone(),
        layout: model.parts.shared,
        network: serde_json::to_string(&model.definition).expect("a model is plain data"),
        classes: info.classes,
        class_names: info.names,
        crop: experiment.data.crop,
        flip: experiment.data.flip,
        rounds: experiment.rounds,
        roster: options.roster,
        names: options.names,
        tables,
        clients_evaluate: matches!(evaluator, Evaluator::Clients),
    };
    let aggregated = aggregated && !known;
    let coordinator = Coordinator::new(terms, ledger, Arc::clone(&log), clock, state.clone(), aggregated);
    let coordinator = Arc::new(coordinator);
    if let Some(summary) = directory.summary().map_err(RunError::from)? {
        return Ok(Ready { coordinator, work: Work::Farewell(summary) });
    }
    start.note.into_iter().for_each(|note| log(&Event::Note { note }));
    let strategy = &experiment.run.strategy;
    let note = match (strategy.sharing.stays(), strategy.grouping.is_some()) {
        (Some(stays), _) => without_evaluation(stays),
        (None, true) if matches!(evaluator, Evaluator::Clients) => NO_ONE_MODEL.to_owned(),
        _ => evaluation,
    };
    log(&Event::Note { note });
    let fleet = Federation::new(Arc::clone(&coordinator), least, options.deadline, evaluator);
    let rounds = Rounds::new(experiment.run.clone(), experiment.evaluation, state, Box::new(fleet), None);
    let runner = Runner::over(directory, experiment, rounds, checkpoints)?.of_model(model.definition);
    Ok(Ready { coordinator, work: Work::Rounds(runner) })
}

/// Why clients evaluate no model under a strategy with several.
const NO_ONE_MODEL: &str = "the strategy has several models, and clients evaluate none of them; with a test set the server evaluates each";

/// Why no model is evaluated where a part of it stays at the clients.
fn without_evaluation(stays: &str) -> String {
    format!("the {stays} stay at each client, so that there is no model that the server could evaluate")
}

/// What a federation is about.
struct Subject {
    config: Config,
    experiment: Experiment,
    info: DatasetInfo,
    resumed: Resumed,
    /// Number of clients that the first round waits for.
    least: usize,
}

impl Subject {
    /// Of a federation that exists, on the data and the schema that it was started with; otherwise of the wanted one.
    fn of(
        existing: Option<&(RunDirectory, Config)>,
        wanted: Option<Config>,
        places: &Places,
        options: &Options,
        log: &Log,
    ) -> Result<Self, FederationError> {
        let experiment = |config: &Config| {
            let mut experiment = Experiment::of(config).map_err(RunError::from)?;
            experiment.run.fixed_roster = options.roster.is_some();
            experiment.run.extra = experiment.extra;
            Ok::<_, FederationError>(experiment)
        };
        let config = existing.map(|(_, config)| config.clone()).or_else(|| wanted.clone());
        let config = config.unwrap_or_else(|| Config::default().for_federation());
        let mut subject = experiment(&config)?;
        let least = check_feasible(&subject, options)?;
        if let Some((directory, _)) = existing {
            resumed_schema::find(directory, &mut subject, log);
        }
        let clients_evaluate = options.clients_evaluate || !subject.evaluation.test;
        let info = DatasetInfo::find(&subject, places, clients_evaluate);
        if let (Err(_), Some((directory, _))) = (&info, existing) {
            resumed_schema::check_unread(directory, &subject)?;
        }
        let info = info?;
        if info.open() && !subject.run.fixed_roster {
            return Err(FederationError::NeedsRoster("a schema without all centres and scales".into()));
        }
        let resumed = match existing {
            Some((directory, _)) => resumed_schema::check(directory, &subject, &info, log)?,
            None => Resumed::Same,
        };
        match (resumed, wanted) {
            // The configuration in the run directory has the model that was made for the old schema.
            (Resumed::Edited, Some(config)) => {
                Ok(Self { experiment: experiment(&config)?, config, info, resumed, least })
            }
            _ => Ok(Self { config, experiment: subject, info, resumed, least }),
        }
    }
}

/// The federation in this directory and its configuration, if there is one; fails if another one is asked for.
fn existing_federation(
    out: &Path,
    wanted: Option<&Config>,
) -> Result<Option<(RunDirectory, Config)>, FederationError> {
    if !out.join("manifest.json").is_file() {
        return Ok(None);
    }
    let own = out.display().to_string();
    let directory = RunDirectory::open(out).map_err(RunError::from)?;
    if !directory.is_federation() {
        return Err(FederationError::Simulation(own));
    }
    let text = directory.config().map_err(RunError::from)?;
    let existing = Config::parse(&text).map_err(RunError::from)?;
    same_rules(&directory, &existing)?;
    let same = |wanted: &Config| wanted.with_model_of(&existing).resolved() == existing.resolved();
    if wanted.is_some_and(|wanted| !same(wanted)) {
        return Err(FederationError::OtherConfig(own));
    }
    Ok(Some((directory, existing)))
}

/// Refuses experiments that a federation cannot run; otherwise, the number of clients that the first round waits for.
fn check_feasible(experiment: &Experiment, options: &Options) -> Result<usize, FederationError> {
    if experiment.dropout.any() {
        return Err(FederationError::Dropout);
    }
    if experiment.liars.is_some() {
        return Err(FederationError::Attack);
    }
    let fraction = experiment.run.fraction;
    let least = options.least.unwrap_or_else(|| fewest_clients(&experiment.run)).max(1);
    let clients = options.roster.as_ref().map_or(least, BTreeSet::len);
    check_cohort(&experiment.run, clients)?;
    if options.roster.is_some() || fraction >= 1.0 {
        check_selection(&experiment.run, clients).map_err(SimulationError::from).map_err(RunError::from)?;
    }
    extra_clients::check(experiment.extra, fraction, options.roster.as_ref().map(BTreeSet::len))?;
    let (quorum, cohort) = (experiment.run.quorum, cohort_size(fraction, clients));
    if options.roster.is_some() && quorum > cohort {
        return Err(RunError::from(SimulationError::Quorum { quorum, cohort }).into());
    }
    if experiment.run.fixed_roster {
        return Ok(least);
    }
    if experiment.run.strategy.needs_roster() {
        return Err(FederationError::NeedsRoster(experiment.run.strategy.label.clone()));
    }
    match experiment.reference {
        ReferenceSource::Aggregated => {
            Err(FederationError::NeedsRoster("labels.reference = aggregated".into()))
        }
        ReferenceSource::Uniform | ReferenceSource::Given(_) => Ok(least),
    }
}

/// The model that is trained.
struct Model {
    definition: ModelDefinition,
    parts: Parts,
    fingerprint: Fingerprint,
}

impl Model {
    fn of(experiment: &Experiment, info: &DatasetInfo, device: &Device) -> Result<Self, FederationError> {
        let definition = definition(experiment, info.shape, info.classes).map_err(RunError::from)?;
        let layout = definition.layout().map_err(SetupError::from).map_err(RunError::from)?;
        let parts = parts(experiment, &definition, &Arc::new(layout)).map_err(RunError::from)?;
        // Sites train a model that is not made of layers; this machine may know nothing but its tensors.
        if definition.network().is_some() {
            let values = Values::Floats(vec![0.0; info.shape.iter().product()]);
            let blank = Samples::new(info.shape, info.classes, values, vec![0], 1)
                .expect("one blank sample of label 0 is a valid data set");
            device.trainer(&definition, &Arc::new(blank))?;
        }
        Ok(Self { definition, parts, fingerprint: device.describe()?.fingerprint })
    }
}

/// A new run directory with a folder for the federation.
fn create(
    out: &Path,
    config: &Config,
    experiment: &Experiment,
    info: &DatasetInfo,
    model: &Model,
    start: &StartModel,
) -> Result<RunDirectory, FederationError> {
    // Before the manifest: a directory with a manifest and this folder holds a federation.
    let folder = out.join("federation");
    make_folder(out).and_then(|()| make_folder(&folder)).map_err(RunError::from)?;
    let manifest = Manifest {
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        fingerprint: model.fingerprint.clone(),
        strategy: experiment.run.strategy.label.clone(),
        data_checksum: info.checksum.clone(),
        split_hash: String::new(),
        schema_hash: info.schema_hash(),
        start_hash: start.file.as_deref().map_or_else(String::new, sha256),
        rules: rules(&experiment.run.strategy),
        model_source: model.definition.source().to_owned(),
    };
    let config = config.with_model_for(info.shape).resolved();
    let schema = info.complete_schema();
    let inputs = Inputs { partition: None, schema: schema.as_deref(), start: start.file.as_deref() };
    let created = RunDirectory::create_with(out, &config, &manifest, &inputs);
    Ok(created.map_err(RunError::from)?)
}

/// The roster of a run, which must be the one that it was started with.
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

/// The newest usable checkpoint that `rounds.jsonl` reaches, and the run's checkpoints.
fn restore(
    directory: &RunDirectory,
    checkpoints: Checkpoints,
    layout: &Arc<Layout>,
    log: &Log,
) -> Result<(Option<State>, Checkpoints), FederationError> {
    let done = directory.lines().map_err(RunError::from)?.len() as u32;
    let found = checkpoints.find(layout, done).map_err(RunError::from)?;
    // A server saves every round, after its line.
    let found = found.or_refuse(done, 1).map_err(RunError::from)?;
    for note in found.notes {
        log(&Event::Note { note });
    }
    Ok((found.checkpoint.map(|checkpoint| checkpoint.state), found.checkpoints))
}

/// A unique id for a run.
fn new_name() -> String {
    use std::hash::{BuildHasher as _, RandomState};
    let draw = || RandomState::new().hash_one(Instant::now());
    format!("{:016x}{:016x}", draw(), draw())
}

/// Ends a federation after its last round: removes the updates, and serves until all clients are informed, but no
/// longer than `patience`.
pub fn farewell(
    coordinator: &Coordinator,
    out: &Path,
    summary: &Summary,
    patience: Duration,
) -> Result<(), FederationError> {
    coordinator.ledger.clean(u32::MAX)?;
    let lines = RunDirectory::open(out).and_then(|directory| directory.lines()).map_err(RunError::from)?;
    let hash = lines.last().map_or_else(String::new, |line| line.model_hash.clone());
    coordinator.finish(summary.rounds, hash, patience);
    Ok(())
}
