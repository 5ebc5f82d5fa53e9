//! The commands that reproduce a setting's runs, without directories and worker counts.

use crate::runs::setting::Setting;
use fedtvd_run::configuration::{Config, Value, no_effect};

/// One command for each `strategy.mode`.
pub fn commands(setting: &Setting) -> Vec<String> {
    let mut modes: Vec<(String, Vec<&str>)> = Vec::new();
    for strategy in &setting.strategies {
        let Some(record) = strategy.records.first() else { continue };
        let mode = record.mode();
        let label = record.manifest.strategy.as_str();
        match modes.iter_mut().find(|(own, _)| *own == mode) {
            Some((_, labels)) => labels.push(label),
            None => modes.push((mode, vec![label])),
        }
    }
    modes.iter().map(|(mode, labels)| command(setting, mode, labels)).collect()
}

fn command(setting: &Setting, mode: &str, labels: &[&str]) -> String {
    let plain = Config::default();
    let config = setting.strategies.iter().find_map(|strategy| Some(&strategy.records.first()?.config));
    // A comparison refuses keys without effect, such as those of a federation only.
    let has_effect = |path: &str| config.is_none_or(|config| no_effect(config, path).is_none());
    let changed = |(path, value): &&(&'static str, Value)| plain.get(path) != *value && has_effect(path);
    let mut changes: Vec<String> = setting
        .values
        .iter()
        .filter(changed)
        .map(|(path, value)| format!("{path}={}", bare(value)))
        .collect();
    let (first, seeds) = seeds(&setting.seeds());
    changes.extend(first.map(|first| format!("seed={first}")));
    let records = || setting.strategies.iter().flat_map(|strategy| &strategy.records);
    if records().any(|record| record.classes.is_some()) {
        changes.push("evaluation.details=true".to_owned());
    }
    if mode != "paper" {
        changes.push(format!("strategy.mode={mode}"));
    }
    let changes: String = changes.iter().map(|change| format!(" --set {}", shell_quoted(change))).collect();
    format!("fedtvd compare --strategies {} --seeds {seeds}{changes}", shell_quoted(&labels.join(",")))
}

/// Seeds as `--seeds` takes them, and the first seed if it is not the default.
fn seeds(seeds: &[u64]) -> (Option<u64>, String) {
    match seeds {
        [first, ..] if seeds.windows(2).all(|pair| pair[1] == pair[0] + 1) => {
            ((*first != 1).then_some(*first), seeds.len().to_string())
        }
        _ => (None, seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(",")),
    }
}

fn bare(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A word quoted for a shell.
pub fn shell_quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=+:,%@".contains(letter);
    let bare = !word.is_empty() && word.chars().all(plain);
    if bare { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_in_a_row_are_counted_and_others_listed() {
        assert_eq!(seeds(&[1, 2, 3]), (None, "3".to_owned()));
        assert_eq!(seeds(&[7, 8]), (Some(7), "2".to_owned()));
        assert_eq!(seeds(&[7]), (Some(7), "1".to_owned()));
        assert_eq!(seeds(&[3, 7]), (None, "3,7".to_owned()));
    }

    #[test]
    fn what_a_shell_would_split_is_quoted() {
        assert_eq!(shell_quoted("fedtvd:lambda=0.5+balanced"), "fedtvd:lambda=0.5+balanced");
        assert_eq!(shell_quoted("model.layers=[\"it's\"]"), "'model.layers=[\"it'\\''s\"]'");
    }
}
