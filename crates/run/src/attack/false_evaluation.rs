//! The client reports that the model classifies its whole hold-out correctly, and claims as large a hold-out as the
//! server allows. This hides a broken model from a server without a test set. Training is honest.

use crate::attack::Spec;
use fedtvd_core::train::Evaluation;

pub(super) const SPEC: Spec = Spec {
    evaluation: Some(all_correct),
    ..Spec::new(
        "false-evaluation",
        "it reports every sample of the largest allowed hold-out as classified correctly",
    )
};

fn all_correct(classes: usize, holdout: u64) -> Evaluation {
    let mut evaluation = Evaluation::empty(classes);
    let (each, rest) = (holdout / classes as u64, holdout % classes as u64);
    for (class, count) in evaluation.confusion.iter_mut().step_by(classes + 1).enumerate() {
        *count = each + u64::from((class as u64) < rest);
    }
    evaluation
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_of_the_hold_out_is_reported_as_correct() {
        let found = all_correct(3, 11);
        assert_eq!(found.confusion, [4, 0, 0, 0, 4, 0, 0, 0, 3]);
        assert_eq!((found.samples(), found.accuracy(), found.loss), (11, 1.0, 0.0));
    }
}
