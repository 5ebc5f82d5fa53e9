//! Confidence intervals that do not assume normal differences: Efron's bias-corrected and accelerated bootstrap (BCa).

use crate::stats::statistics::mean;
use fedtvd_core::normal::{normal, normal_below};
use fedtvd_core::stream::{Purpose, Stream};

/// Number of bootstrap resamples.
const RESAMPLES: usize = 10_000;

/// The 95 % confidence interval of the mean; `None` if all values are equal.
///
/// The resamples depend only on the number of values, so the same runs give the same interval on every machine.
pub fn bootstrap(values: &[f64]) -> Option<[f64; 2]> {
    let mut stream = Stream::at(0, Purpose::Bootstrap, values.len() as u32, 0);
    let n = values.len();
    let mut draw = || {
        let mut times = vec![0.0; n];
        (0..n).for_each(|_| times[stream.below(n as u64) as usize] += 1.0);
        // Summed in the order of the values, so that a resample with each value once gives exactly the mean.
        values.iter().zip(times).map(|(value, times)| times * value).sum::<f64>() / n as f64
    };
    let means: Vec<f64> = (0..RESAMPLES).map(|_| draw()).collect();
    bca(values, means)
}

/// The BCa interval of a mean, given its bootstrap distribution.
pub fn bca(values: &[f64], mut means: Vec<f64>) -> Option<[f64; 2]> {
    let (n, all) = (values.len() as f64, mean(values));
    means.sort_by(f64::total_cmp);
    let share = means.len() as f64;
    let below = means.partition_point(|value| *value < all) as f64;
    let not_above = means.partition_point(|value| *value <= all) as f64;
    let bias = normal((0.5 * (below + not_above) / share).clamp(1e-12, 1.0 - 1e-12));
    // Jackknife: leaving out value i moves the mean by (mean - x_i) / (n - 1).
    let moves: Vec<f64> = values.iter().map(|value| (value - all) / (n - 1.0)).collect();
    let [square, cube] = [2, 3].map(|power| moves.iter().map(|x| x.powi(power)).sum::<f64>());
    if square == 0.0 {
        return None;
    }
    let acceleration = cube / (6.0 * square.powf(1.5));
    let end = |probability: f64| {
        let z = bias + normal(probability);
        quantile(&means, normal_below(bias + z / (1.0 - acceleration * z)))
    };
    Some([end(0.025), end(0.975)])
}

/// The quantile of sorted values, with linear interpolation.
fn quantile(sorted: &[f64], probability: f64) -> f64 {
    let place = probability.clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
    let (low, part) = (place.floor() as usize, place.fract());
    let high = (low + 1).min(sorted.len() - 1);
    sorted[low] + part * (sorted[high] - sorted[low])
}
