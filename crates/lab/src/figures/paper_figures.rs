//! The paper's Figures 1 to 5 from our runs: three example clients, accuracy over rounds for each data set and skew, and
//! weights by size and TVD.

use super::illustration::{illustration, papers_clients};
use super::setting_figures::setting_figures;
use super::svg::{Medium, svg};
use crate::experiments::explanation::Explanation;
use crate::report::heading::seed_count;
use crate::report::slug::slug;
use crate::runs::collection::Collection;
use crate::runs::setting::{Setting, shown};
use fedtvd_run::configuration::Config;
use std::fmt::Write as _;

/// One of the paper's figures, drawn from our runs.
pub struct PaperFigure {
    /// Its number in the paper.
    pub number: u32,
    /// Its file name.
    pub file: String,
    /// A description with the most important numbers.
    pub shows: String,
    /// The SVG file.
    pub svg: String,
}

/// All figures for which there are runs, by number.
pub fn paper_figures(collection: &Collection) -> Vec<PaperFigure> {
    let labels = collection.labels();
    let mut all = vec![first()];
    for setting in &collection.settings {
        let (drawn, _) = setting_figures(setting, &labels);
        let dataset = setting.value("data.set").map(shown).unwrap_or_default();
        // Splits without an alpha are named by their kind.
        let (alpha, kind) = (setting.value("split.alpha"), setting.value("split.kind"));
        let split = match (alpha, kind) {
            (Some(alpha), _) => format!("alpha {}", shown(alpha)),
            (None, kind) => kind.map(shown).unwrap_or_default(),
        };
        let end = slug(&format!("{dataset} {split}")) + ".svg";
        for figure in drawn {
            let (number, shows) = match figure.name {
                "accuracy" => (number(&dataset), accuracies(setting, &dataset, &split)),
                "weights" => (5, format!("{dataset}, {split}: {}", figure.title)),
                _ => continue,
            };
            all.push(PaperFigure { number, file: format!("figure-{number}-{end}"), shows, svg: figure.file });
        }
    }
    all.sort_by_key(|drawn| drawn.number);
    all
}

/// The number of the paper's figure for a data set; other data sets share that of the first.
fn number(dataset: &str) -> u32 {
    match dataset {
        "cifar10" => 3,
        "cifar100" => 4,
        _ => 2,
    }
}

fn first() -> PaperFigure {
    let counts = papers_clients();
    let explained = |name| Explanation::new(&Config::default().with_strategy(name), &counts).ok();
    let explanations: Vec<Explanation> =
        ["fedavg", "uniform", "fedtvd"].into_iter().filter_map(explained).collect();
    let weights = |explanation: &Explanation| {
        let weights: Vec<String> = explanation.clients.iter().map(|c| format!("{:.3}", c.weight)).collect();
        format!("{} {}", explanation.strategy, weights.join(", "))
    };
    let shows: Vec<String> = explanations.iter().map(weights).collect();
    PaperFigure {
        number: 1,
        file: "figure-1.svg".to_owned(),
        shows: format!(
            "three clients with label counts 30,30,30; 20,40,40 and 10,30,70, and their weights: {}",
            shows.join("; ")
        ),
        svg: svg(&illustration(&counts, &explanations), Medium::File),
    }
}

/// Final accuracies of a setting, best first.
fn accuracies(setting: &Setting, dataset: &str, split: &str) -> String {
    let mut finals: Vec<(f64, &str)> = setting
        .strategies
        .iter()
        .map(|strategy| {
            let own = strategy.records.iter().filter_map(|record| Some(100.0 * record.final_accuracy()?));
            (own.sum::<f64>() / strategy.records.len().max(1) as f64, strategy.label.as_str())
        })
        .collect();
    finals.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let words: Vec<String> =
        finals.iter().map(|(accuracy, label)| format!("{label} {accuracy:.2} %")).collect();
    let seeds = seed_count(setting.seeds().len());
    format!("{dataset}, {split}: accuracy over rounds, {seeds}; final accuracy: {}", words.join(", "))
}

/// The content of each figure, as a Markdown table.
pub fn figure_table(drawn: &[PaperFigure]) -> String {
    let mut text = "| figure | file | content |\n|---|---|---|\n".to_owned();
    for PaperFigure { number, file, shows, .. } in drawn {
        let _ = writeln!(text, "| {number} | [{file}](figures/{file}) | {shows} |");
    }
    text
}
