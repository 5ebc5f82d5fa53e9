//! Our results beside the paper's: one row per setting and strategy, also for those not run.

use crate::experiments::grid::Cell;
use crate::experiments::preset::{Preset, reported};
use crate::experiments::sweep::RunStatus;
use crate::report::csv::csv as records_as_csv;
use crate::report::heading::seed_count;
use crate::report::markdown::escaped;
use crate::report::text_table::text_table;
use crate::report::troubles::MARK;
use crate::stats::statistics::{deviation, mean};
use serde::Serialize;
use std::fmt::Write as _;

/// One strategy in one setting. Accuracies are in per cent, as in the paper's tables.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PaperRow {
    /// The data set.
    pub dataset: String,
    /// The setting, without data set and model.
    pub setting: String,
    /// The strategy's label.
    pub strategy: String,
    /// Our accuracy: mean over seeds of the mean of the last 10 rounds.
    pub mean: Option<f64>,
    /// Standard deviation over seeds.
    pub std: Option<f64>,
    /// Number of finished seeds.
    pub seeds: usize,
    /// How many of them collapsed; they are part of the mean.
    pub collapsed: usize,
    /// The paper's accuracy; `None` if not reported.
    pub paper_mean: Option<f64>,
    /// The paper's standard deviation over five runs.
    pub paper_std: Option<f64>,
    /// Ours minus the paper's; `None` if ours does not follow the paper's protocol.
    pub difference: Option<f64>,
    /// Why seeds are missing; `None` if all are finished.
    pub missing: Option<String>,
    /// The first collapsed seed and why its result cannot be used; `None` if none collapsed.
    pub collapse: Option<String>,
}

/// The rows of a preset's cells. Differences to the paper are given if the cells are `faithful` to its protocol.
pub fn rows(preset: Preset, cells: &[&Cell], statuses: &[RunStatus], faithful: bool) -> Vec<PaperRow> {
    let key = |cell: &Cell| {
        let set = cell.experiment.data.set.clone();
        (set, setting(cell), cell.experiment.run.strategy.label.clone())
    };
    let mut keys: Vec<(String, String, String)> = Vec::new();
    for cell in cells {
        if !keys.contains(&key(cell)) {
            keys.push(key(cell));
        }
    }
    // Cells are ordered by seed, rows by data set and setting.
    let place = |wanted: &(String, String, String)| {
        keys.iter().position(|one| (&one.0, &one.1) == (&wanted.0, &wanted.1)).unwrap_or(0)
    };
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by_key(|&at| (place(&keys[at]), at));
    let row = |at: usize| {
        let own: Vec<(&&Cell, &RunStatus)> =
            cells.iter().zip(statuses).filter(|(cell, _)| key(cell) == keys[at]).collect();
        let mut row = row(preset, &keys[at], &own);
        row.difference = row.difference.filter(|_| faithful);
        row
    };
    order.into_iter().map(row).collect()
}

fn row(preset: Preset, key: &(String, String, String), own: &[(&&Cell, &RunStatus)]) -> PaperRow {
    let done: Vec<f64> = own
        .iter()
        .filter_map(|(_, status)| match status {
            RunStatus::Done(summary) => Some(100.0 * summary.last10_accuracy?),
            _ => None,
        })
        .collect();
    let reasons: Vec<String> = own.iter().filter_map(|(cell, status)| collapse(cell, status)).collect();
    let missing = own.iter().find_map(|(_, status)| match status {
        RunStatus::Done(_) => None,
        RunStatus::Stopped(0) => Some("not run".to_owned()),
        RunStatus::Stopped(rounds) => Some(format!("stopped after round {rounds}")),
        RunStatus::Elsewhere => Some("running in another process".to_owned()),
        RunStatus::Failed(error) => Some(error.to_string()),
    });
    let paper = own.first().and_then(|(cell, _)| reported(preset, &cell.experiment));
    let ours = (!done.is_empty()).then(|| mean(&done));
    let (dataset, setting, strategy) = key.clone();
    PaperRow {
        dataset,
        setting,
        strategy,
        mean: ours,
        std: deviation(&done),
        seeds: done.len(),
        collapsed: reasons.len(),
        paper_mean: paper.as_ref().map(|figure| figure.mean),
        paper_std: paper.as_ref().map(|figure| figure.std),
        difference: ours.zip(paper).map(|(ours, figure)| ours - figure.mean),
        missing,
        collapse: reasons.first().cloned(),
    }
}

/// The seed of a collapsed run and why its result cannot be used.
fn collapse(cell: &Cell, status: &RunStatus) -> Option<String> {
    match status {
        RunStatus::Done(summary) => {
            Some(format!("seed {}: {}", cell.experiment.seed, summary.collapsed.as_ref()?))
        }
        _ => None,
    }
}

/// The setting of a cell, without data set and model.
fn setting(cell: &Cell) -> String {
    let own =
        cell.setting.iter().filter(|one| !one.starts_with("data.set") && !one.starts_with("model.name"));
    own.cloned().collect::<Vec<_>>().join(", ")
}

/// Rows as a Markdown table that is also aligned as plain text.
pub fn markdown(rows: &[PaperRow]) -> String {
    let cells = |row: &PaperRow| {
        let spread = |mean: Option<f64>, std: Option<f64>| match (mean, std) {
            (Some(mean), Some(std)) => format!("{mean:.2} ± {std:.2}"),
            (Some(mean), None) => format!("{mean:.2}"),
            _ => "—".to_owned(),
        };
        let ours = if row.mean.is_some() { spread(row.mean, row.std) } else { "not run".to_owned() };
        let ours = if row.collapsed > 0 { format!("{ours}{MARK}") } else { ours };
        let difference = row.difference.map_or("—".to_owned(), |difference| format!("{difference:+.2}"));
        let paper = spread(row.paper_mean, row.paper_std);
        let words = [&row.dataset, &row.setting, &row.strategy].map(|word| escaped(word));
        [words.to_vec(), vec![ours, row.seeds.to_string(), paper, difference]].concat()
    };
    let heads =
        ["data", "setting", "strategy", "ours (%)", "seeds", "paper (%)", "difference"].map(str::to_owned);
    let mut text = text_table(3, &heads, &rows.iter().map(cells).collect::<Vec<_>>());
    for row in rows {
        let Some(why) = &row.collapse else { continue };
        let of = [&row.dataset, &row.setting, &row.strategy].map(|word| escaped(word)).join(", ");
        let (some, all, why) = (row.collapsed, seed_count(row.seeds), escaped(why));
        let _ = write!(text, "\n{MARK} {of}: {some} of {all} collapsed ({why})\n");
    }
    let mut reasons: Vec<(&str, usize)> = Vec::new();
    for why in rows.iter().filter_map(|row| row.missing.as_deref()) {
        match reasons.iter_mut().find(|(one, _)| *one == why) {
            Some((_, count)) => *count += 1,
            None => reasons.push((why, 1)),
        }
    }
    for (why, count) in reasons {
        let are = if count == 1 { "row is" } else { "rows are" };
        let _ = write!(text, "\n{count} {are} incomplete: {why}\n");
    }
    text
}

/// Rows as CSV.
pub fn csv(rows: &[PaperRow]) -> String {
    let head = "dataset,setting,strategy,mean,std,seeds,paper_mean,paper_std,difference,collapsed";
    let head = head.split(',').map(str::to_owned).collect();
    let number = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.4}"));
    let record = |row: &PaperRow| {
        let words = [&row.dataset, &row.setting, &row.strategy].map(String::clone).to_vec();
        let ours = vec![number(row.mean), number(row.std), row.seeds.to_string()];
        let paper = [row.paper_mean, row.paper_std, row.difference].map(number).to_vec();
        [words, ours, paper, vec![row.collapsed.to_string()]].concat()
    };
    records_as_csv(std::iter::once(head).chain(rows.iter().map(record)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::preset::protocol;
    use fedtvd_run::collapse::FailedUpdates;
    use fedtvd_run::directory::Summary;

    fn done(accuracy: f64) -> RunStatus {
        RunStatus::Done(Box::new(Summary {
            strategy: String::new(),
            seed: 1,
            rounds: 300,
            accuracy: Some(accuracy),
            last10_accuracy: Some(accuracy),
            last10_validation: None,
            last10_personal: None,
            client_accuracy: None,
            best: None,
            stopped: None,
            last10_balanced_accuracy: None,
            last10_macro_f1: None,
            last10_loss: None,
            missed_classes: None,
            collapsed: None,
            alarms: 0,
            failed: FailedUpdates::default(),
            seconds: 0.0,
            images_per_second: 0.0,
            peak_memory_bytes: None,
            split_hash: String::new(),
            directory: String::new(),
            model: String::new(),
        }))
    }

    fn table(faithful: bool) -> Vec<PaperRow> {
        let names = ["fedavg", "uniform"].map(str::to_owned);
        let cells = Preset::Skew.cells(&protocol(), &["fmnist".to_owned()], &names, &[1, 2]).unwrap();
        let cells: Vec<&Cell> = cells.iter().collect();
        let statuses: Vec<RunStatus> = cells
            .iter()
            .map(|cell| match (cell.experiment.split.alpha == 0.1, cell.experiment.seed) {
                (true, 1) if cell.setting.len() == 3 => done(0.82),
                (true, 2) if cell.setting.len() == 3 => done(0.84),
                _ => RunStatus::Stopped(0),
            })
            .collect();
        rows(Preset::Skew, &cells, &statuses, faithful)
    }

    #[test]
    fn the_papers_result_is_beside_ours() {
        let rows = table(true);
        assert_eq!(rows.len(), 8, "four settings of two strategies");
        let first = &rows[0];
        assert_eq!((first.strategy.as_str(), first.seeds, first.paper_mean), ("fedavg", 2, Some(82.64)));
        assert!((first.mean.unwrap() - 83.0).abs() < 1e-9 && (first.difference.unwrap() - 0.36).abs() < 1e-9);
        assert_eq!((rows[1].strategy.as_str(), rows[1].paper_mean), ("uniform", None));
    }

    #[test]
    fn another_protocol_has_no_difference_to_the_paper() {
        let first = &table(false)[0];
        assert_eq!((first.seeds, first.paper_mean, first.difference), (2, Some(82.64), None));
    }

    #[test]
    fn what_was_not_run_says_so() {
        let rows = table(true);
        assert_eq!((rows[2].mean, rows[2].missing.as_deref()), (None, Some("not run")));
        let text = markdown(&rows);
        assert!(text.lines().nth(4).is_some_and(|line| line.contains("not run")), "{text}");
        assert!(
            csv(&rows).lines().nth(3).is_some_and(|line| line.contains(",fedavg,,,0,86.1100,")),
            "{}",
            csv(&rows)
        );
    }

    #[test]
    fn a_collapsed_seed_is_marked_counted_and_explained() {
        let cells =
            Preset::Skew.cells(&protocol(), &["fmnist".to_owned()], &["fedavg".to_owned()], &[1, 2]).unwrap();
        let cells: Vec<&Cell> = cells.iter().filter(|cell| cell.experiment.split.alpha == 0.5).collect();
        let RunStatus::Done(mut broken) = done(0.1) else { panic!("it is done") };
        broken.collapsed = Some("the loss is not finite from round 7 on".to_owned());
        let rows = rows(Preset::Skew, &cells, &[done(0.8), RunStatus::Done(broken)], true);
        assert_eq!((rows[0].seeds, rows[0].collapsed, &rows[0].missing), (2, 1, &None));
        let text = markdown(&rows);
        assert!(text.contains("45.00 ± 49.50† |"), "{text}");
        let note = "† fmnist, split.alpha = 0.5, fedavg: 1 of 2 seeds collapsed (seed 2: the loss is not finite from round 7 on)";
        assert!(text.contains(note), "{text}");
        assert!(csv(&rows).ends_with(",1\n"), "{}", csv(&rows));
    }

    #[test]
    fn a_path_with_special_characters_stays_in_its_column() {
        let mut rows = table(true);
        rows.truncate(1);
        rows[0].dataset = "a|b, c.csv".to_owned();
        assert!(markdown(&rows).contains("\n| a\\|b, c.csv | split.alpha = 0.1 "), "{}", markdown(&rows));
        assert!(csv(&rows).contains("\n\"a|b, c.csv\",split.alpha = 0.1,fedavg,83.0000,"), "{}", csv(&rows));
    }
}
