//! What tuning chose for each strategy, and how much of it each got.

use crate::experiments::tuning::search::Choice;
use crate::report::text_table::text_table;
use fedtvd_run::configuration::Metric;

/// A row per strategy: the chosen values, their metric on the hold-outs, candidates, runs and rounds.
pub fn tuning_table(choices: &[Choice], metric: Metric) -> String {
    let heads = ["strategy", "chosen", metric.name(), "candidates", "runs", "rounds"].map(str::to_owned);
    let line = |choice: &Choice| {
        let candidates = match choice.collapsed {
            0 => choice.candidates.to_string(),
            collapsed => format!("{} ({collapsed} collapsed)", choice.candidates),
        };
        vec![
            choice.strategy.clone(),
            chosen(choice),
            metric.shown(choice.validation),
            candidates,
            choice.runs.to_string(),
            choice.rounds.to_string(),
        ]
    };
    let lines: Vec<Vec<String>> = choices.iter().map(line).collect();
    format!("Tuned on the clients' hold-outs:\n\n{}", text_table(2, &heads, &lines))
}

/// The same as sentences, for a page.
pub fn tuning_notes(choices: &[Choice], metric: Metric, seeds: usize) -> Vec<String> {
    let note = |choice: &Choice| {
        format!(
            "{}: {}, the best of {} candidates by {} on the clients' hold-outs ({}, mean over {seeds} tuning seeds; {} runs, \
             {} rounds).",
            choice.strategy,
            chosen(choice),
            choice.candidates,
            metric.name(),
            metric.shown(choice.validation),
            choice.runs,
            choice.rounds
        )
    };
    let all = "Each strategy was tuned on the clients' hold-outs; the test set was read by these runs only, with other seeds.";
    std::iter::once(all.to_owned()).chain(choices.iter().map(note)).collect()
}

/// The chosen values: those of other keys, and the strategy's parameters if its label has them.
fn chosen(choice: &Choice) -> String {
    let label = (choice.label != choice.strategy).then(|| choice.label.clone());
    let words: Vec<String> = label.into_iter().chain(choice.setting.iter().cloned()).collect();
    if words.is_empty() { "—".to_owned() } else { words.join(", ") }
}
