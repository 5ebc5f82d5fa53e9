//! How a candidate is judged: the mean over tuning seeds of its metric on the clients' hold-outs.

use fedtvd_core::round::RoundRecord;
use fedtvd_run::collapse::Detector;
use fedtvd_run::configuration::{EvaluationOptions, Metric};
use fedtvd_run::directory::LAST;

/// The metric of a run after its first `rounds` rounds: the mean over the evaluated ones of the last ten of them; `None` if the
/// metric is unknown in one of them.
pub fn score(lines: &[RoundRecord], rounds: u32, options: &EvaluationOptions) -> Option<f64> {
    let lines = &lines[..lines.len().min(rounds as usize)];
    let last = &lines[lines.len().saturating_sub(LAST.max(options.every as usize))..];
    // Every n-th round only: whether others are evaluated depends on where a run was interrupted.
    let due = last.iter().filter(|line| line.round.is_multiple_of(options.every));
    let values: Vec<f64> =
        due.map(|line| options.metric.of_validation(line.validation.as_ref()?)).collect::<Option<_>>()?;
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Whether a run has collapsed in its first `rounds` rounds.
pub fn collapsed(lines: &[RoundRecord], rounds: u32) -> bool {
    Detector::of(&lines[..lines.len().min(rounds as usize)]).verdict().is_some()
}

/// The mean over seeds; `None` if one of them has no score.
pub fn mean_score(scores: &[Option<f64>]) -> Option<f64> {
    let known: Vec<f64> = scores.iter().copied().collect::<Option<_>>()?;
    (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
}

/// The places of the best candidates, best first; those without a score are never among them. Of equal ones, the first counts
/// as better.
pub fn best(metric: Metric, scores: &[Option<f64>], count: usize) -> Vec<usize> {
    let mut known: Vec<(usize, f64)> =
        scores.iter().enumerate().filter_map(|(place, score)| Some((place, (*score)?))).collect();
    known.sort_by(|(_, one), (_, other)| {
        let (one, other) = if metric == Metric::Loss { (one, other) } else { (other, one) };
        one.total_cmp(other)
    });
    known.into_iter().take(count).map(|(place, _)| place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedtvd_core::round::{Spread, Validation};

    fn line(round: u32, accuracy: f64) -> RoundRecord {
        let clients = Spread { mean: accuracy, deviation: 0.0, worst_decile: accuracy };
        let validation =
            Validation { samples: 10, accuracy, loss: Some(1.0), balanced: None, macro_f1: None, clients };
        RoundRecord { round, validation: Some(validation), ..RoundRecord::default() }
    }

    #[test]
    fn a_score_is_the_mean_of_the_last_ten_rounds_of_a_step() {
        let lines: Vec<RoundRecord> = (1..=30).map(|n| line(n, f64::from(n) / 100.0)).collect();
        let options = EvaluationOptions::default();
        // Rounds 11 to 20, although 30 are done.
        assert!((score(&lines, 20, &options).unwrap() - 0.155).abs() < 1e-12);
        assert!((score(&lines[..4], 20, &options).unwrap() - 0.025).abs() < 1e-12);
        assert_eq!(score(&[], 20, &options), None);
    }

    #[test]
    fn the_best_are_those_with_the_highest_accuracy_or_the_lowest_loss() {
        let scores = [Some(0.5), None, Some(0.7), Some(0.7), Some(0.1)];
        assert_eq!(best(Metric::Accuracy, &scores, 3), [2, 3, 0]);
        assert_eq!(best(Metric::Loss, &scores, 1), [4]);
        assert_eq!(best(Metric::Accuracy, &[None, None], 1), Vec::<usize>::new());
    }

    #[test]
    fn a_seed_without_a_score_leaves_a_candidate_without_one() {
        assert_eq!(mean_score(&[Some(0.5), None]), None);
        assert_eq!(mean_score(&[Some(0.25), Some(0.75)]), Some(0.5));
    }
}
