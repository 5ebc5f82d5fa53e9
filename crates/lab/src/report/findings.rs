//! A report's content: everything that its tables, figures and pages show, computed once.

use crate::experiments::explanation::Explanation;
use crate::figures::{
    Figure, Medium, distinct, illustration, number_equal_names, papers_clients, setting_figures, svg,
};
use crate::report::heading::{heading, population};
use crate::report::missed::missed_by;
use crate::report::table::Table;
use crate::report::test_set::test_set;
use crate::report::timing::Timing;
use crate::report::troubles::{collapsed, troubles};
use crate::report::{clients, clusters, commands, csv, latex, markdown, page};
use crate::runs::collection::Collection;
use crate::runs::record::{Record, Unfinished};
use crate::runs::setting::{Setting, place};
use crate::stats::difference::MIN_SEEDS;
use crate::stats::row::Row;
use crate::stats::summary::{Deviation, LAST, SummaryOptions, rows};
use crate::stats::verdict::{listed, verdict, verdict_over_settings};
use fedtvd_run::configuration::Value;
use std::fmt::Write as _;

/// A report. Only its timing depends on where, when and by how many processes the runs were made.
#[derive(Debug)]
pub struct Report {
    /// Its title.
    pub name: String,
    /// The verdict on all settings, in one sentence.
    pub verdict: String,
    /// A part per setting.
    pub parts: Vec<SettingReport>,
    /// All strategies, in the order of the tables.
    pub labels: Vec<String>,
    /// Notes for the reader, such as runs that are left out.
    pub notes: Vec<String>,
    /// How the numbers were computed.
    pub method: String,
    /// Versions of the program that made the runs.
    pub versions: Vec<String>,
    /// How long the runs took; `None` if not wanted.
    pub timing: Option<Timing>,
    /// Unfinished runs, which are left out.
    pub unfinished: Vec<Unfinished>,
    /// The strategies' weights for the paper's three example clients, as an SVG file.
    pub illustration: Option<String>,
}

/// One setting of a report.
#[derive(Debug)]
pub struct SettingReport {
    /// Its runs.
    pub setting: Setting,
    /// The setting in one or two lines.
    pub heading: String,
    /// A row per strategy.
    pub rows: Vec<Row>,
    /// The rows as a table.
    pub table: Table,
    /// The verdict in one sentence.
    pub verdict: String,
    /// A note for each strategy with collapsed seeds; the setting has them among its notes.
    pub collapsed: Vec<String>,
    /// A note for each strategy with classes that it never predicts correctly; the setting has them among its notes.
    pub missed: Vec<String>,
    /// Whether the uncertainty of the test set is part of the intervals, in one sentence; `None` if there are none.
    pub test_set: Option<String>,
    /// Its figures.
    pub figures: Vec<Figure>,
    /// Why figures are missing, a sentence for each.
    pub missing: Vec<String>,
    /// The commands that reproduce its runs.
    pub commands: Vec<String>,
}

/// Options of a report.
#[derive(Clone, Debug, Default)]
pub struct ReportOptions {
    /// How the numbers are computed.
    pub summary: SummaryOptions,
    /// The order of strategies; those not listed follow.
    pub order: Vec<String>,
    /// Whether to leave out timing.
    pub without_timing: bool,
    /// Its title. The names of its runs are not used: several sweeps can share a run, which has the name of the first.
    pub title: Option<String>,
}

impl Report {
    /// The report on some runs.
    pub fn new(mut collection: Collection, options: &ReportOptions) -> Self {
        let timing = (!options.without_timing).then(|| Timing::of(&collection));
        let name = options.title.clone().unwrap_or_else(|| "Comparison of strategies".to_owned());
        let order = |label: &str| {
            let asked = options.order.iter().position(|own| own == label).unwrap_or(options.order.len());
            (asked, label != options.summary.baseline, place(label))
        };
        let mut labels = collection.labels();
        labels.sort_by_cached_key(|label| order(label));
        for setting in &mut collection.settings {
            setting.strategies.sort_by_cached_key(|strategy| order(&strategy.label));
        }
        let (notes, illustration) = (notes(&collection), weights_of_the_papers_clients(&collection, &labels));
        let Collection { settings, unfinished, versions, .. } = collection;
        let mut parts: Vec<SettingReport> =
            settings.into_iter().map(|setting| part(setting, &labels, options)).collect();
        number_equal_names(parts.iter_mut().flat_map(|part| &mut part.figures));
        let verdict = match parts.as_slice() {
            [only] => only.verdict.clone(),
            several => {
                let rows: Vec<&[Row]> = several.iter().map(|part| part.rows.as_slice()).collect();
                verdict_over_settings(&rows, &labels)
            }
        };
        let method = method(&options.summary);
        Self { name, verdict, parts, labels, notes, method, versions, timing, unfinished, illustration }
    }

    /// All files of the report: file name inside its folder, and content.
    pub fn files(&self) -> Vec<(String, String)> {
        let mut files = vec![
            ("report.html".to_owned(), page::html(self)),
            ("report.md".to_owned(), markdown::page(self)),
            ("table.tex".to_owned(), latex::table(self)),
            ("table.csv".to_owned(), csv::table(self)),
            ("curves.csv".to_owned(), csv::curves(self)),
            ("clients.csv".to_owned(), clients::table(self)),
        ];
        files.extend(clusters::file(self).map(|text| ("clusters.csv".to_owned(), text)));
        let figures = self.parts.iter().flat_map(|part| &part.figures);
        files.extend(
            self.illustration.iter().map(|drawn| ("figures/illustration.svg".to_owned(), drawn.clone())),
        );
        files.extend(figures.map(|figure| (format!("figures/{}", figure.file_name), figure.file.clone())));
        files
    }
}

fn part(mut setting: Setting, labels: &[String], options: &ReportOptions) -> SettingReport {
    let (collapsed, missed) = (collapsed(&setting.strategies), missed_by(&setting.strategies));
    let notes = collapsed.iter().chain(&missed).cloned();
    setting.notes.extend(notes.chain(troubles(&setting.strategies)));
    let rows = rows(&setting, &options.summary);
    let (figures, missing) = setting_figures(&setting, labels);
    let line = heading(&setting);
    SettingReport {
        heading: population(&setting).map_or(line.clone(), |more| format!("{line}\n{more}")),
        table: Table::new(&rows, &options.summary),
        verdict: verdict(&rows),
        test_set: test_set(&rows),
        collapsed,
        missed,
        commands: commands::commands(&setting),
        figures,
        missing,
        rows,
        setting,
    }
}

/// The paper's Figure 1 with the strategies of the runs; `None` if their reference distribution has other classes.
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
        notes.push(format!(
            "The runs were made by different versions of fedtvd: {}.",
            listed(&collection.versions, "and")
        ));
    }
    if collection.arithmetic.len() > 1 {
        let kinds = collection.arithmetic.iter();
        let kinds: Vec<String> =
            kinds.map(|(kind, runs)| format!("{runs} of {} with {kind}", runs_in(collection))).collect();
        notes.push(format!(
            "The runs were not computed with the same arithmetic: {}. The same seed then gives the same split, initial model and \
             cohorts, but other bits, and curves that part after a few rounds.",
            listed(&kinds, "and")
        ));
    }
    notes
}

fn runs_in(collection: &Collection) -> usize {
    collection.arithmetic.values().sum()
}

fn method(options: &SummaryOptions) -> String {
    let mut text = format!(
        "Accuracy is test accuracy, averaged over the last {LAST} rounds, or over all rounds of a shorter run. "
    );
    let _ = match options.deviation {
        Deviation::Seeds => {
            write!(text, "± is the standard deviation of these averages over seeds (divisor n - 1). ")
        }
        Deviation::Rounds => write!(
            text,
            "± is the standard deviation over seeds (divisor n - 1) in each of these rounds, averaged over the rounds. "
        ),
    };
    let _ = write!(
        text,
        "Differences are paired: with the same seed, all strategies have the same split and initial model, and the same cohorts unless a \
         strategy selects its own. \
         A difference is significant if its confidence interval excludes 0. The intervals of a table hold together with 95 % \
         confidence (Bonferroni's method, Student's t); p-values are corrected in the same way and agree with them. Both assume \
         that differences between seeds are about normal, which few seeds cannot show, and need {MIN_SEEDS} shared seeds. Where \
         all seeds share one test set, the standard error is the root of the sum of two squares: the error over seeds, and \
         that of a paired bootstrap over test rows with the final models."
    );
    text
}

/// A setting's keys and values as TOML.
pub(crate) fn toml(values: &[(&'static str, Value)]) -> String {
    values.iter().map(|(path, value)| format!("{path} = {value}\n")).collect()
}
