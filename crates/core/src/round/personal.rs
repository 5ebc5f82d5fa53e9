//! How the models that clients use themselves do, each on its own client's samples.

use crate::round::{ClientEvaluation, ClientId, Spread};
use serde::{Deserialize, Serialize};

/// What clients' own models are evaluated on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvaluatedOn {
    /// Each client's hold-out.
    HoldOuts,
    /// The test set, with each class weighted by its share among the client's training labels.
    TestByLabels,
}

/// The results of the clients' own models.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnResults {
    /// What they were evaluated on.
    pub on: EvaluatedOn,
    /// The result of each client, by id.
    pub clients: Vec<(ClientId, OwnResult)>,
    /// Clients whose model could not be made, with the reasons.
    pub failed: Vec<(ClientId, String)>,
}

/// The result of one client's own model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OwnResult {
    /// Its accuracy.
    pub accuracy: f64,
    /// The sum of the losses of its hold-out; `None` on the test set.
    pub loss: Option<f64>,
    /// How much it counts among all: the number of samples of its hold-out, or of its training samples.
    pub samples: u64,
}

/// What a round's record says about the clients' own models. Accuracies are fractions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Personal {
    /// What they were evaluated on.
    pub on: EvaluatedOn,
    /// Accuracy on the samples of all clients together.
    pub accuracy: f64,
    /// Mean cross-entropy on them; null if it is not finite, and on the test set.
    pub loss: Option<f64>,
    /// Accuracy over clients.
    pub clients: Spread,
    /// Number of clients evaluated.
    pub evaluated: usize,
    /// Number of clients whose model could not be made.
    pub failed: usize,
}

impl From<&ClientEvaluation> for OwnResult {
    fn from(found: &ClientEvaluation) -> Self {
        Self { accuracy: found.accuracy(), loss: Some(found.loss), samples: found.total }
    }
}

impl OwnResults {
    /// Their summary; `None` if no client's model was evaluated.
    pub fn summary(&self) -> Option<Personal> {
        let results = || self.clients.iter().map(|(_, result)| result);
        let samples: u64 = results().map(|result| result.samples).sum();
        if samples == 0 {
            return None;
        }
        let mean = |of: &dyn Fn(&OwnResult) -> f64| results().map(of).sum::<f64>() / samples as f64;
        let loss = results().all(|result| result.loss.is_some());
        let loss = loss.then(|| mean(&|result| result.loss.unwrap_or_default()));
        Some(Personal {
            on: self.on,
            accuracy: mean(&|result| result.accuracy * result.samples as f64),
            loss: loss.filter(|loss| loss.is_finite()),
            clients: Spread::of(results().map(|result| result.accuracy).collect()),
            evaluated: self.clients.len(),
            failed: self.failed.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(clients: Vec<(ClientId, OwnResult)>) -> OwnResults {
        OwnResults { on: EvaluatedOn::HoldOuts, clients, failed: vec![(9, "no samples".to_owned())] }
    }

    #[test]
    fn clients_count_equally_in_the_spread_and_by_their_samples_in_the_accuracy() {
        let one = OwnResult { accuracy: 0.9, loss: Some(4.0), samples: 30 };
        let other = OwnResult { accuracy: 0.5, loss: Some(6.0), samples: 10 };
        let found = results(vec![(0, one), (4, other)]).summary().unwrap();
        assert!((found.accuracy - 0.8).abs() < 1e-15 && found.loss == Some(0.25));
        assert!((found.clients.mean - 0.7).abs() < 1e-15 && found.clients.worst_decile == 0.5);
        assert_eq!((found.evaluated, found.failed), (2, 1));
    }

    #[test]
    fn without_samples_there_is_no_summary_and_without_losses_no_loss() {
        assert_eq!(results(Vec::new()).summary(), None);
        let client = OwnResult { accuracy: 0.5, loss: None, samples: 3 };
        assert_eq!(results(vec![(1, client)]).summary().unwrap().loss, None);
    }
}
