//! Sentences about classes that a model never predicts correctly, which a high accuracy hides.

use crate::report::heading::seed_count;
use crate::runs::record::Record;
use crate::runs::setting::Strategy;
use crate::stats::statistics::mean;
use crate::stats::verdict::listed;
use fedtvd_core::round::MissedClass;
use std::collections::BTreeMap;

/// Follows the balanced accuracy of a strategy with such classes, and precedes the note about them.
pub(crate) const MISSED: &str = "‡";

/// Classes named in a sentence; the others are counted.
const NAMED: usize = 4;

/// "class 2 (5.0 % of the test samples) is never predicted correctly": the subject and the verb.
pub fn missed(classes: &[MissedClass], names: Option<&[String]>) -> String {
    let mut of = " of the test samples";
    let word = |missed: &MissedClass| {
        let number = missed.class.to_string();
        let name = names.and_then(|names| names.get(missed.class)).filter(|name| **name != number);
        let name = name.map_or(number, |name| format!("\"{name}\""));
        format!("{name} ({:.1} %{})", 100.0 * missed.share, std::mem::take(&mut of))
    };
    let mut words: Vec<String> = classes.iter().take(NAMED).map(word).collect();
    match classes.len().saturating_sub(NAMED) {
        0 => {}
        more => words.push(format!("{more} more")),
    }
    let (classes, are) = if classes.len() == 1 { ("class", "is") } else { ("classes", "are") };
    format!("{classes} {} {are} never predicted correctly", listed(&words, "and"))
}

/// "accuracy 88.0 %, balanced accuracy 62.0 %".
pub fn both_accuracies(accuracy: f64, balanced: Option<f64>) -> String {
    let balanced =
        balanced.map_or(String::new(), |balanced| format!(", balanced accuracy {:.1} %", 100.0 * balanced));
    format!("accuracy {:.1} %{balanced}", 100.0 * accuracy)
}

/// A note for each strategy and each group of classes that it misses in the same number of seeds, in all of the last rounds.
pub(crate) fn missed_by(strategies: &[Strategy]) -> Vec<String> {
    strategies.iter().flat_map(notes).collect()
}

fn notes(Strategy { label, records }: &Strategy) -> Vec<String> {
    let mut seeds: BTreeMap<usize, (usize, f64)> = BTreeMap::new();
    for missed in records.iter().flat_map(|run| run.missed_classes.iter().flatten()) {
        let (count, share) = seeds.entry(missed.class).or_default();
        *count += 1;
        *share += (missed.share - *share) / *count as f64;
    }
    let mut groups: BTreeMap<usize, Vec<MissedClass>> = BTreeMap::new();
    for (class, (count, share)) in seeds {
        groups.entry(count).or_default().push(MissedClass { class, share });
    }
    let names = records.first().and_then(|run| run.class_names.as_deref());
    let finals: Vec<f64> = records.iter().filter_map(Record::final_accuracy).collect();
    let balanced: Option<Vec<f64>> = records.iter().map(|run| run.balanced_accuracy).collect();
    let accuracies = both_accuracies(mean(&finals), balanced.as_deref().map(mean));
    let note = |(count, classes): (usize, Vec<MissedClass>)| {
        let seeds = match count == records.len() {
            true => String::new(),
            false => format!(" in {count} of {}", seed_count(records.len())),
        };
        format!("{MISSED} {} by {label}{seeds}: {accuracies}", missed(&classes, names))
    };
    groups.into_iter().rev().map(note).collect()
}
