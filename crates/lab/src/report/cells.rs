//! The cells of a table: their text, their marks and their ranks.

use crate::report::missed::MISSED;
use crate::report::troubles::MARK;
use crate::stats::row::Row;

/// The text of a cell without a value.
pub(super) const NONE: &str = "—";

/// One cell.
#[derive(Clone, Debug, Default)]
pub struct TableCell {
    /// The text shown.
    pub text: String,
    /// The value to sort by; `None` comes last.
    pub value: Option<f64>,
    /// Whether it is the best or the second best.
    pub rank: Option<Rank>,
}

/// Best or second best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rank {
    /// No other is better.
    Best,
    /// Only the best is better.
    Second,
}

/// Mean and standard deviation of each row in per cent, and its rank. Means over different seeds are not ranked, and
/// the number of seeds follows each of them. A mark shows that seeds collapsed.
pub fn accuracies(rows: &[Row]) -> Vec<(String, Option<Rank>)> {
    let alike = rows.iter().all(|row| row.seeds == rows[0].seeds);
    let means: Vec<Option<f64>> = rows.iter().map(|row| row.line.mean.filter(|_| alike)).collect();
    let text = |row: &Row| {
        let seeds = if alike { String::new() } else { format!(" ({})", row.seeds.len()) };
        match row.line.mean {
            Some(mean) => with_spread(mean, row.line.std) + &seeds + mark(row).as_str(),
            None => NONE.to_owned() + mark(row).as_str(),
        }
    };
    rows.iter().map(text).zip(ranks(&means)).collect()
}

/// The mark of a strategy with collapsed seeds.
pub(super) fn mark(row: &Row) -> String {
    if row.line.collapsed > 0 { MARK.to_string() } else { String::new() }
}

/// The mark of a strategy with classes that it never predicts correctly.
pub(super) fn missed_mark(row: &Row) -> &'static str {
    if row.line.missed_classes.is_empty() { "" } else { MISSED }
}

/// Mean and standard deviation in per cent.
pub(super) fn with_spread(mean: f64, std: Option<f64>) -> String {
    points(mean) + &std.map_or(String::new(), |std| format!(" ± {}", points(std)))
}

/// A mean cross-entropy; a diverged one can be huge.
pub(super) fn loss_text(loss: f64) -> String {
    if loss < 1e3 { format!("{loss:.3}") } else { format!("{loss:.1e}") }
}

pub(super) fn points(share: f64) -> String {
    format!("{:.2}", 100.0 * share)
}

pub(super) fn ends(low: Option<f64>, high: Option<f64>) -> String {
    match (low, high) {
        (Some(low), Some(high)) => format!(" [{:+.2}, {:+.2}]", 100.0 * low, 100.0 * high),
        _ => String::new(),
    }
}

pub(super) fn p_text(p: f64) -> String {
    if p < 0.001 { "< 0.001".to_owned() } else { format!("{p:.3}") }
}

/// Ranks of values as they are printed, in per cent with two digits; ties share a rank.
fn ranks(values: &[Option<f64>]) -> Vec<Option<Rank>> {
    let printed = |value: f64| (1e4 * value).round() as i64;
    let mut places: Vec<i64> = values.iter().flatten().map(|value| printed(*value)).collect();
    places.sort_unstable_by(|a, b| b.cmp(a));
    places.dedup();
    let rank = |value: &Option<f64>| match (*value).map(printed) {
        // A single value has no rank.
        Some(_) if values.iter().flatten().count() < 2 => None,
        Some(value) if places.first() == Some(&value) => Some(Rank::Best),
        Some(value) if places.get(1) == Some(&value) => Some(Rank::Second),
        _ => None,
    };
    values.iter().map(rank).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_print_alike_share_a_rank() {
        let some = |values: &[f64]| ranks(&values.iter().copied().map(Some).collect::<Vec<_>>());
        let (best, second) = (Some(Rank::Best), Some(Rank::Second));
        assert_eq!(some(&[0.50001, 0.5, 0.4, 0.3]), [best, best, second, None]);
        assert_eq!(some(&[0.5]), [None], "a single value has no rank");
        assert_eq!(ranks(&[Some(0.1), None, Some(0.2)]), [second, None, best]);
    }
}
