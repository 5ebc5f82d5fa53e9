//! What an evaluation of the global model says: by the server on its test set, or by clients on their hold-outs.

use crate::train::Evaluation;

/// The quality of a model. Fractions; all `None` or empty if nobody could evaluate it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Assessment {
    /// Accuracy.
    pub accuracy: Option<f64>,
    /// Mean cross-entropy.
    pub loss: Option<f64>,
    /// Accuracy of always predicting the most frequent class of the evaluated samples.
    pub chance: Option<f64>,
    /// Accuracy of each class; `None` for classes without samples.
    pub class_accuracy: Vec<Option<f64>>,
    /// Median of the clients' accuracies, if they evaluated the model.
    pub median_accuracy: Option<f64>,
}

impl From<&Evaluation> for Assessment {
    /// The assessment by the server.
    fn from(evaluation: &Evaluation) -> Self {
        if evaluation.samples() == 0 {
            return Self::default();
        }
        Self {
            accuracy: Some(evaluation.accuracy()),
            loss: Some(evaluation.mean_loss()),
            chance: Some(evaluation.chance()),
            class_accuracy: evaluation.class_accuracies(),
            median_accuracy: None,
        }
    }
}
