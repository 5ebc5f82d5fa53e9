//! Runs one experiment in a run directory: rounds, checkpoints, the final model and the summary.

use crate::collapse::{Detector, failed};
use crate::configuration::Experiment;
use crate::directory::BestModel;
use crate::directory::files::write;
use crate::directory::history;
use crate::directory::run_directory::Lines;
use crate::directory::summary::peak_memory;
use crate::directory::{Checkpoints, LastRounds, RunDirectory, Summary, images, spread};
use crate::directory::{client_results, test_predictions};
use crate::fleet::FleetFailure;
use crate::monitor::{Best, Monitor};
use crate::rounds::{RoundError, Rounds};
use crate::run_error::RunError;
use crate::setup::Setup;
use crate::test_set::TestSet;
use fedtvd_core::model::{ModelCard, ModelDefinition, Params};
use fedtvd_core::round::RoundRecord;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A run with its directory.
pub struct Runner {
    directory: RunDirectory,
    experiment: Experiment,
    /// The data, split and model of a simulation; `None` in a federation.
    setup: Option<Arc<Setup>>,
    rounds: Rounds,
    lines: Lines,
    done: u32,
    last: LastRounds,
    pub(crate) monitor: Monitor,
    best_model: BestModel,
    detector: Detector,
    /// Rounds in a row, in this process, that left the model unchanged.
    unchanged: u32,
    seconds: f64,
    images: u64,
    started: Instant,
    saved: Instant,
    /// Time spent on the last checkpoint, and on all of them.
    saving: Duration,
    spent: Duration,
    pub(crate) checkpoints: Checkpoints,
    pub(crate) when: Saving,
    /// The last round before the rollback that the next round follows.
    pub(crate) rolled_back_from: Option<u32>,
    pub(crate) notes: Vec<String>,
    /// The test set of a simulation, whose predictions are stored at the end.
    pub(crate) test_set: Option<TestSet>,
    /// The model, if it is known.
    model: Option<ModelDefinition>,
}

/// How often the state is saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Saving {
    /// At intervals, and after rounds whose state is kept: a resume recomputes the rounds after the last checkpoint.
    Interval,
    /// After every round, before the jobs of the next one are sent.
    EveryRound,
}

/// How a run ended.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "a run ends once")]
pub enum End {
    /// All rounds are done.
    Done(Summary),
    /// Stopped on request after this many rounds, and saved.
    Stopped(u32),
}

/// A checkpoint is due after this time...
const INTERVAL: Duration = Duration::from_secs(3);
/// ...if all checkpoints so far, and one more like the last, take at most 1/60 of the run's time.
const COST_FACTOR: u32 = 60;
/// A round whose state is kept is saved at once if the last checkpoint had at most this many bytes; there are ten of them
/// in a run...
const SMALL: u64 = 4 << 20;
/// ...or if all checkpoints so far, and one more like the last, take at most 1/20 of the run's time.
const HISTORY_FACTOR: u32 = 20;
/// A server stops after this many rounds in a row that left the model unchanged.
const MOST_UNCHANGED: u32 = 10;

impl Runner {
    pub(crate) fn new(
        directory: RunDirectory,
        experiment: Experiment,
        setup: Option<Arc<Setup>>,
        rounds: Rounds,
        lines: Lines,
    ) -> Self {
        Self {
            notes: setup.as_ref().map_or_else(Vec::new, |setup| setup.notes.clone()),
            model: setup.as_ref().map(|setup| setup.model.clone()),
            checkpoints: Checkpoints::new(directory.file("checkpoint"), experiment.rounds),
            setup,
            rounds,
            lines,
            done: 0,
            last: LastRounds::new(experiment.evaluation),
            monitor: Monitor::new(experiment.evaluation),
            best_model: BestModel::new(directory.file("best.safetensors")),
            detector: Detector::default(),
            unchanged: 0,
            seconds: 0.0,
            images: 0,
            started: Instant::now(),
            saved: Instant::now(),
            saving: Duration::ZERO,
            spent: Duration::ZERO,
            when: Saving::Interval,
            rolled_back_from: None,
            test_set: None,
            directory,
            experiment,
        }
    }

    /// The same run with its model's definition, which is written into the model's file.
    pub fn of_model(self, model: ModelDefinition) -> Self {
        Self { model: Some(model), ..self }
    }

    /// Notes for the user, before it starts or resumes.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The run directory.
    pub fn directory(&self) -> &RunDirectory {
        &self.directory
    }

    /// The experiment.
    pub fn experiment(&self) -> &Experiment {
        &self.experiment
    }

    /// Number of finished rounds.
    pub fn rounds_done(&self) -> u32 {
        self.done
    }

    /// Runs to the end, or until `stop` is set; `show` is called with every round.
    pub fn run(mut self, stop: &AtomicBool, show: &mut dyn FnMut(&RoundRecord)) -> Result<End, RunError> {
        while self.rounds_done() < self.experiment.rounds && self.monitor.stopped().is_none() {
            if stop.load(Ordering::Relaxed) {
                self.save()?;
                return Ok(End::Stopped(self.rounds_done()));
            }
            let mut record = match self.rounds.round() {
                Ok(record) => record,
                Err(RoundError::Fleet(FleetFailure::Stopped)) => return Ok(End::Stopped(self.rounds_done())),
                Err(error) => {
                    // If saving fails too, the last checkpoint is still valid, and the first error says more.
                    let _ = self.save();
                    return Err(error.into());
                }
            };
            record.rolled_back_from = self.rolled_back_from.take();
            record.alarm = self.detector.observe(&record);
            self.lines.write(&record)?;
            if self.count(&record) {
                self.best_model.keep(&record.model_hash, Arc::clone(&self.rounds.state().params));
            }
            show(&record);
            let cheap = |factor: u32| self.started.elapsed() >= factor * (self.spent + self.saving);
            let due = match self.when {
                Saving::Interval if self.checkpoints.keeps(record.round) => {
                    self.checkpoints.newest_bytes() <= SMALL || cheap(HISTORY_FACTOR)
                }
                Saving::Interval => self.saved.elapsed() >= INTERVAL && cheap(COST_FACTOR),
                Saving::EveryRound => true,
            };
            if due {
                self.save()?;
            }
            self.check_progress(&record)?;
        }
        self.finish().map(End::Done)
    }

    /// Fails if a server has made no progress for long; its state is saved.
    fn check_progress(&mut self, record: &RoundRecord) -> Result<(), RunError> {
        self.unchanged = if record.unchanged.is_some() { self.unchanged + 1 } else { 0 };
        let last = self.rounds_done() == self.experiment.rounds;
        if self.when == Saving::Interval || self.unchanged < MOST_UNCHANGED || last {
            return Ok(());
        }
        let why = record.unchanged.clone().unwrap_or_default();
        let failed = failed(record).map_or(String::new(), |failed| format!("; {failed}"));
        Err(RunError::Unchanged { rounds: self.unchanged, round: record.round, why: why + &failed })
    }

    /// Takes in a round that was finished before this process.
    pub(crate) fn recall(&mut self, record: &RoundRecord) {
        self.detector.observe(record);
        if self.count(record) {
            self.best_model.expect(&record.model_hash);
        }
    }

    /// Removes a best model that is not that of the rounds so far.
    pub(crate) fn discard_other_best(&self) -> Result<(), RunError> {
        Ok(self.best_model.discard_other(&self.rounds.state().params.layout)?)
    }

    /// Reads the best model from the states of past rounds, if its file is gone and they have it.
    fn restore_best(&mut self) {
        let layout = Arc::clone(&self.rounds.state().params.layout);
        let Some(best) = self.monitor.best().filter(|_| self.best_model.path(&layout).is_none()) else {
            return;
        };
        if let Ok((model, _)) = history::model(&self.directory, &layout, best.round) {
            self.best_model.restore(model);
        }
    }

    /// Takes in a round; returns whether it is the best so far.
    fn count(&mut self, record: &RoundRecord) -> bool {
        self.done += 1;
        self.last.push(record);
        self.seconds += record.seconds;
        self.images += images(record, &self.experiment.run.local);
        self.monitor.observe(record)
    }

    /// Lines first: a checkpoint must not be ahead of them.
    fn save(&mut self) -> Result<(), RunError> {
        let started = Instant::now();
        self.lines.sync()?;
        let card = self.card()?;
        self.best_model.write(card.as_ref())?;
        let (state, memories) = self.rounds.checkpoint()?;
        self.checkpoints.save(state, memories)?;
        self.saved = Instant::now();
        self.saving = self.saved - started;
        self.spent += self.saving;
        Ok(())
    }

    /// What the model's file says about a model for tables.
    fn card(&self) -> Result<Option<ModelCard>, RunError> {
        let schema = self.directory.schema()?;
        Ok(schema.zip(self.model.clone()).map(|(schema, network)| ModelCard { network, schema }))
    }

    fn finish(mut self) -> Result<Summary, RunError> {
        self.lines.sync()?;
        let card = self.card()?;
        self.best_model.write(card.as_ref())?;
        self.restore_best();
        self.best_model.write(card.as_ref())?;
        let clients = self.rounds.client_results()?;
        if let Some(clients) = &clients {
            let text = serde_json::to_string(clients).expect("results are plain data");
            write(&self.directory.file(client_results::FILE), text.as_bytes())?;
        }
        let models: Vec<Arc<Params>> = self.rounds.state().models().map(Arc::clone).collect();
        let params = Arc::clone(&models[0]);
        let best = self.monitor.best();
        let best = best.map(|best| Best { model: self.best_model.path(&params.layout), ..best.clone() });
        // The first comes last: it marks all of them as written.
        for (branch, params) in models.iter().enumerate().rev() {
            let file = self.directory.model_of_branch(branch as u32);
            write(&file, &params.to_described_safetensors(card.as_ref()))?;
        }
        let model = self.directory.model_of_branch(0);
        let rounds = self.rounds_done();
        // The trainers' memory is free for predicting.
        drop(self.rounds);
        let whole = self.setup.as_ref().is_none_or(|setup| setup.parts.all_travel())
            && self.experiment.run.strategy.grouping.is_none();
        if let Some(test_set) = self.test_set.as_ref().filter(|_| whole) {
            write(&self.directory.file(test_predictions::FILE), &test_set.predictions(&params)?.to_bytes())?;
        }
        let summary = Summary {
            strategy: self.experiment.run.strategy.label.clone(),
            seed: self.experiment.seed,
            rounds,
            accuracy: self.last.newest().and_then(|round| round.accuracy),
            last10_accuracy: self.last.mean(|round| round.accuracy),
            last10_balanced_accuracy: self.last.mean(|round| round.balanced_accuracy),
            last10_macro_f1: self.last.mean(|round| round.macro_f1),
            last10_loss: self.last.mean(|round| round.loss),
            missed_classes: self.last.missed_classes(),
            last10_validation: self.last.mean(|round| round.validation),
            last10_personal: self.last.personal(),
            client_accuracy: clients.as_deref().and_then(spread),
            best,
            stopped: self.monitor.stopped().filter(|_| rounds < self.experiment.rounds).cloned(),
            collapsed: self.detector.verdict(),
            alarms: self.detector.alarms(),
            failed: self.detector.failed_updates(),
            seconds: self.seconds,
            images_per_second: self.images as f64 / self.seconds.max(f64::MIN_POSITIVE),
            peak_memory_bytes: peak_memory(),
            split_hash: self.setup.as_ref().map_or_else(String::new, |setup| setup.split_hash.clone()),
            directory: self.directory.path().display().to_string(),
            model: model.display().to_string(),
        };
        // The summary comes last: it marks the run as done.
        let text = serde_json::to_string_pretty(&summary).expect("a summary is plain data");
        write(&self.directory.file("summary.json"), text.as_bytes())?;
        Ok(summary)
    }
}
