//! `summary.json`: what a finished run came to.

use crate::line::{Line, or_none};
use serde::{Deserialize, Serialize};

/// Rounds at the end that a result is the mean of, as in the paper.
pub const LAST: usize = 10;

/// What a run came to. Accuracies are fractions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The strategy's label.
    pub strategy: String,
    /// The seed.
    pub seed: u64,
    /// Rounds done.
    pub rounds: u32,
    /// Accuracy after the last round; null where nobody could judge the model.
    #[serde(deserialize_with = "or_none")]
    pub accuracy: f64,
    /// Mean accuracy of the last 10 rounds.
    #[serde(deserialize_with = "or_none")]
    pub last10_accuracy: f64,
    /// How long all rounds took together.
    pub seconds: f64,
    /// Samples trained on, per second.
    pub images_per_second: f64,
    /// Most memory that the process had; null where the system does not tell.
    pub peak_memory_bytes: Option<u64>,
    /// Hash of the split.
    pub split_hash: String,
    /// The run directory.
    pub directory: String,
    /// The final model.
    pub model: String,
}

/// Mean accuracy of the last rounds.
pub fn last_accuracy(accuracies: &[f64]) -> f64 {
    let last = &accuracies[accuracies.len().saturating_sub(LAST)..];
    last.iter().sum::<f64>() / last.len().max(1) as f64
}

/// Samples trained on in a round: each accepted client's, in every epoch.
pub fn images(line: &Line, epochs: u32) -> u64 {
    let counted = line.clients.iter().filter(|client| client.failure.is_none());
    counted.map(|client| client.size * u64::from(epochs)).sum()
}

/// Most memory that this process had, as Linux tells it.
pub fn peak_memory() -> Option<u64> {
    status("VmHWM:")
}

/// Memory that this process has, as Linux tells it.
pub(crate) fn memory() -> Option<u64> {
    status("VmRSS:")
}

fn status(what: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(what))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kilobytes| 1024 * kilobytes)
}
