//! Recomputes rounds of a run and says whether the bits are the same, or where they part.

use crate::checkpoint;
use crate::directory::RunDirectory;
use crate::line::Line;
use crate::runner::{RunError, reopen};
use crate::simulation::{Means, Rounds as _, Simulation};
use fedtvd_data::set::Places;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::Path;
use thiserror::Error;

/// What recomputing found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// The run directory.
    pub directory: String,
    /// Rounds that were compared.
    pub rounds: Vec<u32>,
    /// Whether the machine is of the kind that made the run; only then are bits judged.
    pub same_fingerprint: bool,
    /// Whether all bits are the same; null on another kind of machine.
    pub same_bits: Option<bool>,
    /// Where the bits part first, if they do.
    pub parting: Option<Parting>,
    /// The largest difference of accuracy in the compared rounds.
    pub accuracy_difference: f64,
    /// Relative difference ‖a - b‖ / ‖a‖ of each checkpoint that was passed.
    pub model_differences: Vec<(u32, f64)>,
}

/// Where two computations part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Parting {
    /// In which round first.
    pub round: u32,
    /// In which tensor of it first.
    pub tensor: String,
}

/// Why nothing can be compared.
#[derive(Debug, Error)]
pub enum VerifyError {
    /// The run cannot be repeated.
    #[error(transparent)]
    Run(#[from] RunError),
    /// No such round.
    #[error("round {round} was not run; {} holds rounds 1 to {last}", .directory)]
    NoSuchRound {
        /// Which was asked for.
        round: u32,
        /// The last one.
        last: usize,
        /// Where.
        directory: String,
    },
    /// No rounds at all.
    #[error("{0} holds no finished round")]
    Nothing(String),
}

/// Recomputes the chosen rounds, or all; `show` sees every round that is recomputed.
pub fn verify(
    path: &Path,
    places: &Places,
    means: Means,
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
    let mut simulation = Simulation::new(&experiment, &setup, means).map_err(RunError::from)?;
    let manifest = directory.manifest().map_err(RunError::from)?;
    let same_fingerprint = manifest.fingerprint == *simulation.fingerprint();
    let checkpoints = checkpoint::list(&directory.file("checkpoint")).map_err(RunError::from)?;
    let mut verdict = Verdict {
        directory: name,
        rounds: Vec::new(),
        same_fingerprint,
        same_bits: None,
        parting: None,
        accuracy_difference: 0.0,
        model_differences: Vec::new(),
    };
    for &target in chosen {
        // Rounds done so far; a checkpoint further on, but before the target, saves work.
        let nearer =
            checkpoints.iter().rev().find(|(round, _)| *round < target && *round > simulation.state().round);
        if let Some(saved) = nearer.and_then(|(_, place)| checkpoint::load(place, &setup.layout).ok()) {
            simulation.restore(saved.state);
            simulation.fleet().remember(saved.memories);
        }
        while simulation.state().round < target {
            let round = simulation.round().map_err(RunError::from)?;
            let state = simulation.state();
            let now = Line::new(&round, &state.params, &state.reference, Some(&setup), false);
            show(now.round);
            let then = &lines[now.round as usize - 1];
            let difference = (now.accuracy - then.accuracy).abs();
            verdict.accuracy_difference = verdict.accuracy_difference.max(difference);
            let names = || setup.layout.tensors().iter().map(|tensor| tensor.name.clone());
            verdict.parting = verdict.parting.or_else(|| parting(&now, then, names()));
            if let Some((_, place)) = checkpoints.iter().find(|(round, _)| *round == now.round)
                && let Ok(saved) = checkpoint::load(place, &setup.layout)
            {
                let gap = relative(&saved.state.params.values, &state.params.values);
                verdict.model_differences.push((now.round, gap));
            }
        }
        verdict.rounds.push(target);
    }
    verdict.same_bits = same_fingerprint.then_some(verdict.parting.is_none());
    Ok(verdict)
}

/// The first tensor of a round whose hash differs.
fn parting(now: &Line, then: &Line, names: impl Iterator<Item = String>) -> Option<Parting> {
    if now.model_hash == then.model_hash {
        return None;
    }
    let hashes = now.tensor_hashes.iter().zip(&then.tensor_hashes);
    let place = hashes.zip(names).find(|((now, then), _)| now != then);
    let tensor = place.map_or_else(|| "number of tensors".to_owned(), |(_, name)| name);
    Some(Parting { round: now.round, tensor })
}

/// ‖a - b‖ / ‖a‖.
fn relative(a: &[f32], b: &[f32]) -> f64 {
    let pairs = a.iter().zip(b).map(|(a, b)| (f64::from(*a), f64::from(*b)));
    let (gap, size) = pairs.fold((0.0, 0.0), |(gap, size), (a, b)| (gap + (a - b).powi(2), size + a * a));
    if gap == 0.0 { 0.0 } else { (gap / size).sqrt() }
}
