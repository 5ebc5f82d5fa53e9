//! The verdict on a setting in one sentence: which differences to the baseline are significant.

use crate::report::heading::seed_count;
use crate::stats::difference::MIN_SEEDS;
use crate::stats::row::{Row, StrategySummary};

/// How a strategy compares with the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersusBaseline {
    /// Significantly better.
    Better,
    /// Significantly worse.
    Worse,
    /// No significant difference.
    NotSignificant,
    /// Fewer shared seeds than a verdict needs.
    TooFewSeeds,
    /// Some of its seeds collapsed, so that its mean says little.
    Collapsed,
}

/// What intervals and tests assume.
const ASSUMPTION: &str = "assuming that differences between seeds are about normal";

impl Row {
    /// The comparison with the baseline by the interval that the tables show; `None` for the baseline itself.
    pub fn versus_baseline(&self) -> Option<VersusBaseline> {
        let StrategySummary { simultaneous_low, simultaneous_high, .. } = self.line;
        self.pairs?;
        if self.line.collapsed > 0 {
            return Some(VersusBaseline::Collapsed);
        }
        Some(match simultaneous_low.zip(simultaneous_high) {
            None => VersusBaseline::TooFewSeeds,
            Some((low, _)) if low > 0.0 => VersusBaseline::Better,
            Some((_, high)) if high < 0.0 => VersusBaseline::Worse,
            Some(_) => VersusBaseline::NotSignificant,
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
        let Some(mean) = baseline.line.mean else {
            return format!(
                "{name} has no shared model that could be evaluated; there is no other strategy to compare it with."
            );
        };
        let accuracy = 100.0 * mean;
        let seeds = seed_count(baseline.seeds.len());
        let collapsed = match baseline.line.collapsed {
            0 => String::new(),
            _ => format!("; {}", collapses(baseline)),
        };
        return format!(
            "{name} reaches {accuracy:.1} % accuracy ({seeds}){collapsed}; there is no other strategy to compare it with."
        );
    }
    match seeds {
        0 => return format!("No other strategy shares a seed with {name}, so nothing can be compared."),
        1 => return format!("One seed is not enough to compare strategies{}.", all_collapses(rows)),
        few if few < MIN_SEEDS => {
            let all = all_collapses(rows);
            return format!(
                "Two seeds are not enough to compare strategies with {name}; a verdict needs three{all}."
            );
        }
        _ => {}
    }
    let of = |outcome: VersusBaseline| -> Vec<&Row> {
        let mut found: Vec<&Row> = rows.iter().filter(|row| row.versus_baseline() == Some(outcome)).collect();
        found.sort_by(|a, b| {
            b.line.difference.unwrap_or(0.0).abs().total_cmp(&a.line.difference.unwrap_or(0.0).abs())
        });
        found
    };
    let (better, worse, similar) =
        (of(VersusBaseline::Better), of(VersusBaseline::Worse), of(VersusBaseline::NotSignificant));
    let least = rows.iter().filter_map(|row| row.pairs).min().unwrap_or(seeds);
    let seeds = if least == seeds { seed_count(seeds) } else { format!("{least} to {}", seed_count(seeds)) };
    let mut parts = Vec::new();
    if !better.is_empty() {
        parts.push(format!("{} {} {name}", with_points(&better), are(&better, "significantly better than")));
    }
    if !worse.is_empty() {
        let than = if better.is_empty() { format!(" than {name}") } else { String::new() };
        let than = format!("significantly worse{than}");
        parts.push(format!("{} {}", with_points(&worse), are(&worse, &than)));
    }
    if !similar.is_empty() {
        let names: Vec<String> = similar.iter().map(|row| row.line.strategy.clone()).collect();
        let names = match names.len() {
            many if many > 4 && many == others => format!("any of the {many} others"),
            many if many > 4 => format!("{many} others"),
            _ => listed(&names, "or"),
        };
        parts.push(format!("no significant difference between {name} and {names}"));
    }
    let few = of(VersusBaseline::TooFewSeeds);
    if !few.is_empty() {
        let names: Vec<String> = few.iter().map(|row| row.line.strategy.clone()).collect();
        parts.push(format!("too few seeds to compare {}", listed(&names, "and")));
    }
    parts.extend(rows.iter().filter(|row| row.line.collapsed > 0).map(collapses));
    let assumption = match better.is_empty() && worse.is_empty() && similar.is_empty() {
        true => String::new(),
        false => format!(", {ASSUMPTION}"),
    };
    format!("{} ({seeds}{assumption}).", capital(&parts.join("; ")))
}

/// "a collapsed in 2 of 5 seeds".
fn collapses(row: &Row) -> String {
    let baseline = if row.pairs.is_none() { ", the baseline," } else { "" };
    let seeds = seed_count(row.seeds.len());
    format!("{}{baseline} collapsed in {} of {seeds}", row.line.strategy, row.line.collapsed)
}

/// "; a collapsed in 2 of 5 seeds; b collapsed in 1 of 5 seeds", or nothing.
fn all_collapses(rows: &[Row]) -> String {
    let collapsed = rows.iter().filter(|row| row.line.collapsed > 0);
    collapsed.map(|row| format!("; {}", collapses(row))).collect()
}

/// "a (+1.2 points) and b (+0.4)"; beyond four, the rest are counted.
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

/// One sentence on several settings: in how many of them each strategy is better or worse than the baseline.
pub fn verdict_over_settings(settings: &[&[Row]], labels: &[String]) -> String {
    let first =
        |rows: &&[Row]| rows.iter().find(|row| row.pairs.is_none()).map(|row| row.line.strategy.clone());
    let mut baselines: Vec<String> = settings.iter().filter_map(first).collect();
    baselines.dedup();
    let [baseline] = baselines.as_slice() else {
        return format!("The {} settings have no common baseline; see the verdict of each.", settings.len());
    };
    let count = |label: &str, outcome: VersusBaseline| {
        let own = |rows: &&[Row]| {
            rows.iter().any(|row| row.line.strategy == label && row.versus_baseline() == Some(outcome))
        };
        settings.iter().filter(|rows| own(rows)).count()
    };
    // Strategies with the same counts share a clause.
    let mut alike: Vec<([usize; 5], Vec<String>)> = Vec::new();
    for label in labels.iter().filter(|label| *label != baseline) {
        let counts = [
            VersusBaseline::Better,
            VersusBaseline::Worse,
            VersusBaseline::NotSignificant,
            VersusBaseline::TooFewSeeds,
            VersusBaseline::Collapsed,
        ];
        let counts = counts.map(|outcome| count(label, outcome));
        match alike.iter_mut().find(|(own, _)| *own == counts) {
            Some((_, names)) => names.push(label.clone()),
            None => alike.push((counts, vec![label.clone()])),
        }
    }
    let word = |(counts, names): &([usize; 5], Vec<String>)| {
        let words = [
            "significantly better in",
            "significantly worse in",
            "not significantly different in",
            "with too few seeds in",
            "collapsed in",
        ];
        let found = counts.iter().zip(words).filter(|(times, _)| **times > 0);
        let found: Vec<String> = found.map(|(times, word)| format!("{word} {times}")).collect();
        (!found.is_empty()).then(|| format!("{} {}", listed(names, "and"), listed(&found, "and")))
    };
    let words: Vec<String> = alike.iter().filter_map(word).collect();
    match words.is_empty() {
        true => format!("{} settings with {baseline} only.", settings.len()),
        false => {
            let own = |rows: &&&[Row]| rows.iter().any(|row| row.pairs.is_none() && row.line.collapsed > 0);
            let collapsed = match settings.iter().filter(own).count() {
                0 => String::new(),
                some => format!("; {baseline} itself collapsed in {some}"),
            };
            let judged = |counts: &[usize; 5]| counts[..3].iter().sum::<usize>() > 0;
            let assumption = match alike.iter().any(|(counts, _)| judged(counts)) {
                true => format!(" ({ASSUMPTION})"),
                false => String::new(),
            };
            format!(
                "Compared with {baseline} in {} settings: {}{collapsed}{assumption}.",
                settings.len(),
                words.join("; ")
            )
        }
    }
}

fn capital(sentence: &str) -> String {
    // A strategy's label keeps its spelling, also at the start of a sentence.
    for (word, capital) in [("no ", "No "), ("too ", "Too ")] {
        if let Some(rest) = sentence.strip_prefix(word) {
            return format!("{capital}{rest}");
        }
    }
    sentence.to_owned()
}
