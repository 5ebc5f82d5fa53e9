//! One sentence on whether intervals, p-values and verdicts count the uncertainty of the test set.

use crate::runs::test_rows::TestSets;
use crate::stats::row::Row;

/// The sentence for these rows; `None` if none of them has an interval.
pub(crate) fn test_set(rows: &[Row]) -> Option<String> {
    let compared: Vec<&Row> = rows.iter().filter(|row| row.line.p.is_some()).collect();
    let of =
        |known: fn(TestSets) -> bool| compared.iter().filter(move |row| row.test_sets.is_some_and(known));
    if compared.is_empty() {
        return None;
    }
    if of(|sets| sets == TestSets::Unknown).next().is_some() {
        return Some(
            "The uncertainty of the test set is not counted in intervals, p and verdict: not all runs stored their predictions."
                .to_owned(),
        );
    }
    if of(|sets| sets == TestSets::Different).next().is_some() {
        return Some(
            "The seeds have different test sets, so that the spread over seeds contains the uncertainty of the test set."
                .to_owned(),
        );
    }
    let rows = compared.iter().find_map(|row| match row.test_sets {
        Some(TestSets::Shared(rows)) => Some(rows),
        _ => None,
    })?;
    Some(format!(
        "All seeds share one test set of {rows} samples; its uncertainty is counted in intervals, p and verdict."
    ))
}
