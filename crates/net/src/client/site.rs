//! A site: its data, its trainer, and what it remembers between rounds. Only updates, counts of the hold-out and the
//! requested label statistic leave it.

use crate::client::join::Options;
use crate::client::site_data::Readable;
use crate::wire;
use fedtvd_core::labels::{Ask, Reference, size};
use fedtvd_core::memory::Memory;
use fedtvd_core::model::{Layout, Network, NetworkError, Params};
use fedtvd_core::round::{ClientData, ClientFailure, ClientId, Job};
use fedtvd_core::rules::notation;
use fedtvd_core::train::client::train;
use fedtvd_core::train::{Augment, Evaluation, Samples, Trainer as _};
use fedtvd_data::set::LoadError;
use fedtvd_nn::{Cpu, CpuError};
use fedtvd_run::attack::{Attack, Place};
use fedtvd_run::directory::FileError;
use fedtvd_run::directory::files::{doing, make_folder, sync, write};
use std::path::PathBuf;
use std::sync::Arc;
use thiserror::Error;

/// A site that knows which model it trains.
pub(crate) struct Site {
    client: ClientId,
    cpu: Cpu,
    layout: Arc<Layout>,
    data: ClientData,
    /// Number of hold-out samples that it claims to have.
    pub(crate) holdout: u64,
    /// How it lies to the server.
    attack: Option<Attack>,
    /// Folder for the memories of this run.
    folder: PathBuf,
}

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
    /// An invalid model.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// A model that cannot be trained here.
    #[error(transparent)]
    Cpu(#[from] CpuError),
    /// A file.
    #[error(transparent)]
    File(#[from] FileError),
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
        let network: Network = serde_json::from_str(&welcome.network)
            .map_err(|error| SiteError::Unreadable { what: "a model", why: error.to_string() })?;
        let (ours, classes) = (samples.shape(), samples.classes());
        if network.input != ours || network.classes != classes {
            let (theirs, their_classes) = (network.input, network.classes);
            return Err(SiteError::Shape { theirs, their_classes, ours, classes });
        }
        if welcome.classes != *names {
            return Err(SiteError::Classes { theirs: welcome.classes.clone(), ours: names.clone() });
        }
        let layout = Arc::new(Layout::of(&network)?);
        let rows: Vec<u32> = (0..samples.train_rows() as u32).collect();
        let samples = &attack.map_or_else(|| Arc::clone(samples), |attack| attack.samples(samples, &rows));
        let mut counts = vec![0; classes];
        for row in &rows {
            counts[samples.labels()[*row as usize] as usize] += 1;
        }
        let augment = Augment { crop: welcome.crop as usize, flip: welcome.flip };
        let samples = match augment {
            Augment { crop: 0, flip: false } => Arc::clone(samples),
            augment => Arc::new(Samples::clone(samples).augmented(augment)),
        };
        if !welcome.run.chars().all(|c| c.is_ascii_alphanumeric()) || welcome.run.is_empty() {
            let why = format!("\"{}\"", welcome.run.escape_default());
            return Err(SiteError::Unreadable { what: "a run name", why });
        }
        let cpu = Cpu::new(&network, Arc::clone(&samples))?;
        let holdout = samples.test_rows();
        let folder = options.folder.join(&welcome.run).join(welcome.client.to_string());
        let data = ClientData { rows, holdout, counts };
        let holdout = data.holdout.len() as u64;
        Ok(Self { client: welcome.client, cpu, layout, data, holdout, attack, folder })
    }

    /// The answer to a survey: only what it asks for.
    pub(crate) fn enrolment(&self, run: &str, survey: &wire::Survey) -> Result<wire::Enrolment, SiteError> {
        let unreadable =
            |error: serde_json::Error| SiteError::Unreadable { what: "a survey", why: error.to_string() };
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
    pub(crate) fn train(&mut self, bytes: &[u8]) -> Result<Result<Vec<u8>, ClientFailure>, FileError> {
        let bad = |why: String| Ok(Err(ClientFailure::BadJob(why)));
        let job = match Job::from_bytes(bytes, &self.layout) {
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
        let memory = match job.accepted {
            Some(round) => self.recall(round)?,
            None => None,
        };
        match train(&strategy, &job, &self.data, memory.as_ref(), &mut self.cpu) {
            Err(failure) => Ok(Err(failure)),
            Ok((mut upload, memory)) => {
                if !memory.is_empty() {
                    self.learn(&job, &memory)?;
                }
                if let Some(attack) = &self.attack {
                    attack.update(&mut upload, &job, strategy.local.needs().mu, &self.data.counts);
                }
                Ok(Ok(upload.to_bytes()))
            }
        }
    }

    /// Evaluates a model on the hold-out.
    pub(crate) fn evaluate(&mut self, bytes: &[u8]) -> Result<Evaluation, String> {
        let classes = self.data.counts.len();
        if let Some(found) = self.attack.and_then(|attack| attack.evaluation(classes, self.holdout)) {
            return Ok(found);
        }
        let params = Params::from_safetensors(bytes, &self.layout).map_err(|error| error.to_string())?;
        if self.data.holdout.is_empty() {
            return Ok(Evaluation::empty(classes));
        }
        self.cpu.evaluate(&params, &self.data.holdout, None).map_err(|error| error.to_string())
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
