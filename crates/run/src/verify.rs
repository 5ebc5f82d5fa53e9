//! Recomputes rounds of a run and reports whether the bits are the same, or where they first differ.

use crate::directory::checkpoint;
use crate::directory::checkpoints;
use crate::directory::digest;
use crate::directory::{DirectoryError, Memories, RunDirectory};
use crate::open::{fits, reopen};
use crate::run_error::RunError;
use crate::setup::Setup;
use crate::simulation::{Resources, Workers, simulation};
use fedtvd_core::model::{Layout, Params};
use fedtvd_core::round::{RoundRecord, State};
use fedtvd_data::set::Places;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use thiserror::Error;

/// The result of a verification.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// The run directory.
    pub directory: String,
    /// The rounds that were compared.
    pub rounds: Vec<u32>,
    /// Whether this machine and program compute with the same bits as those that made the run; bits are compared only then.
    pub same_fingerprint: bool,
    /// What is different otherwise: architecture, vector instructions, version of the kernels.
    pub difference: Option<String>,
    /// Whether all bits are the same; null where they may differ.
    pub same_bits: Option<bool>,
    /// The first difference, if there is one.
    pub parting: Option<Parting>,
    /// The largest difference in accuracy over the compared rounds.
    pub accuracy_difference: f64,
    /// Relative difference ‖a - b‖ / ‖a‖ of the models at each checkpoint on the way.
    pub model_differences: Vec<(u32, f64)>,
}

/// Where two computations first differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Parting {
    /// The first round that differs.
    pub round: u32,
    /// The first tensor that differs in it, or another recorded quantity.
    pub tensor: String,
}

/// Why a run cannot be verified.
#[derive(Debug, Error)]
pub enum VerifyError {
    /// The run cannot be recomputed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// No such round.
    #[error("round {round} was not run; {} holds rounds 1 to {last}", .directory)]
    NoSuchRound {
        /// The round asked for.
        round: u32,
        /// The last round.
        last: usize,
        /// The run directory.
        directory: String,
    },
    /// The final model is not the one that the last round recorded.
    #[error("{path} is not the model of round {round}: {tensor} differs from what rounds.jsonl recorded")]
    Model {
        /// The file.
        path: String,
        /// The last round.
        round: u32,
        /// The first tensor that differs.
        tensor: String,
    },
    /// A federation in which the fastest clients of a round counted.
    #[error("cohort.extra = {0}: which clients of a round were the fastest cannot be recomputed")]
    Extra(usize),
    /// No finished rounds.
    #[error("{0} holds no finished round")]
    Nothing(String),
}

/// Recomputes the chosen rounds, or all; `show` is called with every recomputed round.
pub fn verify(
    path: &Path,
    places: &Places,
    resources: Resources,
    chosen: Option<&BTreeSet<u32>>,
    show: &mut dyn FnMut(u32),
) -> Result<Verdict, VerifyError> {
    let directory = RunDirectory::open(path).map_err(RunError::from)?;
    let lines = directory.lines().map_err(RunError::from)?;
    let name = path.display().to_string();
    if lines.is_empty() {
        return Err(VerifyError::Nothing(name));
    }
    let all: BTreeSet<u32> = (1..=lines.len() as u32).collect();
    let chosen = chosen.unwrap_or(&all);
    if let Some(&round) = chosen.iter().find(|round| !all.contains(round)) {
        return Err(VerifyError::NoSuchRound { round, last: lines.len(), directory: name });
    }
    let (experiment, setup) = reopen(&directory, places)?;
    if directory.is_federation() && experiment.extra > 0 {
        return Err(VerifyError::Extra(experiment.extra));
    }
    check_model(&directory, &setup, &lines[lines.len() - 1])?;
    let Workers { trainers, fingerprint } =
        Workers::on(&resources.device, &setup, resources.workers).map_err(RunError::from)?;
    let mut rounds =
        simulation(&experiment, &setup, trainers, resources.update_memory).map_err(RunError::from)?;
    let manifest = directory.manifest().map_err(RunError::from)?;
    let difference = manifest.fingerprint.difference(&fingerprint);
    let same_fingerprint = difference.is_none();
    let checkpoints = checkpoints::list(&directory.file("checkpoint")).map_err(RunError::from)?;
    // The clients of a federation keep their own memories: its checkpoints lack them, and a rollback restarts them.
    let own_memories = directory.is_federation() && experiment.run.strategy.needs().remembers;
    let mut verdict = Verdict {
        directory: name,
        rounds: Vec::new(),
        same_fingerprint,
        difference,
        same_bits: None,
        parting: None,
        accuracy_difference: 0.0,
        model_differences: Vec::new(),
    };
    for &target in chosen {
        // Rounds done so far; a later checkpoint before the target saves work.
        let nearer =
            checkpoints.iter().rev().find(|(round, _)| *round < target && *round > rounds.state().round);
        let nearer = nearer.filter(|_| !own_memories);
        if let Some(saved) = nearer
            .and_then(|(_, place)| checkpoint::load(place, &setup.parts.shared).ok())
            .filter(|saved| fits(path, &experiment, &saved.state).is_ok())
        {
            rounds.restore(saved.state, saved.memories);
        }
        while rounds.state().round < target {
            if own_memories && lines[rounds.state().round as usize].rolled_back_from.is_some() {
                let mut state = rounds.state().clone();
                state.restart_memories(&experiment.run);
                rounds.restore(state, Memories::new());
            }
            let now = rounds.round().map_err(RunError::from)?;
            show(now.round);
            let then = &lines[now.round as usize - 1];
            if let (Some(now), Some(then)) = (now.accuracy, then.accuracy) {
                verdict.accuracy_difference = verdict.accuracy_difference.max((now - then).abs());
            }
            verdict.parting = verdict.parting.or_else(|| parting(&now, then, &setup.parts.shared));
            if let Some((_, place)) = checkpoints.iter().find(|(round, _)| *round == now.round)
                && let Ok(saved) = checkpoint::load(place, &setup.parts.shared)
            {
                let gap = relative(values(&saved.state), values(rounds.state()));
                verdict.model_differences.push((now.round, gap));
            }
        }
        verdict.rounds.push(target);
    }
    verdict.same_bits = same_fingerprint.then_some(verdict.parting.is_none());
    Ok(verdict)
}

/// Fails if there is a final model and it is not that of the last line.
fn check_model(directory: &RunDirectory, setup: &Setup, last: &RoundRecord) -> Result<(), VerifyError> {
    let Some(path) = directory.model().map_err(RunError::from)? else { return Ok(()) };
    let damaged = |path: &Path, why: &dyn std::fmt::Display| {
        RunError::from(DirectoryError::Damaged { path: path.display().to_string(), why: why.to_string() })
    };
    let layout = &setup.parts.shared;
    let branches = last.tensor_hashes.len() / layout.tensors().len().max(1);
    let model = |branch: u32| {
        let path = directory.model_of_branch(branch);
        let bytes = fs::read(&path).map_err(|error| damaged(&path, &error))?;
        Params::from_safetensors_of_any_width(&bytes, layout)
            .map(Arc::new)
            .map_err(|error| damaged(&path, &error))
    };
    let models: Vec<Arc<Params>> = (0..branches.max(1) as u32).map(model).collect::<Result<_, _>>()?;
    match first_difference(&digest::models(models.iter()), last, layout) {
        None => Ok(()),
        Some(tensor) => {
            Err(VerifyError::Model { path: path.display().to_string(), round: last.round, tensor })
        }
    }
}

/// The values of all models of a state.
fn values(state: &State) -> impl Iterator<Item = f32> {
    state.models().flat_map(|model| model.values.iter().copied())
}

/// Where a recomputed round differs from its record, if it does.
fn parting(now: &RoundRecord, then: &RoundRecord, layout: &Layout) -> Option<Parting> {
    let hashes = (now.model_hash.clone(), now.tensor_hashes.clone());
    // The same model has the same accuracy and loss, unless the record was changed.
    let recorded = || {
        // A loss that is NaN or infinite is null in the record.
        let finite = |line: &RoundRecord| (line.accuracy, line.loss.filter(|loss| loss.is_finite()));
        // Only a simulation records what all hold-outs say.
        let validated = then.validation.is_none() || now.validation == then.validation;
        let same = finite(now) == finite(then) && validated;
        (!same).then(|| "the recorded accuracy or loss".to_owned())
    };
    let tensor = first_difference(&hashes, then, layout).or_else(recorded)?;
    Some(Parting { round: now.round, tensor })
}

/// The first tensor whose hash differs from the recorded one.
fn first_difference(now: &(String, Vec<String>), then: &RoundRecord, layout: &Layout) -> Option<String> {
    if now.0 == then.model_hash {
        return None;
    }
    let tensors = layout.tensors();
    let mut hashes = now.1.iter().zip(&then.tensor_hashes);
    Some(
        match hashes
            .position(|(now, then)| now != then)
            .map(|place| (place / tensors.len(), place % tensors.len()))
        {
            None => "the recorded hash".to_owned(),
            Some((0, place)) => tensors[place].name.clone(),
            Some((branch, place)) => format!("{} of branch {branch}", tensors[place].name),
        },
    )
}

/// ‖a - b‖ / ‖a‖.
fn relative(a: impl Iterator<Item = f32>, b: impl Iterator<Item = f32>) -> f64 {
    let pairs = a.zip(b).map(|(a, b)| (f64::from(a), f64::from(b)));
    let (gap, size) = pairs.fold((0.0, 0.0), |(gap, size), (a, b)| (gap + (a - b).powi(2), size + a * a));
    if gap == 0.0 { 0.0 } else { (gap / size).sqrt() }
}
