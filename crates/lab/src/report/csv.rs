//! A report's numbers as CSV: a line per strategy, and accuracy over rounds.

use crate::report::findings::Report;
use crate::stats::row::Row;

/// Columns of `table.csv`.
const COLUMNS: [&str; 46] = [
    "setting",
    "strategy",
    "seeds",
    "mean",
    "std",
    "difference",
    "low",
    "high",
    "bootstrap_low",
    "bootstrap_high",
    "p",
    "p_holm",
    "wins",
    "pairs",
    "rounds_to_target",
    "wobble",
    "effective_clients",
    "median_accuracy",
    "client_mean",
    "client_deviation",
    "worst_decile",
    "bytes_up",
    "bytes_down",
    "collapsed",
    "alarms",
    "updates",
    "failed_updates",
    "simultaneous_low",
    "simultaneous_high",
    "p_bonferroni",
    "seed_error",
    "row_error",
    "balanced_accuracy",
    "balanced_std",
    "macro_f1",
    "macro_f1_std",
    "loss",
    "loss_std",
    "missed_classes",
    "best_accuracy",
    "best_std",
    "rounds_run",
    "personal",
    "personal_std",
    "personal_deviation",
    "personal_worst_decile",
];

/// `table.csv`: a line per setting and strategy. Accuracies are fractions; values that do not apply are empty.
pub(super) fn table(report: &Report) -> String {
    let record = |title: &str, row: &Row| {
        let line = &row.line;
        vec![
            title.to_owned(),
            line.strategy.clone(),
            row.seeds.len().to_string(),
            field(line.mean),
            field(line.std),
            field(line.difference),
            field(line.low),
            field(line.high),
            field(row.bootstrap_low),
            field(row.bootstrap_high),
            field(line.p),
            field(row.p_holm),
            field(line.wins),
            field(row.pairs),
            field(line.rounds_to_target),
            field(line.round_std),
            field(line.effective_clients),
            field(row.median_accuracy),
            field(row.client_mean),
            field(row.client_deviation),
            field(row.worst_decile),
            row.bytes_up.to_string(),
            row.bytes_down.to_string(),
            line.collapsed.to_string(),
            row.alarms.to_string(),
            row.updates.to_string(),
            row.failed_updates.to_string(),
            field(line.simultaneous_low),
            field(line.simultaneous_high),
            field(line.p_bonferroni),
            field(row.seed_error),
            field(row.row_error),
            field(line.balanced_accuracy),
            field(line.balanced_std),
            field(line.macro_f1),
            field(line.macro_f1_std),
            field(line.loss),
            field(line.loss_std),
            line.missed_classes.iter().map(usize::to_string).collect::<Vec<_>>().join(" "),
            field(row.best_accuracy),
            field(row.best_std),
            row.rounds.iter().map(u32::to_string).collect::<Vec<_>>().join(" "),
            field(row.personal),
            field(row.personal_std),
            field(row.personal_deviation),
            field(row.personal_worst_decile),
        ]
    };
    let rows = report.parts.iter().flat_map(|part| part.rows.iter().map(|row| (&part.setting.title, row)));
    let head = COLUMNS.map(str::to_owned).to_vec();
    csv(std::iter::once(head).chain(rows.map(|(title, row)| record(title, row))))
}

/// `curves.csv`: a line per run, a column per round.
pub(super) fn curves(report: &Report) -> String {
    let records = || {
        report.parts.iter().flat_map(|part| {
            let strategies = part.setting.strategies.iter();
            strategies.flat_map(move |strategy| {
                strategy.records.iter().map(move |record| (&part.setting.title, &strategy.label, record))
            })
        })
    };
    let rounds = records().map(|(.., record)| record.accuracy.len()).max().unwrap_or(0);
    let names = ["setting", "strategy", "seed"].map(str::to_owned).into_iter();
    let head = names.chain((1..=rounds).map(|round| round.to_string())).collect();
    let lines = records().map(|(title, label, record)| {
        let evaluated = |round: usize| record.evaluated.get(round) == Some(&true);
        let accuracy =
            |round: usize| record.accuracy.get(round).copied().flatten().filter(|_| evaluated(round));
        let accuracies = (0..rounds).map(|round| field(accuracy(round)));
        let names = [title.clone(), label.clone(), record.summary.seed.to_string()];
        names.into_iter().chain(accuracies).collect()
    });
    csv(std::iter::once(head).chain(lines))
}

/// A value, or an empty field.
fn field(value: Option<impl ToString>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

/// Records as CSV; fields are quoted where necessary.
pub(crate) fn csv(records: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
    for record in records {
        writer.write_record(&record).expect("memory takes every record");
    }
    String::from_utf8(writer.into_inner().expect("memory is never full")).expect("fields are text")
}
