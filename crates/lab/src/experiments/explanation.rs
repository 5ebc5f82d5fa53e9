//! How much each of some clients would count, and why: a weighting without a round.

use fedtvd_core::labels::{Reference, ReferenceError, size, tvd};
use fedtvd_core::memory::Memory;
use fedtvd_core::round::{ClientId, Profile, effective, hardened};
use fedtvd_run::configuration::{ClassMismatch, Config, Experiment, ExperimentError};
use serde::Serialize;
use thiserror::Error;

/// The weights of some clients under one strategy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// The strategy's label.
    pub strategy: String,
    /// The clients, counted from 1.
    pub clients: Vec<ExplainedClient>,
    /// 1 / Σ s².
    pub effective_clients: f64,
    /// The label distribution that the weights mix the clients' to.
    pub class_mix: Vec<f64>,
    /// The same under other strategies.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<Explanation>,
}

/// One client and what it counts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExplainedClient {
    /// Who, counted from 1.
    pub client: ClientId,
    /// Its samples.
    pub size: u64,
    /// Total variation distance of its labels to the reference.
    pub tvd: f64,
    /// What its labels earn it.
    pub quality_share: Option<f64>,
    /// What its size earns it.
    pub size_share: f64,
    /// What it counts.
    pub weight: f64,
}

/// Why weights cannot be explained.
#[derive(Debug, Error)]
pub enum ExplanationError {
    /// The configuration.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    /// The clients' labels give no reference.
    #[error(transparent)]
    Reference(#[from] ReferenceError),
    /// A reference for other classes.
    #[error(transparent)]
    Classes(#[from] ClassMismatch),
}

impl Explanation {
    /// The weights of clients with these label counts; there is at least one client, and all have the same classes.
    pub fn new(config: &Config, counts: &[Vec<u64>]) -> Result<Self, ExplanationError> {
        let Experiment { run, reference, .. } = Experiment::of(config)?;
        let classes = counts[0].len();
        let reference = match reference.resolve(classes)? {
            Some(reference) => reference,
            None => Reference::aggregated(counts.iter().map(Vec::as_slice))?,
        };
        let weighting = run.strategy.weighting.as_ref();
        let profile = |(place, counts): (usize, &Vec<u64>)| Profile {
            client: place as ClientId + 1,
            size: size(counts),
            statistic: weighting.asks().answer(counts, &reference),
        };
        let profiles: Vec<Profile> = counts.iter().enumerate().map(profile).collect();
        let all: Vec<&Profile> = profiles.iter().collect();
        let shares = hardened::shares(weighting, run.mode, &all, &mut Memory::default());
        let client = |(k, profile): (usize, &Profile)| ExplainedClient {
            client: profile.client,
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
        Ok(Self {
            strategy: run.strategy.label,
            clients: profiles.iter().enumerate().map(client).collect(),
            effective_clients: effective(&shares.weight),
            class_mix: (0..classes).map(mix).collect(),
            beside: Vec::new(),
        })
    }
}
