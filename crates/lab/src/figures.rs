//! What can be drawn of a setting, and what cannot.

use crate::bubbles::Bubbles;
use crate::classes::Classes;
use crate::curves::curves;
use crate::record::Record;
use crate::series::Series;
use crate::setting::Setting;
use crate::slug::slug;
use crate::svg::{Medium, Unit};
use fedtvd_core::drift::Drift;
use std::collections::BTreeSet;

/// A figure of a report.
#[derive(Clone, Debug)]
pub struct Figure {
    /// What it is called in the page and in its file's name.
    pub name: &'static str,
    /// Its name in the page's row of buttons.
    pub tab: &'static str,
    /// Its file's name.
    pub file_name: String,
    /// What it shows.
    pub title: String,
    /// An SVG file that stands alone.
    pub file: String,
    /// The same for the page.
    pub inline: String,
    /// Places and labels of the strategies that the page shows one at a time; empty where it shows all at once.
    pub switch: Vec<(usize, String)>,
}

/// A setting's figures, and a sentence for each that its runs do not tell enough for.
pub fn figures(setting: &Setting, labels: &[String]) -> (Vec<Figure>, Vec<String>) {
    let end = if setting.title.is_empty() { String::new() } else { format!("-{}", slug(&setting.title)) };
    let figure = |[name, tab]: [&'static str; 2], title: &str, file: String, inline: String| Figure {
        name,
        tab,
        file_name: format!("{name}{end}.svg"),
        title: title.to_owned(),
        file,
        inline,
        switch: Vec::new(),
    };
    let curve = |name, title: &str, unit, of: &dyn Fn(&Record) -> Option<Vec<Option<f64>>>| {
        let series = series(setting, labels, of)?;
        let draw = |medium| curves(title, unit, &series, medium);
        Some(figure(name, title, draw(Medium::File), draw(Medium::Page)))
    };
    let mut missing = Vec::new();
    let mut all = vec![
        curve(
            ["accuracy", "Accuracy"],
            "Accuracy over rounds, mean over seeds and a band of one deviation",
            Unit::PerCent,
            &|run| Some(run.accuracy.clone()),
        ),
        curve(
            ["effective", "Effective clients"],
            "Effective number of clients per round, 1 / Σ s²",
            Unit::Plain,
            &|run| Some(run.effective.clone()),
        ),
    ];
    let drifts = [
        curve(
            ["drift", "Client drift"],
            "Client drift: weighted spread of the clients' models around their mean, per round",
            Unit::Plain,
            &|run| told(run, |drift| drift.apart),
        ),
        curve(
            ["step", "Step"],
            "Step: how far the clients' mean is from the model that they started with, per round",
            Unit::Plain,
            &|run| told(run, |drift| drift.along),
        ),
    ];
    if drifts[0].is_none() {
        missing.push(
            "Client drift is not shown: not all runs tell it; they were made by an earlier version."
                .to_owned(),
        );
    }
    all.extend(drifts);
    all.push(Bubbles::of(setting, labels).map(|bubbles| {
        let title = format!(
            "Clients over size and TVD; area: mean weight in the rounds in which they counted (seed {})",
            bubbles.seed
        );
        let (file, inline) = (bubbles.panels(&title), bubbles.interactive(&title));
        Figure { switch: bubbles.strategies, ..figure(["weights", "Weights"], &title, file, inline) }
    }));
    let classes = Classes::of(setting, labels);
    if classes.is_none() {
        missing.push(
            "Accuracy by class and over clients is not shown: not all runs were made with evaluation.details=true."
                .to_owned(),
        );
    }
    all.push(classes.map(|classes| {
        let title = "Accuracy by class, mean over seeds of the last 10 rounds";
        figure(
            ["classes", "By class"],
            title,
            classes.drawn(title, Medium::File),
            classes.drawn(title, Medium::Page),
        )
    }));
    (all.into_iter().flatten().collect(), missing)
}

/// A part of the drift in every round; `None` where no round tells.
fn told(record: &Record, part: fn(&Drift) -> f64) -> Option<Vec<Option<f64>>> {
    let rounds: Vec<Option<f64>> = record.drift.iter().map(|drift| drift.as_ref().map(part)).collect();
    rounds.iter().any(Option::is_some).then_some(rounds)
}

/// A series per strategy; `None` unless every run tells.
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

/// Numbers the second and every later one of figures whose files have the same name.
pub(crate) fn tell_apart<'a>(figures: impl Iterator<Item = &'a mut Figure>) {
    let mut taken = BTreeSet::new();
    for figure in figures {
        let plain = figure.file_name.trim_end_matches(".svg").to_owned();
        let numbered = (2..).map(|number| format!("{plain}-{number}.svg"));
        let mut names = std::iter::once(figure.file_name.clone()).chain(numbered);
        figure.file_name = names.find(|name| !taken.contains(name)).expect("there is always a next number");
        taken.insert(figure.file_name.clone());
    }
}
