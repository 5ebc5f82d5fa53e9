//! The median of numbers.

/// The median; the mean of the two middle values of an even number of them. `None` without values.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    let [below, above] = [values[last / 2], values[last.div_ceil(2)]];
    // The sum of two equal numbers can overflow.
    Some(if below == above { below } else { 0.5 * below + 0.5 * above })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_value_or_the_mean_of_two() {
        assert_eq!(median(vec![5.0, 1.0, 9.0]), Some(5.0));
        assert_eq!(median(vec![4.0, 1.0, 9.0, 6.0]), Some(5.0));
        assert_eq!(median(vec![f64::MAX, f64::MAX]), Some(f64::MAX));
        assert_eq!(median(vec![f64::INFINITY, f64::INFINITY]), Some(f64::INFINITY));
        assert_eq!(median(vec![]), None);
    }
}
