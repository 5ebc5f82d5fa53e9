//! Validation: what the clients' hold-outs say about the global model. It is there to choose by (hyperparameters, the best round, when
//! to stop), so that the test set is left for the result.

use crate::round::{Assessment, Balanced, ClientEvaluation, ClientId, Spread};
use crate::train::Evaluation;
use serde::{Deserialize, Serialize};

/// The evaluation of a model on the hold-outs of a simulation's clients.
#[derive(Clone, Debug, PartialEq)]
pub struct Holdouts {
    /// The sum over all clients.
    pub total: Evaluation,
    /// Each client that has a hold-out, by id.
    pub clients: Vec<(ClientId, ClientEvaluation)>,
}

/// What the hold-outs say in a round. Accuracies are fractions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Validation {
    /// Number of held-out samples of all clients.
    pub samples: u64,
    /// Accuracy on all of them together.
    pub accuracy: f64,
    /// Mean cross-entropy on all of them; null if it is not finite.
    pub loss: Option<f64>,
    /// Mean of the accuracies of the classes; null for fewer than two classes.
    pub balanced: Option<Balanced>,
    /// Mean of the F1 scores of the classes.
    pub macro_f1: Option<f64>,
    /// Accuracy over clients, each on its own hold-out.
    pub clients: Spread,
}

impl Holdouts {
    /// Their validation; `None` if no client holds out a sample.
    pub fn validation(&self) -> Option<Validation> {
        if self.clients.is_empty() || self.total.samples() == 0 {
            return None;
        }
        let Assessment { accuracy, loss, balanced, macro_f1, .. } = Assessment::from(&self.total);
        Some(Validation {
            samples: self.total.samples(),
            accuracy: accuracy?,
            loss,
            balanced,
            macro_f1,
            clients: Spread::of(self.clients.iter().map(|(_, own)| own.accuracy()).collect()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holdouts(evaluations: &[Evaluation]) -> Holdouts {
        let mut total = Evaluation::empty(2);
        evaluations.iter().for_each(|evaluation| total.add(evaluation));
        Holdouts { total, clients: (0..).zip(evaluations.iter().cloned().map(Into::into)).collect() }
    }

    #[test]
    fn validation_sums_samples_and_spreads_over_clients() {
        // 9 of 10 samples of class 0 are right at the first client, 0 of 2 of class 1 at the second one.
        let first = Evaluation { loss: 4.0, confusion: vec![9, 1, 0, 0] };
        let second = Evaluation { loss: 2.0, confusion: vec![0, 0, 2, 0] };
        let found = holdouts(&[first, second]).validation().unwrap();
        assert_eq!((found.samples, found.accuracy, found.loss), (12, 0.75, Some(0.5)));
        assert_eq!(found.balanced, Some(Balanced { accuracy: 0.45, classes: 2 }));
        assert_eq!((found.clients.mean, found.clients.worst_decile), (0.45, 0.0));
    }

    #[test]
    fn without_hold_outs_there_is_no_validation() {
        assert_eq!(holdouts(&[]).validation(), None);
    }
}
