//! A setting's table: columns, cells and their descriptions. Markdown, LaTeX and the HTML page show the same table.

use crate::report::cells::{
    NONE, TableCell, accuracies, ends, loss_text, missed_mark, p_text, points, with_spread,
};
use crate::stats::family::LEVEL;
use crate::stats::row::Row;
use crate::stats::summary::{Deviation, LAST, MIN_SEEDS_FOR_BOOTSTRAP, SummaryOptions};

/// One column.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its heading.
    pub head: String,
    /// Its description.
    pub about: String,
    /// One cell per strategy.
    pub cells: Vec<TableCell>,
    /// Whether only the page has room for it.
    pub page_only: bool,
}

/// The table of a setting: the strategies' labels, and a column for each quantity that the runs recorded.
#[derive(Clone, Debug)]
pub struct Table {
    /// The strategies, one per row.
    pub labels: Vec<String>,
    /// The columns after the label, with those that only the page shows.
    pub columns: Vec<Column>,
    /// The target of the column of rounds: an accuracy, or the baseline's final one.
    pub goal: String,
}

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
            any.then(|| Column {
                head: head.to_owned(),
                about: about.to_owned(),
                cells: cells.collect(),
                page_only: false,
            })
        };
        let page_only = |column: Option<Column>| column.map(|column| Column { page_only: true, ..column });
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
            value: row.line.mean,
            rank,
        });
        let accuracy =
            Column { head: "accuracy".to_owned(), about: last, cells: cells.collect(), page_only: false };
        let metric = |name: &str, about: &str, of: &dyn Fn(&Row) -> Option<(f64, String)>| {
            let about = format!(
                "{about}, averaged over the last {LAST} rounds; mean and standard deviation over seeds"
            );
            column(name, &about, &|row| of(row).map(|(value, text)| (text, value)))
        };
        let comparisons = rows.iter().filter(|row| row.line.p.is_some()).count();
        let several = comparisons > 1;
        let level = 100.0 * (1.0 - LEVEL / comparisons.max(1) as f64);
        let together = match several {
            true => format!(
                "; with 95 % confidence, all {comparisons} intervals of this column contain the true differences \
                 (Bonferroni: each has level {level:.2} %)"
            ),
            false => String::new(),
        };
        let differ = rows.iter().flat_map(|row| &row.rounds).any(|rounds| *rounds != rows[0].rounds[0]);
        let columns = [
            (!rows.is_empty()).then_some(accuracy),
            column(
                "median over clients",
                &format!(
                    "median of the clients' accuracies on their hold-outs, in %, averaged over the last {LAST} rounds"
                ),
                &|row| row.median_accuracy.map(|median| (points(median), median)),
            ),
            metric("balanced accuracy", "mean of the accuracies of the classes in %", &|row| {
                let (value, std) = (row.line.balanced_accuracy?, row.line.balanced_std);
                Some((value, with_spread(value, std) + missed_mark(row)))
            }),
            metric("macro F1", "mean of the F1 scores of the classes in %", &|row| {
                let (value, std) = (row.line.macro_f1?, row.line.macro_f1_std);
                Some((value, with_spread(value, std)))
            }),
            metric("loss", "mean cross-entropy on the test samples", &|row| {
                let (value, std) = (row.line.loss?, row.line.loss_std);
                Some((
                    value,
                    loss_text(value) + &std.map_or(String::new(), |std| format!(" ± {}", loss_text(std))),
                ))
            }),
            column(
                &format!("vs {baseline}"),
                &format!(
                    "paired difference of accuracy in percentage points, with 95 % confidence interval (Student's t); it is \
                     significant if the interval excludes 0{together}"
                ),
                &|row| {
                    let d = row.line.difference?;
                    let interval = ends(row.line.simultaneous_low, row.line.simultaneous_high);
                    Some((format!("{:+.2}{interval}", 100.0 * d), d))
                },
            ),
            page_only(column(
                "single 95 % interval",
                "confidence interval of the difference as if it were the only comparison; the verdict does not use it",
                &|row| {
                    let (low, high) = (row.line.low.filter(|_| several), row.line.high);
                    Some((ends(low, high).trim_start().to_owned(), low?))
                },
            )),
            column(
                "bootstrap",
                &format!(
                    "95 % bootstrap confidence interval of the difference over seeds, as if it were the only comparison \
                     (BCa, 10,000 resamples; from {MIN_SEEDS_FOR_BOOTSTRAP} seeds on)"
                ),
                &|row| {
                    let (low, high) = (row.bootstrap_low, row.bootstrap_high);
                    Some((ends(low, high).trim_start().to_owned(), low?))
                },
            ),
            column(
                "p",
                "p-value of a paired t-test, corrected for the comparisons of this table by Bonferroni's method: below 0.05 \
                 exactly if the interval excludes 0",
                &|row| row.line.p_bonferroni.map(|p| (p_text(p), p)),
            ),
            page_only(column(
                "p (Holm)",
                "the same p-value corrected by Holm's method, which is at most as large; the verdict does not use it",
                &|row| row.p_holm.filter(|_| several).map(|p| (p_text(p), p)),
            )),
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
                "best by validation",
                "accuracy on the test set, in %, of the round that the clients' hold-outs chose",
                &|row| {
                    let best = row.best_accuracy?;
                    let spread = row.best_std.map_or(String::new(), |std| format!(" ± {}", points(std)));
                    Some((points(best) + &spread, best))
                },
            ),
            column("rounds run", "rounds until the runs stopped, mean over seeds", &|row| {
                let mean =
                    row.rounds.iter().map(|rounds| f64::from(*rounds)).sum::<f64>() / row.rounds.len() as f64;
                differ.then(|| (format!("{mean:.1}"), mean))
            }),
            column("per-client accuracy", per_client(rows), &|row| {
                row.client_mean.map(|own| (points(own), own))
            }),
            column("spread", "standard deviation of per-client accuracy, in percentage points", &|row| {
                row.client_deviation.map(|spread| (points(spread), spread))
            }),
            column(
                "worst tenth",
                "mean per-client accuracy of the worst tenth of the clients, in %",
                &|row| row.worst_decile.map(|worst| (points(worst), worst)),
            ),
            metric(
                "own models",
                "accuracy of the models that clients use themselves, mean over clients in %",
                &|row| {
                    let (value, std) = (row.personal?, row.personal_std);
                    Some((value, with_spread(value, std)))
                },
            ),
            column(
                "own models' spread",
                "standard deviation over clients of the accuracy of the models that they use themselves, in percentage points",
                &|row| row.personal_deviation.map(|spread| (points(spread), spread)),
            ),
            column(
                "own models' worst tenth",
                "mean accuracy of the worst tenth of the models that clients use themselves, in %",
                &|row| row.personal_worst_decile.map(|worst| (points(worst), worst)),
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

/// What the per-client accuracies of these rows are.
fn per_client(rows: &[Row]) -> &'static str {
    let measured = rows.iter().filter(|row| row.clients_measured).count();
    match rows.len() - measured {
        0 => "mean over clients of the accuracy on the client's own hold-out, in %",
        others if others == rows.len() => {
            "mean over clients of the accuracy on the client's label distribution, estimated from the accuracies of the classes, in %"
        }
        _ => {
            "mean over clients, in %: measured on their own hold-outs if the strategy's runs have them, estimated otherwise"
        }
    }
}

impl Table {
    /// The columns that every format has room for.
    pub fn main_columns(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| !column.page_only)
    }
}
