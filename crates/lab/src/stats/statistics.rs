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

/// The quantile of Student's t distribution, for probabilities from 0.5 to below 1.
pub fn student(probability: f64, freedom: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while student_below(high, freedom) < probability {
        high *= 2.0;
    }
    // Bisections end when no f64 is left between the two.
    loop {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            return middle;
        }
        if student_below(middle, freedom) < probability {
            low = middle;
        } else {
            high = middle;
        }
    }
}

/// The cumulative distribution function of Student's t at t, for t >= 0.
pub fn student_below(t: f64, freedom: f64) -> f64 {
    1.0 - 0.5 * student_beyond(t, freedom)
}

/// The two-sided tail probability of Student's t, P(|T| > t), accurate also where it is small.
pub fn student_beyond(t: f64, freedom: f64) -> f64 {
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
    fn the_standard_deviation_divides_by_n_minus_1() {
        assert_eq!(deviation(&[1.0, 3.0]), Some(2f64.sqrt()));
        assert_eq!(deviation(&[1.0]), None);
    }
}
