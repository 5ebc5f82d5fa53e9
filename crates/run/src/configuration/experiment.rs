//! A configuration as types: everything that defines one run.

use crate::configuration::{
    Config, EvaluationOptions, Liars, LiarsError, ReferenceSource, TrainingError, Value,
};
use crate::configuration::{config, training};
use crate::fleet::Dropout;
use fedtvd_core::labels::ReferenceError;
use fedtvd_core::round::{Mode, Run};
use fedtvd_core::rules::{Extent, NotationError, Strategy};
use fedtvd_core::train::{ClassWeights, ClassWeightsError, Local};
use fedtvd_data::set::DataOptions;
use fedtvd_data::split::{Planted, Shift, ShiftKind, SplitKind, SplitOptions};
use std::path::PathBuf;
use thiserror::Error;

/// One run.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Seed of the initial model and of the clients' randomness.
    pub seed: u64,
    /// Number of rounds.
    pub rounds: u32,
    /// The data set.
    pub data: DataOptions,
    /// How samples are split over clients.
    pub split: SplitOptions,
    /// Fraction of its samples that a client holds out from training.
    pub holdout: f64,
    /// Seed of the split.
    pub split_seed: u64,
    /// Name of the model.
    pub model: String,
    /// Whether a model is named or defined; a table has one of its own otherwise.
    pub model_chosen: bool,
    /// Layers of a user-defined model, one per line, instead of a named one.
    pub layers: Vec<String>,
    /// The safetensors file that the model starts from; random without one.
    pub start: Option<PathBuf>,
    /// Where the reference label distribution Q comes from.
    pub reference: ReferenceSource,
    /// When and on what the model is evaluated.
    pub evaluation: EvaluationOptions,
    /// Clients that a federation asks beyond the cohort; a simulation has no late clients, and asks no others.
    pub extra: usize,
    /// How often clients drop out.
    pub dropout: Dropout,
    /// The clients that lie, if any do.
    pub liars: Option<Liars>,
    /// The core's settings.
    pub run: Run,
}

/// Why a configuration is not a valid experiment.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ExperimentError {
    /// The strategy.
    #[error(transparent)]
    Strategy(#[from] NotationError),
    /// The reference.
    #[error("labels.reference: {0}")]
    Reference(ReferenceError),
    /// Local training.
    #[error(transparent)]
    Training(#[from] TrainingError),
    /// The class weights.
    #[error("local.class_weights: {0}")]
    ClassWeights(#[from] ClassWeightsError),
    /// The liars.
    #[error(transparent)]
    Liars(#[from] LiarsError),
    /// Hardened mode with batch statistics that clients send as changes: no bound on their norm protects each channel.
    #[error(
        "strategy.mode = hardened cannot protect {0}: one client's change of its vector \"{1}\" can make any of the model's batch \
         variances useless; choose another strategy, or set strategy.mode = paper, in which one client can destroy the model"
    )]
    Unprotected(String, &'static str),
    /// Hardened mode with several models: nothing bounds what a client does to a model that few clients share.
    #[error(
        "strategy.mode = hardened cannot protect {0}: a client that is alone with a model, or one of two, decides what it \
         becomes; choose another strategy, or set strategy.mode = paper, in which one client can destroy a model"
    )]
    UnprotectedBranches(String),
    /// Liars that imitate honest clients, who train different models.
    #[error(
        "attack.kind = {kind} is computed from what a round's honest clients trained, and under {strategy} they train different \
         models; choose another attack or another strategy"
    )]
    DifferentModels {
        /// The attack.
        kind: &'static str,
        /// The strategy.
        strategy: String,
    },
    /// A file to start from, and several models that must differ.
    #[error(
        "model.start is one model, and {0} begins with {1} different ones; leave model.start out, or choose another strategy"
    )]
    OneStart(String, usize),
    /// A target that cannot be reached.
    #[error("stop.target = {target} cannot be reached: {metric} is at most 1")]
    Target {
        /// The target.
        target: f64,
        /// The metric.
        metric: &'static str,
    },
}

/// Limit on claimed sizes, above that of any honest site; it bounds the work of checking a claim.
const LARGEST_SIZE: u64 = 100_000_000;

impl Experiment {
    /// The experiment that a configuration describes.
    pub fn of(config: &Config) -> Result<Self, ExperimentError> {
        let strategy = config::strategy(config)?;
        let local = training::local(config, &strategy)?;
        check_protection(config, &strategy)?;
        let reference = ReferenceSource::of(config).map_err(ExperimentError::Reference)?;
        let class_weights = class_weights(config)?;
        let liars = Liars::of(config)?;
        check_models(config, &strategy, liars.as_ref())?;
        let stratum = liars.and_then(|liars| liars.stratum());
        Ok(Self {
            seed: whole(config, "seed"),
            rounds: whole(config, "rounds") as u32,
            data: data(config),
            split: split(config),
            holdout: number(config, "split.holdout"),
            split_seed: whole(config, "split.seed"),
            model: text(config, "model.name"),
            model_chosen: config.chooses_model(),
            layers: lines(config, "model.layers"),
            start: some_text(config, "model.start").map(PathBuf::from),
            evaluation: EvaluationOptions::of(config)?,
            extra: whole(config, "cohort.extra") as usize,
            dropout: Dropout {
                seed: whole(config, "cohort.seed"),
                absent: number(config, "cohort.absent"),
                partial: number(config, "cohort.partial"),
            },
            run: Run { stratum, class_weights, ..core_run(config, strategy, local, &reference) },
            reference,
            liars,
        })
    }
}

fn check_protection(config: &Config, strategy: &Strategy) -> Result<(), ExperimentError> {
    let statistics = strategy.needs().carries.iter().find(|carried| carried.extent == Extent::Buffers);
    match statistics {
        Some(carried) if mode(config) == Mode::Hardened => {
            Err(ExperimentError::Unprotected(strategy.label.clone(), carried.name))
        }
        _ => Ok(()),
    }
}

/// Refuses what a strategy with several models cannot be combined with.
fn check_models(config: &Config, strategy: &Strategy, liars: Option<&Liars>) -> Result<(), ExperimentError> {
    let label = || strategy.label.clone();
    if strategy.grouping.is_none() {
        return Ok(());
    }
    if mode(config) == Mode::Hardened {
        return Err(ExperimentError::UnprotectedBranches(label()));
    }
    if let Some(spec) = liars.map(|liars| liars.attack.spec()).filter(|spec| spec.colludes) {
        return Err(ExperimentError::DifferentModels { kind: spec.name, strategy: label() });
    }
    match strategy.models() {
        models if models > 1 && some_text(config, "model.start").is_some() => {
            Err(ExperimentError::OneStart(label(), models))
        }
        _ => Ok(()),
    }
}

fn mode(config: &Config) -> Mode {
    if text(config, "strategy.mode") == "hardened" { Mode::Hardened } else { Mode::Paper }
}

fn data(config: &Config) -> DataOptions {
    DataOptions {
        set: text(config, "data.set"),
        label: text(config, "data.label"),
        group: some_text(config, "data.group"),
        schema: some_text(config, "data.schema").map(PathBuf::from),
        test: number(config, "data.test"),
        crop: whole(config, "data.crop") as usize,
        flip: flag(config, "data.flip"),
        imbalance: number(config, "data.imbalance"),
    }
}

fn split(config: &Config) -> SplitOptions {
    SplitOptions {
        kind: kind(&text(config, "split.kind")),
        clients: whole(config, "split.clients") as usize,
        alpha: number(config, "split.alpha"),
        min_size: whole(config, "split.min_size") as usize,
        self_balancing: flag(config, "split.self_balancing"),
        tries: whole(config, "split.tries") as u32,
        shards: whole(config, "split.shards") as usize,
        labels: whole(config, "split.labels") as usize,
        beta: number(config, "split.beta"),
        correlation: number(config, "split.correlation"),
        spread: number(config, "split.spread"),
        alpha_even: number(config, "split.alpha_even"),
        file: some_text(config, "split.file").map(PathBuf::from),
        shift: shift(config),
        groups: Planted(whole(config, "split.groups") as usize),
        seed: None,
    }
}

fn shift(config: &Config) -> Shift {
    let word = text(config, "split.shift");
    let kind = ShiftKind::named(&word)
        .unwrap_or_else(|| unreachable!("split.shift keeps the words of its key, not {word}"));
    Shift { kind, strength: number(config, "split.shift_strength") }
}

fn kind(word: &str) -> SplitKind {
    SplitKind::named(word)
        .unwrap_or_else(|| unreachable!("split.kind keeps the words of its key, not {word}"))
}

fn core_run(config: &Config, strategy: Strategy, local: Local, reference: &ReferenceSource) -> Run {
    let fixed_roster = *reference == ReferenceSource::Aggregated;
    Run {
        strategy,
        seed: whole(config, "seed"),
        cohort_seed: whole(config, "cohort.seed"),
        fraction: number(config, "cohort.fraction"),
        extra: 0,
        stratum: None,
        local,
        class_weights: ClassWeights::Equal,
        quorum: whole(config, "cohort.quorum") as usize,
        mode: mode(config),
        screen: number(config, "strategy.screen"),
        largest_size: LARGEST_SIZE,
        fixed_roster,
    }
}

fn class_weights(config: &Config) -> Result<ClassWeights, ClassWeightsError> {
    match config.get("local.class_weights") {
        Value::Text(word) if word == "inverse" => Ok(ClassWeights::Inverse),
        Value::List(costs) => ClassWeights::given(costs.iter().filter_map(Value::number).collect()),
        _ => Ok(ClassWeights::Equal),
    }
}

// The table of keys has already checked the kind of every value.

pub(crate) fn whole(config: &Config, path: &'static str) -> u64 {
    match config.get(path) {
        Value::Whole(whole) => whole,
        other => unreachable!("{path} keeps whole numbers, not {other}"),
    }
}

pub(crate) fn number(config: &Config, path: &'static str) -> f64 {
    match config.get(path) {
        Value::Number(number) => number,
        other => unreachable!("{path} keeps numbers, not {other}"),
    }
}

pub(crate) fn flag(config: &Config, path: &'static str) -> bool {
    config.get(path) == Value::Flag(true)
}

pub(crate) fn text(config: &Config, path: &'static str) -> String {
    match config.get(path) {
        Value::Text(text) => text,
        other => unreachable!("{path} keeps text, not {other}"),
    }
}

/// Text that is not empty.
fn some_text(config: &Config, path: &'static str) -> Option<String> {
    Some(text(config, path)).filter(|text| !text.is_empty())
}

fn lines(config: &Config, path: &'static str) -> Vec<String> {
    match config.get(path) {
        Value::List(lines) => lines.iter().map(Value::bare).collect(),
        other => unreachable!("{path} keeps a list, not {other}"),
    }
}
