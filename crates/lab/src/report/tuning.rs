//! What tuning chose for each strategy, and how much of it each got.

use crate::experiments::tuning::search::Choice;
use crate::report::text_table::text_table;
use fedtvd_run::configuration::{Axis, Metric};

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

/// A note for each chosen value that is the least or the greatest of its list: a better one may lie beyond.
pub fn edge_notes(choices: &[Choice], grid: &[Axis]) -> Vec<String> {
    let mut notes = Vec::new();
    for axis in grid {
        let numbers: Option<Vec<f64>> = axis
            .choices
            .iter()
            .map(|choice| match choice.as_slice() {
                [(_, value)] => value.number(),
                _ => None,
            })
            .collect();
        let Some(numbers) = numbers.filter(|numbers| numbers.len() > 1) else { continue };
        let (least, most) =
            numbers.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(*x), b.max(*x)));
        for choice in choices {
            let words =
                choice.setting.iter().filter_map(|word| word.strip_prefix(&format!("{} = ", axis.path)));
            for value in words.filter_map(|word| word.parse::<f64>().ok()) {
                let end = if value == least { "least" } else { "greatest" };
                if value == least || value == most {
                    notes.push(format!(
                        "{}: {} = {value} is the {end} value of the grid; a better one may lie beyond it.",
                        choice.strategy, axis.path
                    ));
                }
            }
        }
    }
    notes
}

/// The chosen values: those of other keys, and the strategy's parameters if its label has them.
fn chosen(choice: &Choice) -> String {
    let label = (choice.label != choice.strategy).then(|| choice.label.clone());
    let words: Vec<String> = label.into_iter().chain(choice.setting.iter().cloned()).collect();
    if words.is_empty() { "—".to_owned() } else { words.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedtvd_run::configuration::Config;

    fn choice(setting: &str) -> Choice {
        Choice {
            strategy: "fedprox".to_owned(),
            label: "fedprox:mu=0.1".to_owned(),
            setting: vec![setting.to_owned()],
            validation: 0.7131,
            candidates: 8,
            collapsed: 1,
            runs: 16,
            rounds: 800,
            tried: Vec::new(),
            config: Config::default(),
        }
    }

    #[test]
    fn a_chosen_value_at_the_edge_of_its_list_is_noted() {
        let grid = [Axis::of("local.lr=0.01,0.1,0.003").unwrap()];
        let note =
            "fedprox: local.lr = 0.1 is the greatest value of the grid; a better one may lie beyond it.";
        assert_eq!(edge_notes(&[choice("local.lr = 0.1")], &grid), [note]);
        assert_eq!(edge_notes(&[choice("local.lr = 0.01")], &grid), Vec::<String>::new());
    }

    #[test]
    fn the_table_says_how_much_tuning_a_strategy_got() {
        let table = tuning_table(&[choice("local.lr = 0.1")], Metric::Accuracy);
        let row =
            "| fedprox  | fedprox:mu=0.1, local.lr = 0.1 |  71.31 % | 8 (1 collapsed) |   16 |    800 |";
        assert!(table.contains(row), "{table}");
    }
}
