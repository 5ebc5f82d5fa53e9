//! Which clients share a model, round by round: a table of a report's pages, and `clusters.csv`.

use crate::report::csv::csv;
use crate::report::findings::{Report, SettingReport};
use crate::report::text_table::text_table;

/// Heads of the table.
pub(crate) const HEADS: [&str; 4] = ["strategy", "seed", "after rounds", "clients of each model"];

/// A line for each stretch of rounds with the same clusters, of each run of a setting; empty without strategies with several models.
pub(crate) fn lines(part: &SettingReport) -> Vec<[String; 4]> {
    let runs = part
        .setting
        .strategies
        .iter()
        .flat_map(|strategy| strategy.records.iter().map(move |record| (strategy.label.clone(), record)));
    let lines = runs.flat_map(|(label, record)| {
        let seed = record.summary.seed.to_string();
        record.clusters.iter().map(move |own| [label.clone(), seed.clone(), own.rounds(), own.words()])
    });
    lines.collect()
}

/// The table in Markdown; `None` without strategies with several models.
pub(crate) fn table(part: &SettingReport, escaped: impl Fn(&str) -> String) -> Option<String> {
    let lines: Vec<Vec<String>> =
        lines(part).iter().map(|line| line.iter().map(|cell| escaped(cell)).collect()).collect();
    (!lines.is_empty()).then(|| text_table(4, &HEADS.map(str::to_owned), &lines))
}

/// `clusters.csv`: a line per run, stretch of rounds, model and client; `None` without strategies with several models.
pub(super) fn file(report: &Report) -> Option<String> {
    let mut lines = vec![
        ["setting", "strategy", "seed", "first_round", "last_round", "branch", "client"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for part in &report.parts {
        for strategy in &part.setting.strategies {
            for record in &strategy.records {
                for own in &record.clusters {
                    for (branch, clients) in &own.branches {
                        lines.extend(clients.iter().map(|client| {
                            vec![
                                part.setting.title.clone(),
                                strategy.label.clone(),
                                record.summary.seed.to_string(),
                                own.first.to_string(),
                                own.last.to_string(),
                                branch.to_string(),
                                client.to_string(),
                            ]
                        }));
                    }
                }
            }
        }
    }
    (lines.len() > 1).then(|| csv(lines))
}
