//! A setting's table: columns, cells and their descriptions. Markdown, LaTeX and the HTML page show the same table.

use crate::report::troubles::MARK;
use crate::stats::summary::{Deviation, LAST, Row, SummaryOptions};

/// One column.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its heading.
    pub head: String,
    /// Its description.
    pub about: String,
    /// One cell per strategy.
    pub cells: Vec<TableCell>,
}

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

/// The table of a setting: the strategies' labels, and a column for each quantity that the runs recorded.
#[derive(Clone, Debug)]
pub struct Table {
    /// The strategies, one per row.
    pub labels: Vec<String>,
    /// The columns after the label.
    pub columns: Vec<Column>,
    /// The target of the column of rounds: an accuracy, or the baseline's final one.
    pub goal: String,
}

const NONE: &str = "—";

impl Table {
    /// The table of rows that were computed with these options.
    pub fn new(rows: &[Row], options: &SummaryOptions) -> Self {
        let baseline = rows.iter().find(|row| row.pairs.is_none()).map_or("", |row| &row.line.strategy);
        let column = |head: &str, about: &str, cell: &dyn Fn(&Row) -> Option<(String, f64)>| {
            let cells: Vec<Option<(String, f64)>> = rows.iter().map(cell).collect();
            let any = cells.iter().any(Option::is_some);
            let cells = cells.into_iter().map(|cell| match cell {
                Some((text, value)) => TableCell { text, value: Some(value), rank: None },
                None => TableCell { text: NONE.to_owned(), value: None, rank: None },
            });
            any.then(|| Column { head: head.to_owned(), about: about.to_owned(), cells: cells.collect() })
        };
        let final_accuracy = || format!("{baseline}'s final accuracy");
        let goal = options.target.map_or_else(final_accuracy, |target| format!("{} %", points(target)));
        let spread = match options.deviation {
            Deviation::Seeds => "mean and standard deviation over seeds",
            Deviation::Rounds => {
                "mean over seeds, and standard deviation over seeds averaged over these rounds"
            }
        };
        let last = format!("test accuracy in %, averaged over the last {LAST} rounds; {spread}");
        let cells = accuracies(rows).into_iter().zip(rows).map(|((text, rank), row)| TableCell {
            text,
            value: Some(row.line.mean),
            rank,
        });
        let accuracy = Column { head: "accuracy".to_owned(), about: last, cells: cells.collect() };
        let columns = [
            (!rows.is_empty()).then_some(accuracy),
            column(
                "median over clients",
                &format!(
                    "median of the clients' accuracies on their hold-outs, in %, averaged over the last {LAST} rounds"
                ),
                &|row| row.median_accuracy.map(|median| (points(median), median)),
            ),
            column(
                &format!("vs {baseline}"),
                "paired difference in percentage points, with 95 % confidence interval (Student's t)",
                &|row| {
                    let d = row.line.difference?;
                    Some((format!("{:+.2}{}", 100.0 * d, ends(row.line.low, row.line.high)), d))
                },
            ),
            column(
                "bootstrap",
                "95 % bootstrap confidence interval of the difference (BCa, 10,000 resamples)",
                &|row| {
                    let (low, high) = (row.bootstrap_low, row.bootstrap_high);
                    Some((ends(low, high).trim_start().to_owned(), low?))
                },
            ),
            column("p", "p-value of a paired t-test, Holm-corrected for the number of strategies", &|row| {
                row.p_holm.map(|p| (p_text(p), p))
            }),
            column("wins", "seeds in which it is better than the baseline", &|row| {
                let (wins, pairs) = (row.line.wins?, row.pairs.filter(|pairs| *pairs > 0)?);
                Some((format!("{wins}/{pairs}"), wins as f64 / pairs as f64))
            }),
            column("rounds", &format!("rounds until the mean accuracy reaches {goal}"), &|row| {
                Some(match row.line.rounds_to_target {
                    Some(rounds) => (rounds.to_string(), rounds as f64),
                    None => ("never".to_owned(), f64::INFINITY),
                })
            }),
            column(
                "round-to-round SD",
                &format!("standard deviation between the last {LAST} rounds, in percentage points"),
                &|row| row.line.round_std.map(|std| (points(std), std)),
            ),
            column("effective clients", "effective number of clients per round, 1 / Σ weight²", &|row| {
                row.line.effective_clients.map(|clients| (format!("{clients:.1}"), clients))
            }),
            column(
                "per-client accuracy",
                "mean over clients of the accuracy on the client's label distribution, in %",
                &|row| row.client_mean.map(|own| (points(own), own)),
            ),
            column("spread", "standard deviation of per-client accuracy, in percentage points", &|row| {
                row.client_deviation.map(|spread| (points(spread), spread))
            }),
            column(
                "worst tenth",
                "mean per-client accuracy of the worst tenth of the clients, in %",
                &|row| row.worst_decile.map(|worst| (points(worst), worst)),
            ),
            column("MB", "megabytes that all clients of a run upload and download", &|row| {
                let bytes = row.bytes_up + row.bytes_down;
                Some((format!("{:.1}", bytes / 1e6), bytes))
            }),
        ];
        let columns = columns.into_iter().flatten().collect();
        Self { labels: rows.iter().map(|row| row.line.strategy.clone()).collect(), columns, goal }
    }
}

/// Mean and standard deviation of each row in per cent, and its rank. Means over different seeds are not ranked, and
/// the number of seeds follows each of them. A mark shows that seeds collapsed.
pub fn accuracies(rows: &[Row]) -> Vec<(String, Option<Rank>)> {
    let alike = rows.iter().all(|row| row.seeds == rows[0].seeds);
    let means: Vec<Option<f64>> = rows.iter().map(|row| Some(row.line.mean).filter(|_| alike)).collect();
    let text = |row: &Row| {
        let spread = row.line.std.map_or(String::new(), |std| format!(" ± {}", points(std)));
        let seeds = if alike { String::new() } else { format!(" ({})", row.seeds.len()) };
        points(row.line.mean) + &spread + &seeds + mark(row).as_str()
    };
    rows.iter().map(text).zip(ranks(&means)).collect()
}

/// The mark of a strategy with collapsed seeds.
pub(super) fn mark(row: &Row) -> String {
    if row.line.collapsed > 0 { MARK.to_string() } else { String::new() }
}

fn points(share: f64) -> String {
    format!("{:.2}", 100.0 * share)
}

fn ends(low: Option<f64>, high: Option<f64>) -> String {
    match (low, high) {
        (Some(low), Some(high)) => format!(" [{:+.2}, {:+.2}]", 100.0 * low, 100.0 * high),
        _ => String::new(),
    }
}

fn p_text(p: f64) -> String {
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
