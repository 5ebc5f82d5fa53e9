//! A report's numbers for other programs: a line per strategy, and accuracy over rounds.

use crate::report::Report;
use std::fmt::Write as _;

/// `table.csv`: a line per setting and strategy. Accuracies are fractions; what does not apply is empty.
pub fn table(report: &Report) -> String {
    let mut text = String::from(
        "setting,strategy,seeds,mean,std,difference,low,high,bootstrap_low,bootstrap_high,p,p_holm,wins,pairs,\
         rounds_to_target,wobble,effective_clients,client_mean,client_deviation,worst_decile,bytes_up,bytes_down\n",
    );
    for part in &report.parts {
        for row in &part.rows {
            let line = &row.line;
            let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
            let count = |value: Option<usize>| value.map_or(String::new(), |value| value.to_string());
            let cells = [
                quoted(&part.setting.title),
                quoted(&line.strategy),
                row.seeds.len().to_string(),
                line.mean.to_string(),
                number(line.std),
                number(line.difference),
                number(line.low),
                number(line.high),
                number(row.bootstrap_low),
                number(row.bootstrap_high),
                number(line.p),
                number(row.p_holm),
                count(line.wins),
                count(row.pairs),
                count(line.rounds_to_target),
                number(line.wobble),
                line.effective_clients.to_string(),
                number(row.client_mean),
                number(row.client_deviation),
                number(row.worst_decile),
                row.bytes_up.to_string(),
                row.bytes_down.to_string(),
            ];
            let _ = writeln!(text, "{}", cells.join(","));
        }
    }
    text
}

/// `curves.csv`: a line per run, a column per round.
pub fn curves(report: &Report) -> String {
    let records = || {
        report.parts.iter().flat_map(|part| {
            let strategies = part.setting.strategies.iter();
            strategies.flat_map(move |strategy| {
                strategy.records.iter().map(move |record| (&part.setting.title, &strategy.label, record))
            })
        })
    };
    let rounds = records().map(|(.., record)| record.accuracy.len()).max().unwrap_or(0);
    let mut text = String::from("setting,strategy,seed");
    (1..=rounds).for_each(|round| text += &format!(",{round}"));
    text += "\n";
    for (title, label, record) in records() {
        let _ = write!(text, "{},{},{}", quoted(title), quoted(label), record.summary.seed);
        for round in 0..rounds {
            text.push(',');
            if let Some(Some(accuracy)) = record.accuracy.get(round) {
                let _ = write!(text, "{accuracy}");
            }
        }
        text += "\n";
    }
    text
}

/// A field, between quotation marks where it needs them.
pub(crate) fn quoted(field: &str) -> String {
    match field.contains([',', '"', '\n']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field.to_owned(),
    }
}
