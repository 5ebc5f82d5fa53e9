//! A setting's table: columns, cells and what they mean; Markdown, LaTeX and the page print the same one.

use crate::stats::summary::{Deviation, LAST, Question, Row};

/// One column.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its heading.
    pub head: String,
    /// What it means.
    pub about: String,
    /// One cell per strategy.
    pub cells: Vec<TableCell>,
}

/// One cell.
#[derive(Clone, Debug, Default)]
pub struct TableCell {
    /// What is shown.
    pub text: String,
    /// What it is sorted by; `None` comes last.
    pub value: Option<f64>,
    /// Whether it is the best or the second.
    pub rank: Option<Rank>,
}

/// A place on the podium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rank {
    /// None is better.
    Best,
    /// Only the best are better.
    Second,
}

/// The table of a setting: the strategies' labels, and a column per quantity that the runs tell.
#[derive(Clone, Debug)]
pub struct Table {
    /// The strategies, one per row.
    pub labels: Vec<String>,
    /// The columns behind the label.
    pub columns: Vec<Column>,
}

const NONE: &str = "—";

impl Table {
    /// The table of some rows, which answer this question.
    pub fn new(rows: &[Row], question: &Question) -> Self {
        let baseline = rows.iter().find(|row| row.pairs.is_none()).map_or("", |row| &row.line.strategy);
        let column = |head: &str, about: &str, cell: &dyn Fn(&Row) -> Option<(String, f64)>| {
            let cells: Vec<Option<(String, f64)>> = rows.iter().map(cell).collect();
            let told = cells.iter().any(Option::is_some);
            let cells = cells.into_iter().map(|cell| match cell {
                Some((text, value)) => TableCell { text, value: Some(value), rank: None },
                None => TableCell { text: NONE.to_owned(), value: None, rank: None },
            });
            told.then(|| Column { head: head.to_owned(), about: about.to_owned(), cells: cells.collect() })
        };
        let final_accuracy = || format!("{baseline}'s final accuracy");
        let goal = question.target.map_or_else(final_accuracy, |target| format!("{} %", points(target)));
        let spread = match question.deviation {
            Deviation::Seeds => "mean and deviation over seeds",
            Deviation::Rounds => "mean over seeds, and deviation over seeds averaged over these rounds",
        };
        let last = format!("mean accuracy of the last {LAST} rounds in %, {spread}");
        let cells = accuracies(rows).into_iter().zip(rows).map(|((text, rank), row)| TableCell {
            text,
            value: Some(row.line.mean),
            rank,
        });
        let accuracy = Column { head: "accuracy".to_owned(), about: last, cells: cells.collect() };
        let columns = [
            (!rows.is_empty()).then_some(accuracy),
            column(
                &format!("vs {baseline}"),
                "paired difference in points and its 95 % interval by Student's t",
                &|row| {
                    let d = row.line.difference?;
                    Some((format!("{:+.2}{}", 100.0 * d, ends(row.line.low, row.line.high)), d))
                },
            ),
            column("bootstrap", "the same interval by bootstrap (BCa, 10,000 draws)", &|row| {
                let (low, high) = (row.bootstrap_low, row.bootstrap_high);
                Some((ends(low, high).trim_start().to_owned(), low?))
            }),
            column("p", "paired t-test, corrected by Holm for the number of strategies", &|row| {
                row.p_holm.map(|p| (p_text(p), p))
            }),
            column("wins", "seeds in which it is better", &|row| {
                let (wins, pairs) = (row.line.wins?, row.pairs.filter(|pairs| *pairs > 0)?);
                Some((format!("{wins}/{pairs}"), wins as f64 / pairs as f64))
            }),
            column("rounds", &format!("until the mean curve reaches {goal}"), &|row| {
                Some(match row.line.rounds_to_target {
                    Some(rounds) => (rounds.to_string(), rounds as f64),
                    None => ("never".to_owned(), f64::INFINITY),
                })
            }),
            column("wobble", &format!("deviation between the last {LAST} rounds, in points"), &|row| {
                row.line.wobble.map(|wobble| (points(wobble), wobble))
            }),
            column("counted", "effective number of clients per round, 1 / Σ s²", &|row| {
                Some((format!("{:.1}", row.line.effective_clients), row.line.effective_clients))
            }),
            column("own", "mean accuracy over clients, each on its own label distribution, in %", &|row| {
                row.client_mean.map(|own| (points(own), own))
            }),
            column("spread", "deviation of this accuracy over clients, in points", &|row| {
                row.client_deviation.map(|spread| (points(spread), spread))
            }),
            column("worst tenth", "mean accuracy of the worst tenth of the clients, in %", &|row| {
                row.worst_decile.map(|worst| (points(worst), worst))
            }),
            column("MB", "megabytes that the clients of a run send and are sent", &|row| {
                let bytes = row.bytes_up + row.bytes_down;
                Some((format!("{:.1}", bytes / 1e6), bytes))
            }),
        ];
        let columns = columns.into_iter().flatten().collect();
        Self { labels: rows.iter().map(|row| row.line.strategy.clone()).collect(), columns }
    }
}

/// Row by row mean and deviation in per cent, and who is best. Means over different seeds are not ranked; behind each
/// stands then over how many seeds it is.
pub fn accuracies(rows: &[Row]) -> Vec<(String, Option<Rank>)> {
    let alike = rows.iter().all(|row| row.seeds == rows[0].seeds);
    let means: Vec<Option<f64>> = rows.iter().map(|row| Some(row.line.mean).filter(|_| alike)).collect();
    let text = |row: &Row| {
        let spread = row.line.std.map_or(String::new(), |std| format!(" ± {}", points(std)));
        let seeds = if alike { String::new() } else { format!(" ({})", row.seeds.len()) };
        points(row.line.mean) + &spread + &seeds
    };
    rows.iter().map(text).zip(ranks(&means)).collect()
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

/// Who is best and second among numbers as they are printed, in per cent with two digits; equals share their place.
fn ranks(values: &[Option<f64>]) -> Vec<Option<Rank>> {
    let printed = |value: f64| (1e4 * value).round() as i64;
    let mut places: Vec<i64> = values.iter().flatten().map(|value| printed(*value)).collect();
    places.sort_unstable_by(|a, b| b.cmp(a));
    places.dedup();
    let rank = |value: &Option<f64>| match (*value).map(printed) {
        // Of one nothing is the best.
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
    fn equals_as_printed_share_a_place() {
        let some = |values: &[f64]| ranks(&values.iter().copied().map(Some).collect::<Vec<_>>());
        let (best, second) = (Some(Rank::Best), Some(Rank::Second));
        assert_eq!(some(&[0.50001, 0.5, 0.4, 0.3]), [best, best, second, None]);
        assert_eq!(some(&[0.5]), [None], "one alone is not the best");
        assert_eq!(ranks(&[Some(0.1), None, Some(0.2)]), [second, None, best]);
    }
}
