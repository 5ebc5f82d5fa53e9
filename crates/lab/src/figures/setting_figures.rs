//! The figures of a setting, and why some are missing.

use super::axis::Unit;
use super::bubbles::Bubbles;
use super::classes::Classes;
use super::client_accuracy::ClientAccuracy;
use super::curves::{EDGES, curves};
use super::legend::{Sample, legend};
use super::scene::Scene;
use super::series::Series;
use super::svg::{Medium, svg};
use crate::report::slug::slug;
use crate::runs::record::Record;
use crate::runs::setting::Setting;
use fedtvd_core::round::Drift;
use std::collections::BTreeSet;

/// A figure of a report.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Its name in the page and in the file name.
    pub name: &'static str,
    /// Its name on the page's tabs.
    pub tab: &'static str,
    /// Its file name.
    pub file_name: String,
    /// Its title.
    pub title: String,
    /// A standalone SVG file.
    pub file: String,
    /// The same for the page.
    pub inline: String,
    /// Positions and labels of the strategies that the page shows one at a time; empty if it shows all at once.
    pub switch: Vec<(usize, String)>,
}

/// A setting's figures, and a sentence for each figure that its runs have no data for.
pub(crate) fn setting_figures(setting: &Setting, labels: &[String]) -> (Vec<Figure>, Vec<String>) {
    let end = if setting.title.is_empty() { String::new() } else { format!("-{}", slug(&setting.title)) };
    let figure = |[name, tab]: [&'static str; 2], file: &Scene, inline: &Scene| Figure {
        name,
        tab,
        file_name: format!("{name}{end}.svg"),
        title: file.title.clone(),
        file: svg(file, Medium::File),
        inline: svg(inline, Medium::Page),
        switch: Vec::new(),
    };
    let curve = |name, title: &str, unit, of: &dyn Fn(&Record) -> Option<Vec<Option<f64>>>| {
        let series = series(setting, labels, of)?;
        let inline = curves(title, unit, &series);
        let mut file = inline.clone();
        let strategies = series.iter().map(|series| (series.place, series.label.as_str()));
        legend(&mut file, EDGES[0], Sample::Curve, strategies);
        Some(figure(name, &file, &inline))
    };
    let mut missing = Vec::new();
    let balanced = curve(
        ["balanced", "Balanced accuracy"],
        "Balanced accuracy (mean over classes) over rounds, mean over seeds ± standard deviation",
        Unit::Percent,
        &|run| recorded(&run.balanced),
    );
    if balanced.is_none() {
        missing.push("Balanced accuracy is not shown: some runs did not record it.".to_owned());
    }
    let mut all = vec![
        curve(
            ["accuracy", "Accuracy"],
            "Accuracy over rounds, mean over seeds ± standard deviation",
            Unit::Percent,
            &|run| Some(run.accuracy.clone()),
        ),
        balanced,
        curve(
            ["macro-f1", "Macro F1"],
            "Macro F1 (mean of the F1 scores of the classes) over rounds, mean over seeds ± standard deviation",
            Unit::Percent,
            &|run| recorded(&run.macro_f1s),
        ),
        curve(
            ["loss", "Loss"],
            "Mean cross-entropy on the test samples over rounds, mean over seeds ± standard deviation",
            Unit::Plain,
            &|run| recorded(&run.losses),
        ),
        curve(
            ["effective", "Effective clients"],
            "Effective number of clients per round, 1 / Σ weight²",
            Unit::Plain,
            &|run| Some(run.effective.clone()),
        ),
    ];
    let drifts = [
        curve(
            ["drift", "Client drift"],
            "Client drift: weighted spread of the clients' models around their mean, per round",
            Unit::Plain,
            &|run| drift(run, |drift| drift.apart),
        ),
        curve(
            ["step", "Update norm"],
            "Norm of the mean update, per round: distance of the clients' mean model from the global model they started with",
            Unit::Plain,
            &|run| drift(run, |drift| drift.along),
        ),
    ];
    if drifts[0].is_none() {
        missing.push(
            "Client drift is not shown: some runs were made by an earlier version that did not record it."
                .to_owned(),
        );
    }
    all.extend(drifts);
    all.push(Bubbles::of(setting, labels).map(|bubbles| {
        let title = format!(
            "Clients by size and TVD (total variation distance of their labels to the reference); area: mean weight (seed {})",
            bubbles.seed
        );
        let (file, inline) = (bubbles.panels(&title), bubbles.interactive(&title));
        Figure { switch: bubbles.strategies, ..figure(["weights", "Weights"], &file, &inline) }
    }));
    let clients = ClientAccuracy::of(setting, labels);
    if clients.is_none() {
        missing.push(
            "Accuracy on each client's own hold-out is not shown: not all runs have hold-outs (split.holdout)."
                .to_owned(),
        );
    }
    all.push(clients.map(|clients| {
        let title = format!(
            "Clients by TVD (total variation distance of their labels to the reference) and accuracy on their own hold-outs; area: \
             samples (seed {})",
            clients.seed
        );
        let panels = clients.panels(&title);
        figure(["clients", "By client"], &panels, &panels)
    }));
    let classes = Classes::of(setting, labels);
    if classes.is_none() {
        missing.push(
            "Accuracy by class is not shown: not all runs were made with evaluation.details=true.".to_owned(),
        );
    }
    all.push(classes.map(|classes| {
        let inline = classes.chart("Accuracy by class, mean over seeds and the last 10 rounds");
        let mut file = inline.clone();
        legend(&mut file, EDGES[0], Sample::Dot, classes.strategies());
        figure(["classes", "By class"], &file, &inline)
    }));
    (all.into_iter().flatten().collect(), missing)
}

/// A component of the drift in every round; `None` if no round recorded it.
fn drift(record: &Record, part: fn(&Drift) -> f64) -> Option<Vec<Option<f64>>> {
    recorded(&record.drift.iter().map(|drift| drift.as_ref().map(part)).collect::<Vec<_>>())
}

/// The values of every round; `None` if no round recorded one.
fn recorded(rounds: &[Option<f64>]) -> Option<Vec<Option<f64>>> {
    rounds.iter().any(Option::is_some).then(|| rounds.to_vec())
}

/// A series per strategy; `None` unless every run has one.
fn series(
    setting: &Setting,
    labels: &[String],
    of: &dyn Fn(&Record) -> Option<Vec<Option<f64>>>,
) -> Option<Vec<Series>> {
    let strategies = setting.strategies.iter().enumerate().map(|(column, strategy)| {
        let curves: Vec<Vec<Option<f64>>> = strategy.records.iter().map(of).collect::<Option<_>>()?;
        let place = labels.iter().position(|label| *label == strategy.label).unwrap_or(column);
        Some(Series::over_seeds(place, &strategy.label, &curves))
    });
    strategies.collect()
}

/// Makes file names unique by numbering the second and later figures with the same name.
pub(crate) fn number_equal_names<'a>(figures: impl Iterator<Item = &'a mut Figure>) {
    let mut taken = BTreeSet::new();
    for figure in figures {
        let plain = figure.file_name.trim_end_matches(".svg").to_owned();
        let numbered = (2..).map(|number| format!("{plain}-{number}.svg"));
        let mut names = std::iter::once(figure.file_name.clone()).chain(numbered);
        figure.file_name = names.find(|name| !taken.contains(name)).expect("there is always a next number");
        taken.insert(figure.file_name.clone());
    }
}
