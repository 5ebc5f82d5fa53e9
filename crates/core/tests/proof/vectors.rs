//! Reads the golden vectors in `tests/golden` and compares them within one of three tolerances.

use serde_json::Value;

/// A file of golden vectors.
pub(crate) fn read(text: &str) -> Value {
    serde_json::from_str(text).expect("golden vectors are JSON")
}

/// The numbers of a list.
pub(crate) fn numbers(value: &Value) -> Vec<f64> {
    let list = value.as_array().unwrap_or_else(|| panic!("{value} is not a list"));
    list.iter().map(number).collect()
}

/// The lists of numbers of a list.
pub(crate) fn rows(value: &Value) -> Vec<Vec<f64>> {
    value.as_array().unwrap_or_else(|| panic!("{value} is not a list")).iter().map(numbers).collect()
}

/// The counts of a list.
pub(crate) fn counts(value: &Value) -> Vec<u64> {
    numbers(value).into_iter().map(|count| count as u64).collect()
}

/// One number.
pub(crate) fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

/// Quantities held in f64: 1e-12 relative, a few thousand roundings.
pub(crate) fn same(got: &[f64], want: &Value, what: &str) {
    within(got, &numbers(want), what, |x| 1e-12 * x.abs());
}

/// Parameters held in f32: 2e-6 max(1, |x|), a few dozen roundings of f32.
pub(crate) fn same_f32(got: &[f32], want: &Value, what: &str) {
    within(&widened(got), &numbers(want), what, |x| 2e-6 * x.abs().max(1.0));
}

/// Fixed points of f32 iterations: 1e-4, because a step smaller than half a unit in the last place is lost.
pub(crate) fn settled(got: &[f32], want: &Value, what: &str) {
    within(&widened(got), &numbers(want), what, |_| 1e-4);
}

/// f32 numbers as f64.
pub(crate) fn widened(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&x| f64::from(x)).collect()
}

/// Points that iterations converge to: 1e-6, a thousand times the gradient at which they end.
pub(crate) fn converged(got: &[f64], want: &Value, what: &str) {
    within(got, &numbers(want), what, |x| 1e-6 * x.abs().max(1.0));
}

fn within(got: &[f64], want: &[f64], what: &str, tolerance: impl Fn(f64) -> f64) {
    assert_eq!(got.len(), want.len(), "{what}: {got:?} is not {want:?}");
    for (got_one, want_one) in got.iter().zip(want) {
        assert!((got_one - want_one).abs() <= tolerance(*want_one), "{what}: {got:?} is not {want:?}");
    }
}
