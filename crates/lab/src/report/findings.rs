//! Findings from runs: everything that tables, figures and pages say, computed once.

use crate::experiments::explanation::Explanation;
use crate::figures::{
    Figure, Medium, distinct, illustration, number_equal_names, papers_clients, setting_figures, svg,
};
use crate::report::heading::{heading, population};
use crate::report::table::Table;
use crate::report::timing::Timing;
use crate::report::{commands, csv, latex, markdown, page};
use crate::runs::collection::Collection;
use crate::runs::record::{Record, Unfinished};
use crate::runs::setting::{Setting, place};
use crate::stats::summary::{Deviation, LAST, LEAST_FOR_A_TEST, Question, Row, rows};
use crate::stats::verdict::{listed, verdict, verdict_over_settings};
use fedtvd_run::configuration::Value;
use std::fmt::Write as _;

/// A report. Apart from its timing, nothing in it depends on where, when or in how many pieces the runs were made.
#[derive(Debug)]
pub struct Report {
    /// What it is called.
    pub name: String,
    /// One sentence on all settings.
    pub verdict: String,
    /// A part per setting.
    pub parts: Vec<SettingReport>,
    /// All strategies, in the order of the tables.
    pub labels: Vec<String>,
    /// What a reader should know: runs that are left out.
    pub notes: Vec<String>,
    /// How the numbers were computed.
    pub method: String,
    /// Versions of the program that made the runs.
    pub versions: Vec<String>,
    /// How long the runs took, unless that is left out.
    pub timing: Option<Timing>,
    /// Runs that are not done.
    pub unfinished: Vec<Unfinished>,
    /// What the strategies' weights make of the paper's three clients, as an SVG file.
    pub illustration: Option<String>,
}

/// One setting of a report.
#[derive(Debug)]
pub struct SettingReport {
    /// Its runs.
    pub setting: Setting,
    /// The setting in one line or two.
    pub heading: String,
    /// A row per strategy.
    pub rows: Vec<Row>,
    /// The same as a table.
    pub table: Table,
    /// One sentence.
    pub verdict: String,
    /// What can be drawn.
    pub figures: Vec<Figure>,
    /// What cannot be drawn, and why.
    pub missing: Vec<String>,
    /// The commands that repeat it.
    pub commands: Vec<String>,
}

/// What a report is asked.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// What decides about the numbers.
    pub question: Question,
    /// The strategies' order; those that are not named come after these.
    pub order: Vec<String>,
    /// Whether times are left out.
    pub without_timing: bool,
    /// What it is called. Not what its runs are called: sweeps share runs, which bear the name of the first.
    pub title: Option<String>,
}

impl Report {
    /// The report on some runs.
    pub fn new(mut collection: Collection, request: &Request) -> Self {
        let timing = (!request.without_timing).then(|| Timing::of(&collection));
        let name = request.title.clone().unwrap_or_else(|| "Strategies compared".to_owned());
        let order = |label: &str| {
            let asked = request.order.iter().position(|own| own == label).unwrap_or(request.order.len());
            (asked, label != request.question.baseline, place(label))
        };
        let mut labels = collection.labels();
        labels.sort_by_cached_key(|label| order(label));
        for setting in &mut collection.settings {
            setting.strategies.sort_by_cached_key(|strategy| order(&strategy.label));
        }
        let (notes, illustration) = (notes(&collection), weights_of_the_papers_clients(&collection, &labels));
        let Collection { settings, unfinished, versions, .. } = collection;
        let mut parts: Vec<SettingReport> =
            settings.into_iter().map(|setting| part(setting, &labels, request)).collect();
        number_equal_names(parts.iter_mut().flat_map(|part| &mut part.figures));
        let verdict = match parts.as_slice() {
            [only] => only.verdict.clone(),
            several => {
                let rows: Vec<&[Row]> = several.iter().map(|part| part.rows.as_slice()).collect();
                verdict_over_settings(&rows, &labels)
            }
        };
        let method = method(&request.question);
        Self { name, verdict, parts, labels, notes, method, versions, timing, unfinished, illustration }
    }

    /// All files of the report: their names inside its folder, and their text.
    pub fn files(&self) -> Vec<(String, String)> {
        let mut files = vec![
            ("report.html".to_owned(), page::html(self)),
            ("report.md".to_owned(), markdown::page(self)),
            ("table.tex".to_owned(), latex::table(self)),
            ("table.csv".to_owned(), csv::table(self)),
            ("curves.csv".to_owned(), csv::curves(self)),
        ];
        let figures = self.parts.iter().flat_map(|part| &part.figures);
        files.extend(
            self.illustration.iter().map(|drawn| ("figures/illustration.svg".to_owned(), drawn.clone())),
        );
        files.extend(figures.map(|figure| (format!("figures/{}", figure.file_name), figure.file.clone())));
        files
    }
}

fn part(setting: Setting, labels: &[String], request: &Request) -> SettingReport {
    let rows = rows(&setting, &request.question);
    let (figures, missing) = setting_figures(&setting, labels);
    let line = heading(&setting);
    SettingReport {
        heading: population(&setting).map_or(line.clone(), |more| format!("{line}\n{more}")),
        table: Table::new(&rows, &request.question),
        verdict: verdict(&rows),
        commands: commands::commands(&setting),
        figures,
        missing,
        rows,
        setting,
    }
}

/// The paper's Figure 1 with the strategies of the runs; `None` where their reference is for other classes.
fn weights_of_the_papers_clients(collection: &Collection, labels: &[String]) -> Option<String> {
    let strategies = || collection.settings.iter().flat_map(|setting| &setting.strategies);
    let first = |label: &String| strategies().find(|strategy| strategy.label == *label)?.records.first();
    let counts = papers_clients();
    let explained = |record: &Record| Explanation::new(&record.config, &counts).ok();
    let all: Vec<Explanation> = labels.iter().filter_map(first).filter_map(explained).collect();
    (!all.is_empty()).then(|| svg(&illustration(&counts, &distinct(all)), Medium::File))
}

fn notes(collection: &Collection) -> Vec<String> {
    let mut notes = Vec::new();
    if !collection.unfinished.is_empty() {
        let runs = collection.unfinished.iter();
        let words: Vec<String> = runs
            .map(|run| {
                format!("{} with seed {} ({} of {} rounds)", run.strategy, run.seed, run.done, run.rounds)
            })
            .collect();
        notes.push(format!("Left out because unfinished: {}.", listed(&words, "and")));
    }
    if collection.unreadable > 0 {
        let runs = if collection.unreadable == 1 { "run" } else { "runs" };
        notes.push(format!("Left out because unreadable: {} {runs}.", collection.unreadable));
    }
    if collection.versions.len() > 1 {
        notes.push(format!("The runs were made by versions {}.", listed(&collection.versions, "and")));
    }
    notes
}

fn method(question: &Question) -> String {
    let mut text = format!(
        "Accuracy is the mean of the last {LAST} rounds, of all where there are fewer, on the whole test set. "
    );
    let _ = match question.deviation {
        Deviation::Seeds => write!(text, "Behind ± stands the deviation (n - 1) over seeds of these means. "),
        Deviation::Rounds => write!(
            text,
            "Behind ± stands, for each of these rounds, the deviation (n - 1) over seeds, averaged over the rounds. "
        ),
    };
    let _ = write!(
        text,
        "Differences are paired: the same seed has the same split, initial model and cohorts for all strategies. \
         Their intervals hold for one comparison at a time; p is corrected for all comparisons of a setting, and is \
         shown from {LEAST_FOR_A_TEST} seeds on. A difference counts as told where this p is below 0.05, at any number \
         of seeds."
    );
    text
}

/// A setting's keys and values as TOML lines.
pub(crate) fn toml(values: &[(&'static str, Value)]) -> String {
    values.iter().map(|(path, value)| format!("{path} = {value}\n")).collect()
}
