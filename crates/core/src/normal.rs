//! The standard normal distribution: cumulative probabilities and quantiles.

use std::f64::consts::{PI, SQRT_2};

/// The cumulative distribution function at x.
pub fn normal_below(x: f64) -> f64 {
    if x < 0.0 { 0.5 * erfc(-x / SQRT_2) } else { 1.0 - 0.5 * erfc(x / SQRT_2) }
}

/// The quantile of the standard normal distribution, for probabilities strictly between 0 and 1.
pub fn normal(probability: f64) -> f64 {
    let (mut low, mut high) = (-40.0, 40.0);
    // 200 bisections reach the last bit of any f64.
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if normal_below(middle) < probability {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// 1 - erf x for x >= 0: a series near 0, a continued fraction beyond.
fn erfc(x: f64) -> f64 {
    if x < 2.0 {
        // erf x = 2/√π e^(-x²) Σ 2^n x^(2n+1) / (2n+1)!!: all terms are positive, so there is no cancellation.
        let (mut term, mut sum, mut n) = (x, x, 1.0);
        while term > sum * 1e-17 {
            term *= 2.0 * x * x / (2.0 * n + 1.0);
            sum += term;
            n += 1.0;
        }
        return 1.0 - 2.0 / PI.sqrt() * (-x * x).exp() * sum;
    }
    let fraction = (1..=120).rev().fold(0.0, |tail, k| f64::from(k) / 2.0 / (x + tail));
    (-x * x).exp() / PI.sqrt() / (x + fraction)
}
