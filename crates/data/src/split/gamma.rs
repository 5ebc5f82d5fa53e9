//! Gamma and Dirichlet draws in log space: with alpha = 0.01 a share of 1e-400 is nothing special.

use fedtvd_core::stream::Stream;

/// The logarithm of a gamma(shape, 1) number.
///
/// Marsaglia and Tsang 2000 for shape >= 1; below, G(a) = G(a + 1) U^(1/a).
pub(crate) fn log_gamma(stream: &mut Stream, shape: f64) -> f64 {
    if shape < 1.0 {
        // 1 - unit() is in (0, 1], so that the logarithm is finite.
        let log_u = (1.0 - stream.unit()).ln();
        return log_gamma(stream, shape + 1.0) + log_u / shape;
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = stream.normal();
        let root = 1.0 + c * x;
        if root <= 0.0 {
            continue;
        }
        let v = root * root * root;
        let u = 1.0 - stream.unit();
        if u.ln() < 0.5 * x * x + d - d * v + d * v.ln() {
            return d.ln() + v.ln();
        }
    }
}

/// Weights proportional to the exponentials of the logarithms where `open`, 0 elsewhere; the largest is 1.
pub(crate) fn weights(logs: &[f64], open: &[bool]) -> Vec<f64> {
    let among = |(log, open): (&f64, &bool)| open.then_some(*log);
    let largest = logs.iter().zip(open).filter_map(among).fold(f64::NEG_INFINITY, f64::max);
    logs.iter().zip(open).map(|pair| among(pair).map_or(0.0, |log| (log - largest).exp())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedtvd_core::stream::Purpose;

    #[test]
    fn gamma_numbers_have_mean_and_variance_equal_to_the_shape() {
        for (place, shape) in [0.1, 0.5, 1.0, 3.0, 100.0].into_iter().enumerate() {
            let mut stream = Stream::at(1, Purpose::Split, 0, place as u32);
            let draws: Vec<f64> = (0..40_000).map(|_| log_gamma(&mut stream, shape).exp()).collect();
            let mean = draws.iter().sum::<f64>() / 40_000.0;
            let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 40_000.0;
            // The mean's standard error is sqrt(shape / 40,000); the variance's relative one is
            // sqrt((2 + 6 / shape) / 40,000). Five of each.
            assert!((mean - shape).abs() < 5.0 * (shape / 40_000.0).sqrt(), "{shape}: mean {mean}");
            let error = ((2.0 + 6.0 / shape) / 40_000.0).sqrt();
            assert!((variance / shape - 1.0).abs() < 5.0 * error, "{shape}: variance {variance}");
        }
    }

    #[test]
    fn weights_survive_logarithms_that_would_underflow() {
        let weights = weights(&[-5000.0, -5001.0, 0.0], &[true, true, false]);
        assert_eq!(weights, [1.0, (-1.0_f64).exp(), 0.0]);
    }
}
