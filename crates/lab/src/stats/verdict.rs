//! What a setting's numbers say in one sentence, and what they do not say.

use crate::stats::summary::{LEAST_FOR_A_TEST, Row, StrategySummary};

/// How a strategy stands to the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersusBaseline {
    /// Above it, beyond what chance does.
    Better,
    /// Below it, beyond what chance does.
    Worse,
    /// Neither can be told.
    Open,
}

/// The level at which a difference counts.
const LEVEL: f64 = 0.05;

impl Row {
    /// How the strategy stands to the baseline by Holm's p, however few seeds they share; `None` for the baseline
    /// itself.
    pub fn standing(&self) -> Option<VersusBaseline> {
        let StrategySummary { difference, .. } = self.line;
        self.pairs?;
        let told = self.chance.is_some_and(|p| p < LEVEL);
        Some(match difference {
            Some(difference) if told && difference > 0.0 => VersusBaseline::Better,
            Some(difference) if told && difference < 0.0 => VersusBaseline::Worse,
            _ => VersusBaseline::Open,
        })
    }
}

/// One sentence on a setting.
pub fn verdict(rows: &[Row]) -> String {
    let Some(baseline) = rows.iter().find(|row| row.pairs.is_none()) else { return String::new() };
    let name = &baseline.line.strategy;
    let seeds = rows.iter().filter_map(|row| row.pairs).max().unwrap_or(baseline.seeds.len());
    let others = rows.len() - 1;
    if others == 0 {
        let accuracy = 100.0 * baseline.line.mean;
        let (count, end) = (baseline.seeds.len(), if baseline.seeds.len() == 1 { "" } else { "s" });
        return format!(
            "{name} comes to {accuracy:.1} % over {count} seed{end}; there is nothing to compare it with."
        );
    }
    match seeds {
        0 => return format!("No strategy shares a seed with {name}, so that nothing can be compared."),
        1 => return "One seed tells no strategies apart.".to_owned(),
        _ => {}
    }
    let of = |standing: VersusBaseline| -> Vec<&Row> {
        let mut found: Vec<&Row> = rows.iter().filter(|row| row.standing() == Some(standing)).collect();
        found.sort_by(|a, b| {
            b.line.difference.unwrap_or(0.0).abs().total_cmp(&a.line.difference.unwrap_or(0.0).abs())
        });
        found
    };
    let (better, worse, open) =
        (of(VersusBaseline::Better), of(VersusBaseline::Worse), of(VersusBaseline::Open));
    let least = rows.iter().filter_map(|row| row.pairs).min().unwrap_or(seeds);
    let count = if least == seeds { seeds.to_string() } else { format!("{least} to {seeds}") };
    let few = least < LEAST_FOR_A_TEST;
    let at = if few { format!("at only {count} seeds") } else { format!("at {count} seeds") };
    let mut parts = Vec::new();
    if !better.is_empty() {
        parts.push(format!("{} {} {name}", with_points(&better), are(&better, "better than")));
    }
    if !worse.is_empty() {
        let than = if better.is_empty() { format!("worse than {name}") } else { "worse".to_owned() };
        parts.push(format!("{} {}", with_points(&worse), are(&worse, &than)));
    }
    if !open.is_empty() {
        let names: Vec<String> = open.iter().map(|row| row.line.strategy.clone()).collect();
        let names = match names.len() {
            many if many > 4 && many == others => format!("any of the {many} others"),
            many if many > 4 => format!("{many} others"),
            _ => listed(&names, "or"),
        };
        parts.push(format!("no difference between {name} and {names} can be told {at}"));
    }
    let told = !better.is_empty() || !worse.is_empty();
    // Student's t takes a handful of seeds at its word that they are normal; a reader should be warned.
    let warning = if told && few && open.is_empty() { format!(" {at}") } else { String::new() };
    capital(&parts.join("; ")) + &warning + "."
}

/// "a (+1.2 points) and b (+0.4)", the rest by number.
fn with_points(rows: &[&Row]) -> String {
    const NAMED: usize = 3;
    let mut unit = " points";
    let word = |row: &&Row| {
        let points = 100.0 * row.line.difference.unwrap_or(0.0);
        format!("{} ({points:+.1}{})", row.line.strategy, std::mem::take(&mut unit))
    };
    let mut words: Vec<String> = rows.iter().take(NAMED).map(word).collect();
    match rows.len().saturating_sub(NAMED) {
        0 => {}
        1 => words.push(format!(
            "{} ({:+.1})",
            rows[NAMED].line.strategy,
            100.0 * rows[NAMED].line.difference.unwrap_or(0.0)
        )),
        more => words.push(format!("{more} others")),
    }
    listed(&words, "and")
}

fn are(rows: &[&Row], what: &str) -> String {
    format!("{} {what}", if rows.len() == 1 { "is" } else { "are" })
}

/// "a", "a and b", "a, b and c".
pub(crate) fn listed(words: &[String], last: &str) -> String {
    match words {
        [] => String::new(),
        [only] => only.clone(),
        [front @ .., end] => format!("{} {last} {end}", front.join(", ")),
    }
}

/// One sentence on several settings: how each strategy stands to the baseline in how many of them.
pub fn verdict_over_settings(settings: &[&[Row]], labels: &[String]) -> String {
    let first =
        |rows: &&[Row]| rows.iter().find(|row| row.pairs.is_none()).map(|row| row.line.strategy.clone());
    let mut baselines: Vec<String> = settings.iter().filter_map(first).collect();
    baselines.dedup();
    let [baseline] = baselines.as_slice() else {
        return format!("{} settings without a common baseline: each has its own verdict.", settings.len());
    };
    let count = |label: &str, standing: VersusBaseline| {
        let own = |rows: &&[Row]| {
            rows.iter().any(|row| row.line.strategy == label && row.standing() == Some(standing))
        };
        settings.iter().filter(|rows| own(rows)).count()
    };
    // Strategies that stand alike are named together.
    let mut alike: Vec<([usize; 3], Vec<String>)> = Vec::new();
    for label in labels.iter().filter(|label| *label != baseline) {
        let counts = [VersusBaseline::Better, VersusBaseline::Worse, VersusBaseline::Open]
            .map(|standing| count(label, standing));
        match alike.iter_mut().find(|(own, _)| *own == counts) {
            Some((_, names)) => names.push(label.clone()),
            None => alike.push((counts, vec![label.clone()])),
        }
    }
    let word = |(counts, names): &([usize; 3], Vec<String>)| {
        let told =
            counts.iter().zip(["better in", "worse in", "undecided in"]).filter(|(times, _)| **times > 0);
        let told: Vec<String> = told.map(|(times, word)| format!("{word} {times}")).collect();
        (!told.is_empty()).then(|| format!("{} {}", listed(names, "and"), listed(&told, "and")))
    };
    let words: Vec<String> = alike.iter().filter_map(word).collect();
    match words.is_empty() {
        true => format!("{} settings of {baseline} alone.", settings.len()),
        false => format!("Against {baseline} in {} settings: {}.", settings.len(), words.join("; ")),
    }
}

fn capital(sentence: &str) -> String {
    // A label keeps its spelling; only our own words begin with a capital.
    match sentence.strip_prefix("no ") {
        Some(rest) => format!("No {rest}"),
        None => sentence.to_owned(),
    }
}
