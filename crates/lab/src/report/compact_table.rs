//! A setting's most important columns as plain text that fits a terminal of 80 columns.

use crate::report::findings::SettingReport;
use crate::report::heading::last_rounds;
use crate::report::table::mark;
use crate::stats::summary::Row;
use std::fmt::Write as _;

/// Longest baseline label that fits into the heading of the column of differences.
const LONGEST_IN_HEADING: usize = 15;

/// The table with two lines of headings. `marks` are the strategies' marks in a chart; they are left out if empty.
pub fn compact_table(part: &SettingReport, marks: &[char]) -> String {
    let rows = &part.rows;
    let baseline = rows.iter().find(|row| row.pairs.is_none()).map_or("", |row| row.line.strategy.as_str());
    let short = if baseline.len() <= LONGEST_IN_HEADING { baseline } else { "baseline" };
    let versus = format!("vs {short}");
    let heads = [
        ["", "accuracy", &versus, "", "rounds", "round", "eff."],
        ["strategy", "(%)", "(95 % CI)", "wins", "needed", "SD", "clients"],
    ];
    let lines: Vec<[String; 7]> =
        heads.map(|head| head.map(str::to_owned)).into_iter().chain(rows.iter().map(cells)).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 7] = std::array::from_fn(width);
    let mut text = String::new();
    for (place, line) in lines.iter().enumerate() {
        let mark = match (place.checked_sub(heads.len()), marks) {
            (_, []) => String::new(),
            (None, _) => "  ".to_owned(),
            (Some(row), marks) => format!("{} ", marks[row % marks.len()]),
        };
        let cells = line.iter().zip(widths).enumerate().map(|(column, (cell, width))| match column {
            0 => format!("{cell:width$}"),
            _ => format!("  {cell:>width$}"),
        });
        let _ = writeln!(text, "{}", (mark + &cells.collect::<String>()).trim_end());
    }
    text
}

/// What the columns mean.
pub fn compact_legend(part: &SettingReport) -> String {
    let last = part.setting.strategies.iter().flat_map(|strategy| &strategy.records);
    let last = last.map(|record| record.last.len()).max().unwrap_or(0);
    format!(
        "accuracy: {} ± standard deviation (SD) over seeds\n\
         rounds needed: until the mean accuracy reaches {}\n\
         round SD: SD from round to round, over the last {} rounds\n\
         eff. clients: effective number of clients per round\n",
        last_rounds(last),
        part.table.goal,
        last.max(2)
    )
}

fn cells(row: &Row) -> [String; 7] {
    let line = &row.line;
    let points = |share: f64| format!("{:.1}", 100.0 * share);
    let none = || "—".to_owned();
    let spread = line.std.map_or(String::new(), |std| format!(" ± {}", points(std)));
    let versus = match (line.difference, line.low, line.high) {
        (Some(d), Some(low), Some(high)) => {
            format!("{:+.1} [{}, {}]", 100.0 * d, points(low), points(high))
        }
        (Some(d), ..) => format!("{:+.1}", 100.0 * d),
        _ => none(),
    };
    [
        line.strategy.clone(),
        points(line.mean) + &spread + &mark(row),
        versus,
        line.wins.zip(row.pairs).map_or_else(none, |(wins, pairs)| format!("{wins}/{pairs}")),
        line.rounds_to_target.map_or_else(|| "never".to_owned(), |rounds| rounds.to_string()),
        line.round_std.map_or_else(none, points),
        line.effective_clients.map_or_else(|| "—".to_owned(), |clients| format!("{clients:.1}")),
    ]
}
