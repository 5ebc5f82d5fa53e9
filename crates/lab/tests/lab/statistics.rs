//! The statistics agree with SciPy on committed examples (`golden/make_statistics.py` made them).
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use fedtvd_lab::stats::bootstrap::{bca, bootstrap};
use fedtvd_lab::stats::holm::holm;
use fedtvd_lab::stats::normal::{normal, normal_below};
use fedtvd_lab::stats::statistics::{deviation, interval, mean, paired, student};
use serde_json::Value;

fn golden() -> Value {
    serde_json::from_str(include_str!("../golden/statistics.json")).unwrap()
}

fn floats(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

#[track_caller]
fn close(got: f64, expected: &Value, relative: f64, what: &str) {
    let expected = expected.as_f64().unwrap();
    let tolerance = relative * expected.abs().max(1e-300);
    assert!((got - expected).abs() <= tolerance, "{what}: {got} is not {expected}");
}

#[test]
fn means_deviations_intervals_and_tests_are_scipys() {
    for (name, case) in golden()["cases"].as_object().unwrap() {
        let values = floats(&case["values"]);
        let [low, high] = interval(&values).unwrap();
        // Both sum a dozen numbers in f64 and find the quantile to the last digits.
        close(mean(&values), &case["mean"], 1e-12, name);
        close(deviation(&values).unwrap(), &case["std"], 1e-12, name);
        close(low, &case["low"], 1e-9, name);
        close(high, &case["high"], 1e-9, name);
        // Also a p of 1e-24 has its digits.
        close(paired(&values), &case["p"], 1e-8, name);
    }
}

#[test]
fn the_bca_interval_of_a_given_distribution_is_scipys() {
    let golden = golden();
    let cases = golden["cases"].as_object().unwrap().iter().filter(|(_, case)| case["means"].is_array());
    for (name, case) in cases {
        let got = bca(&floats(&case["values"]), floats(&case["means"])).unwrap();
        for (got, expected) in got.iter().zip(case["bca_of_means"].as_array().unwrap()) {
            close(*got, expected, 1e-9, name);
        }
    }
}

#[test]
fn our_own_draws_come_to_scipys_interval_within_the_noise_of_drawing() {
    for (name, case) in golden()["cases"].as_object().unwrap() {
        let Some(expected) = case["bca"].as_array() else { continue };
        let values = floats(&case["values"]);
        let got = bootstrap(&values).unwrap();
        // A quantile at 2.5 % of 10,000 draws has a deviation of about 0.027 standard errors of the mean, in the long
        // tail of a skewed case up to three times that: four deviations of it.
        let tolerance = 0.3 * deviation(&values).unwrap() / (values.len() as f64).sqrt();
        for (got, expected) in got.iter().zip(floats(&Value::Array(expected.clone()))) {
            assert!((got - expected).abs() < tolerance, "{name}: {got} is not {expected} within {tolerance}");
        }
        assert_eq!(bootstrap(&values), Some(got), "the same values have the same interval");
    }
}

#[test]
fn values_that_are_all_the_same_have_no_bootstrap_interval() {
    assert_eq!(bootstrap(&[0.5; 7]), None);
}

#[test]
fn holms_p_values_are_those_of_its_definition() {
    for case in golden()["holm"].as_array().unwrap() {
        let (p, expected) = (floats(&case["p"]), floats(&case["adjusted"]));
        for (got, expected) in holm(&p).iter().zip(&expected) {
            assert!((got - expected).abs() < 1e-15, "{p:?}: {got} is not {expected}");
        }
        assert_eq!(holm(&p).len(), expected.len());
    }
}

#[test]
fn quantiles_and_probabilities_are_scipys() {
    let golden = golden();
    for case in golden["normal"].as_array().unwrap() {
        close(normal_below(case["x"].as_f64().unwrap()), &case["below"], 1e-12, "normal");
    }
    for case in golden["normal_quantile"].as_array().unwrap() {
        let (got, expected) = (normal(case["p"].as_f64().unwrap()), case["x"].as_f64().unwrap());
        assert!((got - expected).abs() < 1e-9, "{got} is not {expected}");
    }
    for case in golden["student"].as_array().unwrap() {
        close(
            student(case["p"].as_f64().unwrap(), case["freedom"].as_f64().unwrap()),
            &case["t"],
            1e-9,
            "student",
        );
    }
}
