//! What the rules of a registered method must keep, as far as small examples show it: answers of the right length, finite
//! numbers, weights that are a distribution, and the same answer to the same question. The contract tests check far more
//! of the methods in `ALL`.

use crate::labels::{Ask, Reference};
use crate::memory::Memory;
use crate::model::{Layout, Params};
use crate::round::updates::AcceptedClient;
use crate::round::{Accepted, Outcome, Profile, ReadFailure, Report, UpdatePart, Updates};
use crate::rules::{Combine, Loss, Recipe, ServerRule, Settings, Spec, Step, Weighting};
use std::ops::Range;
use std::sync::Arc;
use thiserror::Error;

/// How the rules of a method break the contract.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Breach {
    /// No rule at all.
    #[error("it has no rule; write at least one")]
    Nothing,
    /// A rule failed.
    #[error("on a small example, {0}")]
    Failed(String),
    /// An answer of another length.
    #[error("{what} of {expected} {of} are {got} numbers")]
    Length {
        /// What the numbers are.
        what: &'static str,
        /// How many there should be.
        expected: usize,
        /// Of what.
        of: &'static str,
        /// How many there are.
        got: usize,
    },
    /// An answer that is NaN or infinite.
    #[error("{what} are not all finite: {value} on a small example")]
    NotFinite {
        /// What the numbers are.
        what: &'static str,
        /// One that is not finite.
        value: f64,
    },
    /// Weights that are no distribution.
    #[error("{what} must not be negative and must sum to 1, but are {weights:?} on a small example")]
    Weights {
        /// Which weights.
        what: &'static str,
        /// The weights.
        weights: Vec<f64>,
    },
    /// Two answers to one question.
    #[error("{0} differ when the rule is asked twice the same; what it remembers belongs into its memory")]
    Changes(&'static str),
}

/// Label counts of the example clients, one of them alone in a class and two of them equal.
const COUNTS: [[u64; 3]; 4] = [[30, 30, 30], [20, 40, 40], [20, 40, 40], [0, 0, 70]];

/// Checks the rules of a method with its default parameters.
pub(super) fn check(spec: &Spec) -> Result<(), Breach> {
    let recipe = (spec.build)(&Settings::defaults(spec));
    failed(&recipe)?;
    if recipe.rules().is_empty() {
        return Err(Breach::Nothing);
    }
    let answered = |answer: Result<(), Breach>| failed(&recipe).and(answer);
    if let Some(weighting) = &recipe.weighting {
        answered(check_weighting(weighting.as_ref()))?;
    }
    if let Some(loss) = &recipe.loss {
        answered(check_loss(loss.as_ref()))?;
    }
    if let Some(combine) = &recipe.combine {
        answered(check_combine(combine.as_ref()))?;
    }
    if let Some(server) = &recipe.server {
        answered(check_server(server.as_ref()))?;
    }
    Ok(())
}

fn failed(recipe: &Recipe) -> Result<(), Breach> {
    let failure = recipe.outside.iter().find_map(|outside| outside.failure());
    failure.map_or(Ok(()), |why| Err(Breach::Failed(why)))
}

fn check_weighting(weighting: &dyn Weighting) -> Result<(), Breach> {
    const WHAT: &str = "the weights";
    let reference = Reference::uniform(3);
    let ask: Ask = weighting.asks();
    let profile = |(client, counts): (u32, &[u64; 3])| {
        Profile::new(client, counts.iter().sum(), ask.answer(counts, &reference))
    };
    let profiles: Vec<Profile> = (0..).zip(&COUNTS).map(profile).collect();
    let profiles: Vec<&Profile> = profiles.iter().collect();
    for profiles in [&profiles[..], &profiles[1..3], &profiles[..1]] {
        let shares = || weighting.shares(profiles, &reference, &mut Memory::default());
        let first = shares();
        length(WHAT, "clients", profiles.len(), first.weight.len())?;
        length("the shares by size", "clients", profiles.len(), first.size.len())?;
        if let Some(quality) = &first.quality {
            length("the shares by quality", "clients", profiles.len(), quality.len())?;
            finite("the shares by quality", quality)?;
        }
        distribution(WHAT, &first.weight)?;
        same(WHAT, &first, &shares())?;
    }
    Ok(())
}

fn check_loss(loss: &dyn Loss) -> Result<(), Breach> {
    const WHAT: &str = "the offsets";
    let reference = Reference::uniform(3);
    COUNTS.iter().try_for_each(|counts| {
        let offsets = loss.offsets(counts, &reference);
        length(WHAT, "classes", 3, offsets.len())?;
        finite(WHAT, &offsets)?;
        same(WHAT, &offsets, &loss.offsets(counts, &reference))
    })
}

fn check_combine(combine: &dyn Combine) -> Result<(), Breach> {
    const WHAT: &str = "the combined values";
    let layout = Arc::new(Layout::vector(6));
    let base = Params { layout, values: vec![0.5, -1.0, 2.0, 0.0, 0.25, 1.0] };
    let models =
        Models((1..=5u8).map(|k| base.values.iter().map(|w| w + 0.1 * f32::from(k)).collect()).collect());
    let report = Report { round: 0, steps: 10, reach: 0.1, losses: [1.0, 0.5], remembers: true, branch: 0 };
    let weights = [0.1, 0.3, 0.2, 0.3, 0.1];
    let combined = || {
        let clients = (0..models.0.len()).map(|index| AcceptedClient { index, factor: 1.0 }).collect();
        let reports = vec![report; models.0.len()];
        let mut accepted = Accepted::new(&models, clients, reports, f64::INFINITY, &base, &weights);
        let combined = combine.combine(&base, &mut accepted, &weights, &mut Memory::default());
        combined.map_err(|failure| Breach::Failed(failure.to_string()))
    };
    let first = combined()?;
    length(WHAT, "parameters", base.values.len(), first.values.len())?;
    finite(WHAT, &first.values)?;
    length("the weights that counted", "clients", weights.len(), first.counted.len())?;
    distribution("the weights that counted", &first.counted)?;
    same(WHAT, &first, &combined()?)
}

fn check_server(server: &dyn ServerRule) -> Result<(), Breach> {
    const WHAT: &str = "the values after the server's step";
    let step = Step {
        base: &[0.5, -1.0, 2.0, 0.0],
        aggregate: &[0.625, -0.75, 1.875, 0.0],
        weights: &[0.25, 0.25, 0.5],
        norms: &[0.5, 0.25, 0.75],
        limit: f64::INFINITY,
        roster_change: &[],
    };
    let moved = || server.step(&step, &mut Memory::default());
    let first = moved();
    length(WHAT, "trainable parameters", step.base.len(), first.len())?;
    finite(WHAT, &first.iter().map(|&w| f64::from(w)).collect::<Vec<_>>())?;
    same(WHAT, &first, &moved())
}

fn length(what: &'static str, of: &'static str, expected: usize, got: usize) -> Result<(), Breach> {
    if got == expected { Ok(()) } else { Err(Breach::Length { what, expected, of, got }) }
}

fn finite(what: &'static str, values: &[f64]) -> Result<(), Breach> {
    let value = values.iter().copied().find(|value| !value.is_finite());
    value.map_or(Ok(()), |value| Err(Breach::NotFinite { what, value }))
}

fn distribution(what: &'static str, weights: &[f64]) -> Result<(), Breach> {
    finite(what, weights)?;
    // Far more than rounding: a sum of f32 values is accepted, too.
    let sums_to_one = (weights.iter().sum::<f64>() - 1.0).abs() < 1e-6;
    match sums_to_one && weights.iter().all(|weight| *weight >= 0.0) {
        true => Ok(()),
        false => Err(Breach::Weights { what, weights: weights.to_vec() }),
    }
}

fn same<T: PartialEq>(what: &'static str, first: &T, again: &T) -> Result<(), Breach> {
    if first == again { Ok(()) } else { Err(Breach::Changes(what)) }
}

/// The models of example clients.
struct Models(Vec<Vec<f32>>);

impl Updates for Models {
    fn outcomes(&self) -> &[Outcome] {
        &[]
    }

    fn read(
        &self,
        index: usize,
        _: UpdatePart<'_>,
        range: Range<usize>,
        out: &mut [f32],
    ) -> Result<(), ReadFailure> {
        out.copy_from_slice(&self.0[index][range]);
        Ok(())
    }
}
