//! A report in Markdown, and as text for a terminal.

use crate::report::cells::{Rank, accuracies};
use crate::report::clusters;
use crate::report::compact_table::{compact_legend, compact_table};
use crate::report::findings::{Report, SettingReport};
use crate::report::table::Table;
use crate::report::text_table::text_table;
use std::fmt::Write as _;

/// A setting's table; the best accuracy is bold.
pub fn table(table: &Table) -> String {
    let heads: Vec<String> = std::iter::once("strategy".to_owned())
        .chain(table.main_columns().map(|column| escaped(&column.head)))
        .collect();
    let line = |(place, label): (usize, &String)| -> Vec<String> {
        let cells = table.main_columns().map(|column| &column.cells[place]);
        std::iter::once(escaped(label)).chain(cells.map(|cell| marked(&cell.text, cell.rank))).collect()
    };
    text_table(1, &heads, &table.labels.iter().enumerate().map(line).collect::<Vec<_>>())
}

fn marked(text: &str, rank: Option<Rank>) -> String {
    match rank {
        Some(Rank::Best) => format!("**{text}**"),
        _ => text.to_owned(),
    }
}

/// Text with Markdown's special characters escaped, for a line or a table cell.
pub(crate) fn escaped(words: &str) -> String {
    let letter = |letter: char| match letter {
        '|' | '*' | '<' | '`' | '\\' => format!("\\{letter}"),
        '\n' | '\r' => " ".to_owned(),
        _ => letter.to_string(),
    };
    words.chars().map(letter).collect()
}

/// Accuracy of all strategies in all settings.
pub fn overview(report: &Report) -> String {
    let heads: Vec<String> = std::iter::once("strategy".to_owned())
        .chain(report.parts.iter().map(|part| escaped(&part.setting.title)))
        .collect();
    let cells: Vec<Vec<(String, Option<Rank>)>> =
        report.parts.iter().map(|part| column(part, &report.labels)).collect();
    let line = |(place, label): (usize, &String)| -> Vec<String> {
        let own = cells.iter().map(|column| marked(&column[place].0, column[place].1));
        std::iter::once(escaped(label)).chain(own).collect()
    };
    text_table(1, &heads, &report.labels.iter().enumerate().map(line).collect::<Vec<_>>())
}

/// One setting as a column of the overview.
pub(crate) fn column(part: &SettingReport, labels: &[String]) -> Vec<(String, Option<Rank>)> {
    let own = accuracies(&part.rows);
    let place = |label: &String| part.rows.iter().position(|row| row.line.strategy == *label);
    let cell = |label: &String| place(label).map_or(("not run".to_owned(), None), |place| own[place].clone());
    labels.iter().map(cell).collect()
}

/// Columns of the narrowest terminal that is cared for.
const TERMINAL: usize = 80;

/// Tables and verdicts as text. With `compact`, tables have fewer columns and fit a terminal.
pub fn terminal(report: &Report, compact: bool) -> String {
    let mut text = String::new();
    if report.parts.len() > 1 {
        let table = overview(report);
        if !compact || table.lines().all(|line| line.chars().count() <= TERMINAL) {
            let _ = writeln!(text, "{table}");
        }
        let _ = writeln!(text, "{}\n", report.verdict);
    }
    for part in &report.parts {
        if report.parts.len() > 1 {
            let _ = writeln!(text, "{}", part.setting.title);
        }
        let table = if compact { compact_table(part, &[]) } else { table(&part.table) };
        let _ = writeln!(text, "{}\n{table}{}\n", part.heading, part.verdict);
        part.setting.notes.iter().chain(&part.test_set).for_each(|note| text += &format!("{note}\n"));
    }
    if let (true, Some(part)) = (compact, report.parts.first()) {
        let _ = writeln!(text, "{}", compact_legend(part));
    }
    report.notes.iter().for_each(|note| text += &format!("{note}\n"));
    text
}

/// The whole report.
pub fn page(report: &Report) -> String {
    let mut text = format!("# {}\n\n{}\n\n", escaped(&report.name), report.verdict);
    if report.parts.len() > 1 {
        let _ = writeln!(text, "{}", overview(report));
    }
    for part in &report.parts {
        if report.parts.len() > 1 {
            let _ = writeln!(text, "## {}\n\n{}\n", escaped(&part.setting.title), part.verdict);
        }
        let _ = writeln!(text, "{}\n\n{}", part.heading.replace('\n', "\n\n"), table(&part.table));
        part.setting.notes.iter().chain(&part.test_set).for_each(|note| text += &format!("{note}\n\n"));
        if let Some(table) = clusters::table(part, escaped) {
            let _ = writeln!(text, "Clients that share a model:\n\n{table}");
        }
        for figure in &part.figures {
            let _ = writeln!(text, "![{}](figures/{})\n", figure.title, figure.file_name);
        }
        part.missing.iter().for_each(|why| text += &format!("{why}\n\n"));
        let _ = writeln!(text, "To reproduce:\n\n```\n{}\n```\n", part.commands.join("\n"));
    }
    if report.illustration.is_some() {
        text += "## Weights of the paper's three example clients\n\n![Weights of three clients](figures/illustration.svg)\n\n";
    }
    let _ = writeln!(text, "## Columns\n");
    let mut seen: Vec<&str> = Vec::new();
    for column in report.parts.iter().flat_map(|part| part.table.main_columns()) {
        if !seen.contains(&column.head.as_str()) {
            seen.push(&column.head);
            let _ = writeln!(text, "- {}: {}", escaped(&column.head), column.about);
        }
    }
    let _ = writeln!(text, "\n{}", report.method);
    report.notes.iter().for_each(|note| text += &format!("\n{note}\n"));
    if let Some(timing) = &report.timing {
        let heads = timing.heads().map(str::to_owned);
        let lines: Vec<Vec<String>> =
            timing.lines.iter().map(|line| line.cells().map(|cell| escaped(&cell)).to_vec()).collect();
        let _ = writeln!(
            text,
            "\n## Timing\n\nMeans over seeds. {}\n\n{}",
            timing.machines(),
            text_table(2, &heads, &lines)
        );
    }
    let _ = write!(text, "\nfedtvd {}\n", report.versions.join(", "));
    text
}
