//! The page's tables: sortable, with a button that copies them as LaTeX.

use super::swatch;
use crate::figures::escaped;
use crate::report::cells::{Rank, TableCell};
use crate::report::clients::{ClientLine, noteworthy};
use crate::report::clusters::{HEADS, lines};
use crate::report::findings::{Report, SettingReport};
use crate::report::table::Table;
use crate::report::timing::Timing;
use crate::report::{latex, markdown};
use std::fmt::Write as _;

/// A setting's table, and what its columns mean.
pub(super) fn table(table: &Table, labels: &[String]) -> String {
    let mut text = String::from("<div class=\"scroll\"><table class=\"sortable\">\n<thead><tr>");
    text += &head("strategy", "sorting by strategy restores the original order", true);
    for column in &table.columns {
        text += &head(&column.head, &column.about, false);
    }
    text += "</tr></thead>\n<tbody>\n";
    for (row, label) in table.labels.iter().enumerate() {
        let place = labels.iter().position(|own| own == label).unwrap_or(row);
        let _ =
            write!(text, "<tr><th scope=\"row\" data-v=\"{row}\">{}{}</th>", swatch(place), escaped(label));
        for column in &table.columns {
            text += &cell(&column.cells[row]);
        }
        text += "</tr>\n";
    }
    text += "</tbody></table></div>\n<details class=\"about\"><summary>Columns</summary>\n<dl>";
    for column in &table.columns {
        let _ = write!(text, "<dt>{}</dt><dd>{}</dd>", escaped(&column.head), escaped(&column.about));
    }
    text + "</dl></details>\n"
}

fn head(name: &str, about: &str, first: bool) -> String {
    let sorted = if first { " aria-sort=\"ascending\"" } else { "" };
    let (name, about) = (escaped(name), escaped(about));
    format!("<th scope=\"col\"{sorted}><button type=\"button\" title=\"{about}\">{name}</button></th>")
}

fn cell(cell: &TableCell) -> String {
    let value = match cell.value {
        Some(value) if value.is_finite() => format!(" data-v=\"{value}\""),
        Some(_) => " data-v=\"1e300\"".to_owned(),
        None => String::new(),
    };
    let text = escaped(&cell.text);
    match cell.rank {
        Some(Rank::Best) => format!("<td{value}><b>{text}</b></td>"),
        Some(Rank::Second) => format!("<td{value}><u>{text}</u></td>"),
        None => format!("<td{value}>{text}</td>"),
    }
}

/// Accuracy of all strategies in all settings.
pub(super) fn overview(report: &Report) -> String {
    let columns: Vec<_> = report.parts.iter().map(|part| markdown::column(part, &report.labels)).collect();
    let mut text = String::from("<div class=\"scroll\"><table class=\"sortable overview\">\n<thead><tr>");
    text += &head("strategy", "sorting by strategy restores the original order", true);
    for part in &report.parts {
        text += &head(&part.setting.title, &part.heading, false);
    }
    text += "</tr></thead>\n<tbody>\n";
    for (place, label) in report.labels.iter().enumerate() {
        let _ =
            write!(text, "<tr><th scope=\"row\" data-v=\"{place}\">{}{}</th>", swatch(place), escaped(label));
        for (part, column) in report.parts.iter().zip(&columns) {
            let value =
                part.rows.iter().find(|row| row.line.strategy == *label).and_then(|row| row.line.mean);
            let (words, rank) = column[place].clone();
            text += &cell(&TableCell { text: words, value, rank });
        }
        text += "</tr>\n";
    }
    text += "</tbody></table></div>\n<p class=\"small\">Accuracy in %, mean ± standard deviation; best in bold, second best underlined.</p>\n";
    text + &copy(&latex::table(report))
}

/// Rows of the table of clients; `clients.csv` has all.
const MOST_CLIENTS: usize = 50;

/// The clients with updates that failed, were rejected or were scaled down; empty if there are none.
pub(super) fn clients(part: &SettingReport) -> String {
    let all = noteworthy(part);
    if all.is_empty() {
        return String::new();
    }
    let shown = match all.len() {
        many if many > MOST_CLIENTS => format!(" (the first {MOST_CLIENTS} of {many}, see clients.csv)"),
        _ => String::new(),
    };
    let mut text = format!(
        "<details class=\"about\"><summary>Clients with failed, rejected or scaled-down updates{shown}</summary>\n\
         <div class=\"scroll\"><table class=\"sortable\">\n<thead><tr>"
    );
    let heads = [
        ("strategy", "sorting by strategy restores the original order"),
        ("seed", "the run"),
        ("client", "its id"),
        ("selected", "rounds in which it was selected"),
        ("failed", "updates that failed or were rejected"),
        ("scaled down", "updates whose norm exceeded a bound"),
        ("smallest factor", "by which an update was scaled down"),
        ("first failure", "why its first failed update was not used"),
    ];
    heads.iter().enumerate().for_each(|(place, (name, about))| text += &head(name, about, place == 0));
    text += "</tr></thead>\n<tbody>\n";
    for (row, ClientLine { strategy, seed, client, updates, .. }) in all.iter().take(MOST_CLIENTS).enumerate()
    {
        let _ = write!(text, "<tr><th scope=\"row\" data-v=\"{row}\">{}</th>", escaped(strategy));
        let counts = [updates.selected, updates.failed, updates.scaled].map(u64::from);
        for count in [*seed, u64::from(*client)].into_iter().chain(counts) {
            text += &cell(&TableCell { text: count.to_string(), value: Some(count as f64), rank: None });
        }
        let factor = updates.smallest_factor.map_or("—".to_owned(), |factor| format!("{factor:.2e}"));
        text += &cell(&TableCell { text: factor, value: updates.smallest_factor, rank: None });
        let why = updates.first_failure.clone().unwrap_or_else(|| "—".to_owned());
        text += &cell(&TableCell { text: why, value: None, rank: None });
        text += "</tr>\n";
    }
    text + "</tbody></table></div></details>\n"
}

/// Lines of the table of clusters; `clusters.csv` has all.
const MOST_CLUSTERS: usize = 200;

/// Which clients share a model, round by round; empty without strategies with several models.
pub(super) fn clusters(part: &SettingReport) -> String {
    let all = lines(part);
    if all.is_empty() {
        return String::new();
    }
    let shown = match all.len() {
        many if many > MOST_CLUSTERS => {
            format!(" (the first {MOST_CLUSTERS} of {many} changes, see clusters.csv)")
        }
        _ => String::new(),
    };
    let mut text = format!(
        "<details class=\"about\"><summary>Clients that share a model{shown}</summary>\n\
         <div class=\"scroll\"><table>\n<thead><tr>"
    );
    HEADS.iter().for_each(|name| text += &format!("<th scope=\"col\">{name}</th>"));
    text += "</tr></thead>\n<tbody>\n";
    for [strategy, seed, rounds, clients] in all.iter().take(MOST_CLUSTERS) {
        let [strategy, seed, rounds, clients] = [strategy, seed, rounds, clients].map(|cell| escaped(cell));
        let _ = writeln!(
            text,
            "<tr><th scope=\"row\">{strategy}</th><td>{seed}</td><td>{rounds}</td><td style=\"text-align: left\">{clients}</td></tr>"
        );
    }
    text + "</tbody></table></div></details>\n"
}

/// A button that copies a table as LaTeX.
pub(super) fn copy(latex: &str) -> String {
    format!(
        "<div class=\"copy\"><button type=\"button\" class=\"plain\">Copy as LaTeX</button>\
         <span role=\"status\"></span><textarea hidden readonly aria-label=\"LaTeX source of the table\">{}</textarea></div>\n",
        escaped(latex)
    )
}

/// The table of timing.
pub(super) fn times(timing: &Timing) -> String {
    let mut text = String::from("<div class=\"scroll\"><table class=\"sortable\">\n<thead><tr>");
    for (place, name) in timing.heads().into_iter().enumerate() {
        text += &head(name, "mean over seeds", place == 0);
    }
    text += "</tr></thead>\n<tbody>\n";
    for (row, line) in timing.lines.iter().enumerate() {
        let [strategy, setting, numbers @ ..] = line.cells();
        let _ = write!(
            text,
            "<tr><th scope=\"row\" data-v=\"{row}\">{}</th><td>{}</td>",
            escaped(&strategy),
            escaped(&setting)
        );
        for number in numbers {
            text += &cell(&TableCell { value: number.parse().ok(), text: number, rank: None });
        }
        text += "</tr>\n";
    }
    let _ = write!(text, "</tbody></table></div>\n<p class=\"small\">{}</p>\n", escaped(&timing.machines()));
    text
}
