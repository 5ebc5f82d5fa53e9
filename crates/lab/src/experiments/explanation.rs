//! The aggregation weights of clients with given label counts, without running a round.

use fedtvd_core::labels::{ReferenceError, size, tvd};
use fedtvd_core::memory::Memory;
use fedtvd_core::round::{ClientId, Profile, effective, hardened};
use fedtvd_core::rules::{Rule, Settings, Spec, notation};
use fedtvd_run::configuration::{ClassMismatch, Config, Experiment, ExperimentError};
use serde::Serialize;
use thiserror::Error;

/// The weights of clients under one strategy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// The strategy's label.
    pub strategy: String,
    /// The clients, in the order of the input.
    pub clients: Vec<ExplainedClient>,
    /// Effective number of clients: 1 / Σ weight².
    pub effective_clients: f64,
    /// The weighted mean of the clients' label distributions.
    pub class_mix: Vec<f64>,
    /// The strategies that combine updates otherwise than by a mean with these weights; `None` if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub combined_by: Option<String>,
    /// The weights under other strategies, for comparison.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<Explanation>,
}

/// One client and its weight.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExplainedClient {
    /// The client's number, from 1; kept for scripts.
    pub client: ClientId,
    /// The client's index, from 0, as everywhere else.
    pub index: usize,
    /// Number of samples.
    pub size: u64,
    /// Total variation distance (TVD) of its label distribution to the reference.
    pub tvd: f64,
    /// Its share by label quality; `None` if the strategy does not use labels.
    pub quality_share: Option<f64>,
    /// Its share by size.
    pub size_share: f64,
    /// Its aggregation weight.
    pub weight: f64,
}

/// Why weights cannot be computed.
#[derive(Debug, Error)]
pub enum ExplanationError {
    /// The configuration is invalid.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    /// The labels do not give a reference distribution.
    #[error(transparent)]
    Reference(#[from] ReferenceError),
    /// The reference has another number of classes.
    #[error(transparent)]
    Classes(#[from] ClassMismatch),
    /// A rule from outside the program could not answer.
    #[error("{0}")]
    Rule(String),
}

impl Explanation {
    /// The weights of clients with these label counts; there must be at least one client, and all must have the same
    /// number of classes.
    pub fn new(config: &Config, counts: &[Vec<u64>]) -> Result<Self, ExplanationError> {
        let Experiment { run, reference, .. } = Experiment::of(config)?;
        let classes = counts[0].len();
        let reference = match reference.resolve(classes)? {
            Some(reference) => reference,
            None => {
                let clients: Vec<_> = counts.iter().map(|counts| (size(counts), counts.as_slice())).collect();
                hardened::reference(run.mode, &clients)?
            }
        };
        let weighting = run.strategy.weighting.as_ref();
        let profile = |(place, counts): (usize, &Vec<u64>)| {
            Profile::new(place as ClientId + 1, size(counts), weighting.asks().answer(counts, &reference))
        };
        let profiles: Vec<Profile> = counts.iter().enumerate().map(profile).collect();
        let all: Vec<&Profile> = profiles.iter().collect();
        let shares = hardened::shares(weighting, run.mode, &all, &reference, &mut Memory::default());
        if let Some(why) = run.strategy.failure() {
            return Err(ExplanationError::Rule(why));
        }
        let client = |(k, profile): (usize, &Profile)| ExplainedClient {
            client: profile.client,
            index: k,
            size: profile.size,
            tvd: tvd(&counts[k], &reference),
            quality_share: shares.quality.as_ref().map(|quality| quality[k]),
            size_share: shares.size[k],
            weight: shares.weight[k],
        };
        let mix = |class: usize| {
            let part =
                |(counts, weight): (&Vec<u64>, &f64)| weight * counts[class] as f64 / size(counts) as f64;
            counts.iter().zip(&shares.weight).map(part).sum()
        };
        let combined_by = combined_by(&run.strategy.label);
        Ok(Self {
            strategy: run.strategy.label,
            clients: profiles.iter().enumerate().map(client).collect(),
            effective_clients: effective(&shares.weight),
            class_mix: (0..classes).map(mix).collect(),
            combined_by,
            beside: Vec::new(),
        })
    }
}

/// The names in a label that define how updates are combined.
fn combined_by(label: &str) -> Option<String> {
    let names = label.split('+').filter_map(|part| notation::find(part.split(':').next()?).ok());
    let combines = |spec: &&Spec| {
        let rules = (spec.build)(&Settings::defaults(spec)).rules();
        rules.iter().any(|rule| matches!(rule, Rule::Combine | Rule::Matching))
    };
    let combining: Vec<&str> = names.filter(combines).map(|spec| spec.name).collect();
    (!combining.is_empty()).then(|| combining.join(", "))
}
