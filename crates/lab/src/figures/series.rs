//! A strategy's mean over seeds in every round, with the standard deviation as a band.

use crate::stats::statistics::{deviation, mean};

/// One curve with its band.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    /// The strategy's position in the tables, which determines its colour.
    pub(crate) place: usize,
    /// Its label.
    pub(crate) label: String,
    /// Mean over seeds in every round; `None` leaves a gap in the curve.
    pub(crate) mean: Vec<Option<f64>>,
    /// Standard deviation over seeds in every round.
    pub(crate) deviation: Vec<Option<f64>>,
}

impl Series {
    /// The curves of several seeds as one series.
    pub(crate) fn over_seeds(place: usize, label: &str, curves: &[Vec<Option<f64>>]) -> Self {
        let rounds = curves.iter().map(Vec::len).min().unwrap_or(0);
        let values = |round: usize| -> Vec<f64> { curves.iter().filter_map(|curve| curve[round]).collect() };
        let mean_of = |round| {
            let values = values(round);
            (!values.is_empty()).then(|| mean(&values))
        };
        Self {
            place,
            label: label.to_owned(),
            mean: (0..rounds).map(mean_of).collect(),
            deviation: (0..rounds).map(|round| deviation(&values(round))).collect(),
        }
    }

    /// The band's edge above (1) or below (-1) the curve.
    pub(crate) fn edge(&self, round: usize, sign: f64) -> Option<f64> {
        Some(self.mean[round]? + sign * self.deviation[round]?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_is_the_mean_and_deviation_of_its_seeds() {
        let series = Series::over_seeds(0, "a", &[vec![Some(1.0), None], vec![Some(3.0), None]]);
        assert_eq!((series.mean, series.deviation), (vec![Some(2.0), None], vec![Some(2f64.sqrt()), None]));
    }
}
