//! `summary.json`: the result of a finished run.

use crate::collapse::{Detector, FailedUpdates};
use crate::monitor::Best;
use fedtvd_core::round::{MissedClass, RoundRecord, Spread};
use fedtvd_core::train::Local;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Number of final rounds that a result is averaged over, as in the paper.
pub const LAST: usize = 10;

/// The result of a run. Accuracies are fractions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The strategy's label.
    pub strategy: String,
    /// The seed.
    pub seed: u64,
    /// Number of rounds.
    pub rounds: u32,
    /// Accuracy after the last round; null if the model was not evaluated.
    pub accuracy: Option<f64>,
    /// Mean accuracy of the last 10 rounds, or of every n-th of them (`evaluation.every`); null if the model was not evaluated
    /// in one of them.
    pub last10_accuracy: Option<f64>,
    /// The same of balanced accuracy; null if it is not known in one of them.
    #[serde(default)]
    pub last10_balanced_accuracy: Option<f64>,
    /// The same of macro F1.
    #[serde(default)]
    pub last10_macro_f1: Option<f64>,
    /// The same of the mean cross-entropy.
    #[serde(default)]
    pub last10_loss: Option<f64>,
    /// The classes of which no sample was classified correctly in any of the last 10 rounds; null if it is not known.
    #[serde(default)]
    pub missed_classes: Option<Vec<MissedClass>>,
    /// The same for `evaluation.metric` on the clients' hold-outs; null without hold-outs.
    #[serde(default)]
    pub last10_validation: Option<f64>,
    /// The models that clients use themselves, mean over the last 10 rounds of their accuracy over clients; null unless the
    /// strategy has such models, and if they were not evaluated in one of these rounds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub last10_personal: Option<Spread>,
    /// Accuracy of the final model over clients, each on its own hold-out; null without hold-outs.
    #[serde(default)]
    pub client_accuracy: Option<Spread>,
    /// The best round by validation; null without hold-outs.
    #[serde(default)]
    pub best: Option<Best>,
    /// Why the run stopped before its last round; null if it did not.
    #[serde(default)]
    pub stopped: Option<String>,
    /// Why the result cannot be used: what collapsed, and when; null if nothing did.
    #[serde(default)]
    pub collapsed: Option<String>,
    /// Number of rounds with an alarm.
    #[serde(default)]
    pub alarms: u32,
    /// The updates that failed or were rejected.
    #[serde(flatten)]
    pub failed: FailedUpdates,
    /// Total time of all rounds.
    pub seconds: f64,
    /// Samples trained on, per second.
    pub images_per_second: f64,
    /// Peak memory of the process; null if the system does not report it.
    pub peak_memory_bytes: Option<u64>,
    /// Hash of the split.
    pub split_hash: String,
    /// The run directory.
    pub directory: String,
    /// The final model.
    pub model: String,
}

impl Summary {
    /// The summary with the paths of the directory that it is in now, which may have been moved.
    pub(crate) fn in_directory(self, path: &Path) -> Self {
        let place = |name: &str| path.join(name).display().to_string();
        let best =
            self.best.map(|best| Best { model: best.model.map(|_| place("best.safetensors")), ..best });
        Self { directory: path.display().to_string(), model: place("model.safetensors"), best, ..self }
    }

    /// The summary with what these rounds show about a collapse.
    pub(crate) fn with_collapse(self, detector: &Detector) -> Self {
        let (collapsed, alarms) = (detector.verdict(), detector.alarms());
        Self { collapsed, alarms, failed: detector.failed_updates(), ..self }
    }
}

/// Samples trained on in a round, by the steps that each accepted client made.
pub fn images(record: &RoundRecord, local: &Local) -> u64 {
    let accepted = record.clients.iter().filter(|client| client.failure.is_none());
    accepted.map(|client| local.samples(client.size, client.steps)).sum()
}

/// Peak memory of this process, as reported by Linux.
pub(crate) fn peak_memory() -> Option<u64> {
    status("VmHWM:")
}

/// Current memory of this process, as reported by Linux.
pub(crate) fn memory() -> Option<u64> {
    status("VmRSS:")
}

fn status(what: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(what))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kilobytes| 1024 * kilobytes)
}
