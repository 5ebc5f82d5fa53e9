//! A setting's most important columns as plain text that fits a terminal of 80 columns.

use crate::report::cells::{NONE, loss_text, mark, missed_mark};
use crate::report::findings::SettingReport;
use crate::report::heading::last_rounds;
use crate::report::text_table::WIDEST;
use crate::stats::row::Row;
use fedtvd_run::configuration::Value;
use std::fmt::Write as _;

/// Longest baseline label that fits into the heading of the column of differences.
const LONGEST_IN_HEADING: usize = 15;

/// A column: two lines of headings and a cell per strategy.
struct Column {
    heads: [String; 2],
    cells: Vec<Option<String>>,
}

/// The table with two lines of headings. `marks` are the strategies' marks in a chart; they are left out if empty.
pub fn compact_table(part: &SettingReport, marks: &[char]) -> String {
    let columns = columns(&part.rows);
    let cell = |column: &Column, line: usize| match line.checked_sub(column.heads.len()) {
        None => column.heads[line].clone(),
        Some(row) => column.cells[row].clone().unwrap_or_else(|| "—".to_owned()),
    };
    let lines = 2 + part.rows.len();
    let mut text = String::new();
    for line in 0..lines {
        let mark = match (line.checked_sub(2), marks) {
            (_, []) => String::new(),
            (None, _) => "  ".to_owned(),
            (Some(row), marks) => format!("{} ", marks[row % marks.len()]),
        };
        let cells = columns.iter().enumerate().map(|(place, column)| {
            let width = (0..lines).map(|line| cell(column, line).chars().count()).max().unwrap_or(0);
            let width = width.min(WIDEST);
            let cell = cell(column, line);
            if place == 0 { format!("{cell:width$}") } else { format!("  {cell:>width$}") }
        });
        let _ = writeln!(text, "{}", (mark + &cells.collect::<String>()).trim_end());
    }
    text
}

/// The columns that have a value for any strategy.
fn columns(rows: &[Row]) -> Vec<Column> {
    let baseline = rows.iter().find(|row| row.pairs.is_none()).map_or("", |row| row.line.strategy.as_str());
    let short = if baseline.len() <= LONGEST_IN_HEADING { baseline } else { "baseline" };
    let points = |share: f64| format!("{:.1}", 100.0 * share);
    let column = |heads: [&str; 2], cell: &dyn Fn(&Row) -> Option<String>| Column {
        heads: heads.map(str::to_owned),
        cells: rows.iter().map(cell).collect(),
    };
    let columns = [
        column(["", "strategy"], &|row| Some(row.line.strategy.clone())),
        column(["accuracy", "(%)"], &|row| {
            let spread = row.line.std.map_or(String::new(), |std| format!(" ± {}", points(std)));
            Some(row.line.mean.map_or_else(|| NONE.to_owned(), |mean| points(mean) + &spread) + &mark(row))
        }),
        column(["bal.", "acc."], &|row| Some(points(row.line.balanced_accuracy?) + missed_mark(row))),
        column(["macro", "F1"], &|row| row.line.macro_f1.map(points)),
        column(["", "loss"], &|row| row.line.loss.map(loss_text)),
        column([&format!("vs {short}"), "(95 % CI)"], &|row| {
            let difference = format!("{:+.1}", 100.0 * row.line.difference?);
            let ends = row.line.simultaneous_low.zip(row.line.simultaneous_high);
            let interval =
                ends.map_or(String::new(), |(low, high)| format!(" [{}, {}]", points(low), points(high)));
            Some(difference + &interval)
        }),
        column(["rounds", "needed"], &|row| {
            Some(row.line.rounds_to_target.map_or_else(|| "never".to_owned(), |rounds| rounds.to_string()))
        }),
    ];
    columns.into_iter().filter(|column| column.cells.iter().any(Option::is_some)).collect()
}

/// What the columns mean.
pub fn compact_legend(part: &SettingReport) -> String {
    let last = part.setting.strategies.iter().flat_map(|strategy| &strategy.records);
    let last = last.map(|record| record.last.len()).max().unwrap_or(0);
    let comparisons = part.rows.iter().filter(|row| row.line.p.is_some()).count();
    let together = match comparisons {
        0 => String::new(),
        1 => "95 % CI: confidence interval of the difference; significant if it excludes 0\n".to_owned(),
        many => format!(
            "95 % CI: confidence intervals that hold for all {many} comparisons together;\n  \
             a difference is significant if its interval excludes 0\n"
        ),
    };
    let classes = match part.rows.iter().any(|row| row.line.balanced_accuracy.is_some()) {
        true => "bal. acc., macro F1: means over classes of accuracy and F1 score (%)\n",
        false => "",
    };
    format!(
        "accuracy: {} ± standard deviation (SD) over seeds\n{classes}{together}\
         rounds needed: until the mean accuracy reaches {}\n",
        last_rounds(last, every(part)),
        part.table.goal,
    )
}

/// After how many rounds the model is evaluated.
fn every(part: &SettingReport) -> u32 {
    match part.setting.value("evaluation.every") {
        Some(Value::Whole(every)) => *every as u32,
        _ => 1,
    }
}
