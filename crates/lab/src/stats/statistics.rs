//! Means, standard deviations and Student's t, for small samples.

/// The mean; 0 for an empty slice.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The sample standard deviation (divided by n - 1); `None` for fewer than two values.
pub fn deviation(values: &[f64]) -> Option<f64> {
    let n = values.len();
    if n < 2 {
        return None;
    }
    let mean = mean(values);
    Some((values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1) as f64).sqrt())
}

/// The 95 % confidence interval of the mean by Student's t; `None` for fewer than two values.
pub fn interval(values: &[f64]) -> Option<[f64; 2]> {
    let deviation = deviation(values)?;
    let half = student(0.975, (values.len() - 1) as f64) * deviation / (values.len() as f64).sqrt();
    let mean = mean(values);
    Some([mean - half, mean + half])
}

/// The two-sided p-value of a paired t-test; 1 for fewer than two differences.
pub fn paired(differences: &[f64]) -> f64 {
    let (n, mean) = (differences.len() as f64, mean(differences));
    match deviation(differences) {
        None => 1.0,
        Some(0.0) => f64::from(u8::from(mean == 0.0)),
        Some(deviation) => student_beyond(mean.abs() / deviation * n.sqrt(), n - 1.0),
    }
}

/// The quantile of Student's t distribution, for probabilities from 0.5 to below 1.
pub fn student(probability: f64, freedom: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while student_below(high, freedom) < probability {
        high *= 2.0;
    }
    // 200 bisections reach the last bit of any f64.
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if student_below(middle, freedom) < probability {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// The cumulative distribution function of Student's t at t, for t >= 0.
pub fn student_below(t: f64, freedom: f64) -> f64 {
    1.0 - 0.5 * student_beyond(t, freedom)
}

/// The two-sided tail probability of Student's t, P(|T| > t), accurate also where it is small.
fn student_beyond(t: f64, freedom: f64) -> f64 {
    incomplete_beta(0.5 * freedom, 0.5, freedom / (freedom + t * t))
}

/// The regularised incomplete beta function I_x(a, b), by its continued fraction (Lentz).
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // The continued fraction converges fast only on this side.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(b, a, 1.0 - x);
    }
    let log_front = a * x.ln() + b * (1.0 - x).ln() - (ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b));
    const TINY: f64 = 1e-300;
    let (mut fraction, mut c, mut d) = (1.0, 1.0, 0.0);
    for step in 0..500 {
        let m = f64::from(step / 2);
        let factor = match step {
            0 => 1.0,
            _ if step % 2 == 0 => m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m)),
            _ => -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0)),
        };
        d = 1.0 + factor * d;
        d = 1.0 / if d.abs() < TINY { TINY } else { d };
        c = 1.0 + factor / c;
        c = if c.abs() < TINY { TINY } else { c };
        fraction *= c * d;
        if (c * d - 1.0).abs() < 1e-16 {
            break;
        }
    }
    log_front.exp() / a * (fraction - 1.0)
}

/// ln Γ(x) for x > 0 (Stirling's series after shifting x above 10).
fn ln_gamma(x: f64) -> f64 {
    let (mut x, mut shift) = (x, 0.0);
    while x < 10.0 {
        shift += x.ln();
        x += 1.0;
    }
    let r = 1.0 / (x * x);
    let series = (1.0 / 12.0 - r * (1.0 / 360.0 - r * (1.0 / 1260.0 - r * (1.0 / 1680.0 - r / 1188.0)))) / x;
    (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + series - shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn students_quantiles_are_those_of_printed_tables() {
        // t at 0.975, as SciPy 1.17.1's stats.t.ppf gives it.
        for (freedom, expected) in [
            (1.0, 12.706204736174694),
            (2.0, 4.302652729749462),
            (4.0, 2.7764451051977934),
            (9.0, 2.262157162798205),
            (100.0, 1.9839715185235518),
        ] {
            let got = student(0.975, freedom);
            assert!((got - expected).abs() < 1e-9, "{freedom}: {got} is not {expected}");
        }
    }

    #[test]
    fn the_paired_test_agrees_with_the_interval_and_with_a_known_case() {
        // t = 2 / (1.5811388 / sqrt 5) = 2.8284271 with 4 degrees: p = 0.04742065558431961 (SciPy 1.17.1, ttest_1samp).
        let p = paired(&[0.0, 1.0, 2.0, 3.0, 4.0]);
        assert!((p - 0.04742065558431961).abs() < 1e-9, "{p}");
        let [low, _] = interval(&[0.0, 1.0, 2.0, 3.0, 4.0]).unwrap();
        assert!(low > 0.0, "p below 0.05 and an interval above 0 are equivalent");
        assert_eq!((paired(&[0.0; 6]), paired(&[0.1; 6]) < 1e-9), (1.0, true));
    }

    #[test]
    fn the_standard_deviation_divides_by_n_minus_1() {
        assert_eq!(deviation(&[1.0, 3.0]), Some(2f64.sqrt()));
        assert_eq!(deviation(&[1.0]), None);
    }

    #[test]
    fn an_interval_is_centred_on_the_mean() {
        // Mean 2, deviation 1, three values: 2 ± 4.302652729696142 / sqrt(3).
        let [low, high] = interval(&[1.0, 2.0, 3.0]).unwrap();
        assert!(
            (low - (2.0 - 4.302652729696142 / 3f64.sqrt())).abs() < 1e-9 && (low + high - 4.0).abs() < 1e-12
        );
    }
}
