//! A site: its data, its trainer, and what it remembers between rounds. Only updates, counts of the hold-out and the
//! requested label statistic leave it.

use crate::client::agreement::{GROWTH, check_memory, largest_job};
use crate::client::job_memory::job_memory;
use crate::client::join::Options;
use crate::client::policy::{Disclosure, Policy, Violation};
use crate::client::site_data::Readable;
use crate::wire;
use fedtvd_core::labels::{Ask, Reference, size};
use fedtvd_core::memory::Memory;
use fedtvd_core::model::{DefinitionError, ModelDefinition, Params, Parts};
use fedtvd_core::round::{ClientData, ClientEvaluation, ClientFailure, ClientId, Job};
use fedtvd_core::rules::{Strategy, notation};
use fedtvd_core::train::client::train;
use fedtvd_core::train::{Augment, Evaluation, Local, Samples, Trainer};
use fedtvd_data::set::LoadError;
use fedtvd_run::attack::{Attack, Place};
use fedtvd_run::backend::{BackendError, Device};
use fedtvd_run::directory::FileError;
use fedtvd_run::directory::files::{doing, make_folder, sync, write};
use std::path::PathBuf;
use std::sync::Arc;
use thiserror::Error;

/// A site that knows which model it trains.
pub(crate) struct Site {
    client: ClientId,
    trainer: Box<dyn Trainer>,
    device: Device,
    definition: ModelDefinition,
    /// Whether its layers may become wider from round to round.
    grows: bool,
    /// What of the model travels under the announced strategy, and what stays here.
    parts: Parts,
    /// Number of models that a job can bring.
    models: usize,
    data: ClientData,
    /// Number of hold-out samples that it claims to have.
    pub(crate) holdout: u64,
    /// How it lies to the server.
    attack: Option<Attack>,
    policy: Policy,
    /// Folder for the memories of this run.
    folder: PathBuf,
}

/// The largest value of `data.crop` that a configuration can have.
const LARGEST_SHIFT: u64 = 1000;

/// Why a site cannot take part.
#[derive(Debug, Error)]
pub enum SiteError {
    /// A malformed message.
    #[error("the server sent {what} that cannot be read: {why}")]
    Unreadable {
        /// What the server sent.
        what: &'static str,
        /// Why it cannot be read.
        why: String,
    },
    /// A model for samples of another shape.
    #[error(
        "the federation trains on samples of shape {theirs:?} with {their_classes} classes; this site has {ours:?} with {classes}"
    )]
    Shape {
        /// The model's.
        theirs: [usize; 3],
        /// The model's.
        their_classes: usize,
        /// The site's.
        ours: [usize; 3],
        /// The site's.
        classes: usize,
    },
    /// Other class names, or another order: one site's class 0 would be another's class 1.
    #[error("the federation's classes are {}; this site's are {}", .theirs.join(", "), .ours.join(", "))]
    Classes {
        /// The federation's.
        theirs: Vec<String>,
        /// The site's.
        ours: Vec<String>,
    },
    /// A table that does not fit the schema.
    #[error(transparent)]
    Load(#[from] Box<LoadError>),
    /// A table, where the federation does not train on tables.
    #[error("this site has a table, and the federation does not train on tables")]
    NotTables,
    /// Values that were standardised already.
    #[error(
        "centres and scales of this federation come from its sites, so that a site needs its table: give join a CSV file"
    )]
    NeedsTable,
    /// Another label.
    #[error("--label {ours}: the label of the federation's schema is {theirs:?}; leave --label out")]
    Label {
        /// The site's.
        ours: String,
        /// The schema's.
        theirs: String,
    },
    /// Columns that the site does not allow.
    #[error("the server's schema reads columns that --columns does not list: {0}")]
    NotAllowed(String),
    /// Another schema than before.
    #[error(
        "the server sent another schema than at first, which differs in more than centres and scales; a server that changes \
         it can learn values from the differences of statistics. Ask the operator why; the first one is in {}{}",
        .pinned.display(),
        if *.new_run { ". This one is of a new run: to see it, use join --check; to agree, start join again" } else { "" }
    )]
    SchemaChanged {
        /// The file with the first one.
        pinned: PathBuf,
        /// Whether it is the schema of another run, which a new client would accept.
        new_run: bool,
    },
    /// Other statistics than before.
    #[error(
        "the statistics of this site's table differ from those that were sent before in this run; the table has changed, or \
         --test is another one. Their hash is in {}", .pinned.display()
    )]
    StatisticsChanged {
        /// The file with the first schema and the hash of the first statistics.
        pinned: PathBuf,
    },
    /// An invalid model.
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    /// A model that cannot be trained here.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The site's policy does not allow it.
    #[error(transparent)]
    Policy(#[from] Violation),
    /// A file.
    #[error(transparent)]
    File(#[from] FileError),
}

impl SiteError {
    /// What the server is told, if the site's data do not fit: not how they differ, which the site's own people see.
    pub(crate) fn reason_for_server(&self) -> Option<&'static str> {
        match self {
            Self::Load(_) | Self::Label { .. } => Some("its table does not fit the schema"),
            Self::Shape { .. } => Some("its samples have another shape or number of classes"),
            Self::Classes { .. } => Some("its classes are not those of the federation"),
            Self::NotTables => Some("it has a table, and the federation does not train on tables"),
            Self::NeedsTable => Some("it has no table, and the federation needs one"),
            Self::NotAllowed(_) => Some("the schema reads columns that the site does not allow"),
            Self::SchemaChanged { .. } => Some("the schema is not the one that the site agreed to"),
            Self::StatisticsChanged { .. } => Some("its table has changed since it sent statistics"),
            Self::Unreadable { .. }
            | Self::Definition(_)
            | Self::Backend(_)
            | Self::Policy(_)
            | Self::File(_) => None,
        }
    }
}

/// What comes of a job.
pub(crate) enum Answer {
    /// The update's bytes.
    Update(Vec<u8>),
    /// Why there is no update.
    Failure(ClientFailure),
    /// The site's policy does not allow it.
    Refused(Violation),
}

/// Fails if a run's name is not safe as the name of a folder.
pub(crate) fn check_run(run: &str) -> Result<(), SiteError> {
    if run.chars().all(|c| c.is_ascii_alphanumeric()) && !run.is_empty() && run.len() <= 200 {
        return Ok(());
    }
    let why = wire::plain(&format!("\"{run}\""));
    Err(SiteError::Unreadable { what: "a run name", why })
}

/// The model that the server's welcome describes.
fn definition(welcome: &wire::Welcome) -> Result<ModelDefinition, SiteError> {
    let unreadable = |why: String| SiteError::Unreadable { what: "a model", why: wire::plain(&why) };
    ModelDefinition::from_json(&welcome.network).map_err(|error| unreadable(error.to_string()))
}

/// Number of values in the model that the server's welcome describes.
pub(crate) fn model_values(welcome: &wire::Welcome) -> Result<usize, SiteError> {
    Ok(definition(welcome)?.layout()?.len())
}

impl Site {
    /// A site for the run that the server's welcome describes.
    pub(crate) fn new(
        welcome: &wire::Welcome,
        options: &Options,
        data: &Readable,
    ) -> Result<Self, SiteError> {
        let Readable { samples, class_names: names, .. } = data;
        let attack = options.attack;
        let definition = definition(welcome)?;
        let (ours, classes) = (samples.shape(), samples.classes());
        let (theirs, their_classes) = (definition.input(), definition.classes());
        if theirs != ours || their_classes != classes {
            return Err(SiteError::Shape { theirs, their_classes, ours, classes });
        }
        if welcome.classes != *names {
            let theirs = welcome.classes.iter().map(|class| wire::plain(class)).collect();
            return Err(SiteError::Classes { theirs, ours: names.clone() });
        }
        let layout = Arc::new(definition.layout()?);
        let policy = options.policy.clone();
        policy.check_samples(samples.train_rows() as u64)?;
        // Batch size and optimiser are known from the first job on, and checked with each.
        let device = options.device.clone();
        check_memory(&policy, (&device, &definition, &layout), 1, &Local::default().optimizer)??;
        let rows: Vec<u32> = (0..samples.train_rows() as u32).collect();
        let samples = &attack.map_or_else(|| Arc::clone(samples), |attack| attack.samples(samples, &rows));
        let mut counts = vec![0; classes];
        for row in &rows {
            counts[samples.labels()[*row as usize] as usize] += 1;
        }
        if welcome.crop > LARGEST_SHIFT {
            let why = format!("a shift by {} pixels; {LARGEST_SHIFT} are allowed", welcome.crop);
            return Err(SiteError::Unreadable { what: "an augmentation", why });
        }
        let augment = Augment { crop: welcome.crop as usize, flip: welcome.flip };
        let samples = match augment {
            Augment { crop: 0, flip: false } => Arc::clone(samples),
            augment => Arc::new(Samples::clone(samples).augmented(augment)),
        };
        check_run(&welcome.run)?;
        let trainer = device.trainer(&definition, &samples)?;
        let holdout = samples.test_rows();
        let folder = options.folder.join(&welcome.run).join(welcome.client.to_string());
        let data = ClientData { rows, holdout, counts };
        let holdout = match policy.evaluation {
            Disclosure::Nothing => 0,
            Disclosure::Counts | Disclosure::Confusion => data.holdout.len() as u64,
        };
        // A strategy that this version does not know is refused with the first job.
        let strategy = notation::strategy(&welcome.strategy, []);
        let models = strategy.as_ref().map_or(1, |strategy| strategy.models());
        let grows = strategy.as_ref().is_ok_and(|strategy| strategy.matching.is_some());
        let parts =
            strategy.map_or_else(|_| Parts::new(&layout, |_| true), |strategy| strategy.parts(&layout));
        let client = welcome.client;
        Ok(Self {
            client,
            trainer,
            device,
            definition,
            parts,
            models,
            grows,
            data,
            holdout,
            attack,
            policy,
            folder,
        })
    }

    /// The answer to a survey: only what it asks for.
    pub(crate) fn enrolment(&self, run: &str, survey: &wire::Survey) -> Result<wire::Enrolment, SiteError> {
        let unreadable = |error: serde_json::Error| SiteError::Unreadable {
            what: "a survey",
            why: wire::plain(&error.to_string()),
        };
        let ask: Ask = serde_json::from_str(&survey.ask).map_err(unreadable)?;
        let reference: Reference = serde_json::from_str(&survey.reference).map_err(unreadable)?;
        if reference.classes() != self.data.counts.len() {
            let why = format!("a reference over {} classes", reference.classes());
            return Err(SiteError::Unreadable { what: "a survey", why });
        }
        let counts = match &self.attack {
            None => self.data.counts.clone(),
            Some(attack) => attack.counts(&self.data.counts, &reference),
        };
        let statistic = ask.answer(&counts, &reference);
        Ok(wire::Enrolment {
            run: run.to_owned(),
            size: size(&counts),
            statistic: serde_json::to_string(&statistic).expect("a statistic is plain data"),
            holdout: self.holdout,
        })
    }

    /// Whether it reports what it finds when it evaluates a model.
    pub(crate) fn evaluates_honestly(&self) -> bool {
        !self.attack.is_some_and(|attack| attack.acts_on(Place::Evaluation))
    }

    /// The bytes of an update, trained as a job says. What the site must remember is on disk before this returns.
    pub(crate) fn train(&mut self, bytes: &[u8]) -> Result<Answer, FileError> {
        let bad = |why: String| Ok(Answer::Failure(ClientFailure::BadJob(why)));
        let job = match Job::from_bytes(bytes, &self.parts.shared) {
            Ok(job) => job,
            Err(error) => return bad(error.to_string()),
        };
        if job.client != self.client {
            return bad(format!("it is for client {}", job.client));
        }
        let strategy = match notation::strategy(&job.offer.strategy, []) {
            Ok(strategy) => strategy,
            Err(error) => return bad(error.to_string()),
        };
        if let Err(error) = job.offer.class_weights.check(self.data.counts.len()) {
            return bad(format!("its class weights: {error}"));
        }
        let (classes, reference) = (self.data.counts.len(), job.offer.reference.classes());
        if reference != classes {
            return bad(format!("its reference has {reference} shares, but there are {classes} classes"));
        }
        if let Err(violation) = self.check(&job, &strategy, bytes.len()) {
            return Ok(Answer::Refused(violation));
        }
        let memory = match job.accepted {
            Some(round) => self.recall(round)?,
            None => None,
        };
        match train(&strategy, &self.parts.whole, &job, &self.data, memory.as_ref(), self.trainer.as_mut()) {
            Err(failure) => Ok(Answer::Failure(failure)),
            Ok((mut upload, memory)) => {
                if !memory.is_empty() {
                    self.learn(&job, &memory)?;
                }
                if let Some(attack) = &self.attack {
                    // A client knows its own update alone.
                    attack.update(&mut upload, &job, strategy.needs().mu, &self.data.counts, None);
                }
                Ok(Answer::Update(upload.to_bytes()))
            }
        }
    }

    /// Whether the site's policy allows a job that arrived in this number of bytes.
    fn check(&self, job: &Job, strategy: &Strategy, bytes: usize) -> Result<(), Violation> {
        self.policy.check_strategy(&job.offer.strategy)?;
        self.policy.check_epochs(strategy.local.epochs(job.offer.local.epochs))?;
        if let Some(samples) = job.offer.class_weights.effective_samples(&self.data.counts) {
            self.policy.check_effective_samples(samples)?;
        }
        let batch = job.offer.local.batch.min(self.data.rows.len());
        // The layers were checked when the site was made.
        let optimizer = &job.offer.local.optimizer;
        let offered = &job.offer.params.layout;
        let layout = if offered.widths().is_empty() { &self.parts.whole } else { offered };
        let definition = self.definition.with_widths(offered.widths());
        let model = (&self.device, &definition, layout.as_ref());
        check_memory(&self.policy, model, batch, optimizer).unwrap_or(Ok(()))?;
        let memory = self.device.training_memory(&definition, batch, optimizer).unwrap_or(0);
        self.policy.check_memory(memory + job_memory(layout, &strategy.needs(), bytes))
    }

    /// The largest job or model that the server can have for this site.
    pub(crate) fn largest_job(&self) -> u64 {
        // A model that grows takes more bytes than it did at the beginning; each job is checked against the policy.
        largest_job(&self.parts.whole, self.models * if self.grows { GROWTH } else { 1 })
    }

    /// Evaluates a model on the hold-out; the result has only what the site discloses.
    pub(crate) fn evaluate(&mut self, bytes: &[u8]) -> Result<ClientEvaluation, String> {
        let found = ClientEvaluation::from(self.full_evaluation(bytes)?);
        Ok(match self.policy.evaluation {
            Disclosure::Nothing => ClientEvaluation { loss: 0.0, correct: 0, total: 0, confusion: None },
            Disclosure::Counts => ClientEvaluation { confusion: None, ..found },
            Disclosure::Confusion => found,
        })
    }

    fn full_evaluation(&mut self, bytes: &[u8]) -> Result<Evaluation, String> {
        let classes = self.data.counts.len();
        if let Some(found) = self.attack.and_then(|attack| attack.evaluation(classes, self.holdout)) {
            return Ok(found);
        }
        let read = match self.grows {
            true => Params::from_safetensors_of_any_width,
            false => Params::from_safetensors,
        };
        let params = read(bytes, &self.parts.shared).map_err(|error| error.to_string())?;
        if !params.layout.widths().is_empty() {
            let definition = self.definition.with_widths(params.layout.widths());
            let model = (&self.device, &definition, params.layout.as_ref());
            let allowed = check_memory(&self.policy, model, 1, &Local::default().optimizer);
            allowed.unwrap_or(Ok(())).map_err(|violation| violation.to_string())?;
        }
        if !self.parts.all_travel() {
            return Err("a part of the model stays here, and the rest cannot be evaluated alone".to_owned());
        }
        if self.data.holdout.is_empty() {
            return Ok(Evaluation::empty(classes));
        }
        self.trainer.evaluate(&params, &self.data.holdout, None).map_err(|error| error.to_string())
    }

    fn memory(&self, round: u32) -> PathBuf {
        self.folder.join(format!("memory-{round}.safetensors"))
    }

    /// The memory of a round; none if it is lost or damaged, which the round's record will show.
    fn recall(&self, round: u32) -> Result<Option<Memory>, FileError> {
        let path = self.memory(round);
        if !path.exists() {
            return Ok(None);
        }
        let bytes = std::fs::read(&path).map_err(doing("reading", &path))?;
        Ok(Memory::from_bytes(&bytes).ok())
    }

    /// Stores the new memory and keeps the one that the job started from, in case its update is not accepted.
    fn learn(&self, job: &Job, memory: &Memory) -> Result<(), FileError> {
        self.folder.ancestors().take(3).collect::<Vec<_>>().into_iter().rev().try_for_each(make_folder)?;
        write(&self.memory(job.offer.round), &memory.to_bytes())?;
        let kept = [Some(job.offer.round), job.accepted].map(|round| round.map(|round| self.memory(round)));
        for entry in std::fs::read_dir(&self.folder).map_err(doing("reading", &self.folder))? {
            let path = entry.map_err(doing("reading", &self.folder))?.path();
            if !kept.contains(&Some(path.clone())) {
                std::fs::remove_file(&path).map_err(doing("removing", &path))?;
            }
        }
        sync(&self.folder)
    }
}

#[cfg(test)]
mod tests;
