//! A setting: all runs whose configurations differ only in strategy and seed.

use crate::runs::caveats::{all_seeds, fewer_seeds, odd_splits, stopped_early};
use crate::runs::record::Record;
use fedtvd_core::rules::notation;
use fedtvd_core::settings::ParamKind;
use fedtvd_core::strategy;
use fedtvd_run::configuration::{Config, Key, Value, keys, overruled};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// Runs that can be compared with each other.
#[derive(Debug)]
pub struct Setting {
    /// The keys and values in which it differs from the report's other settings; empty if it is the only one.
    pub title: String,
    /// Every key that is the same in all of its runs, with its value as TOML.
    pub values: Values,
    /// The strategies, in the order of the registry.
    pub strategies: Vec<Strategy>,
    /// Notes for the reader about these runs.
    pub notes: Vec<String>,
    /// Whether all runs of a seed have the same split of the same data.
    pub paired: bool,
}

/// One strategy with all seeds.
#[derive(Debug)]
pub struct Strategy {
    /// Its label.
    pub label: String,
    /// Its runs, by seed.
    pub records: Vec<Record>,
}

/// Keys in the order of the table of keys, with their values.
pub type Values = Vec<(&'static str, Value)>;

impl Setting {
    /// All seeds that any strategy has.
    pub fn seeds(&self) -> Vec<u64> {
        all_seeds(&self.strategies)
    }

    /// The value of a key.
    pub fn value(&self, path: &str) -> Option<&Value> {
        self.values.iter().find(|(own, _)| *own == path).map(|(_, value)| value)
    }

    /// The strategy with this label.
    pub fn strategy(&self, label: &str) -> Option<&Strategy> {
        self.strategies.iter().find(|strategy| strategy.label == label)
    }
}

/// Groups runs into settings; the order of the runs does not matter.
pub(crate) fn settings(records: Vec<Record>) -> Vec<Setting> {
    // If modes differ, they become part of the labels.
    let modes: BTreeSet<String> = records.iter().map(Record::mode).collect();
    let mut groups: Vec<(Values, Vec<Record>)> = Vec::new();
    for record in records {
        let values = values(&record.config);
        match groups.iter_mut().find(|(own, _)| *own == values) {
            Some((_, group)) => group.push(record),
            None => groups.push((values, vec![record])),
        }
    }
    groups.sort_by(|(one, _), (other, _)| order(one, other));
    let all: Vec<Values> = groups.iter().map(|(values, _)| values.clone()).collect();
    let setting = |(values, records): (Values, Vec<Record>)| {
        let (strategies, mut notes) = strategies(records, modes.len() > 1);
        let odd = odd_splits(&strategies);
        let paired = odd.is_empty();
        notes.extend(odd.into_iter().chain(fewer_seeds(&strategies)).chain(stopped_early(&strategies)));
        Setting { title: title(&values, &all), values, strategies, notes, paired }
    };
    groups.into_iter().map(setting).collect()
}

/// All keys that influence a run, except strategy and seed.
fn values(config: &Config) -> Values {
    let set = config.paths();
    let shared = |path: &str, kind: &ParamKind| match kind {
        // A seed that is set explicitly is part of the setting; one derived from `seed` is not.
        ParamKind::Seed => set.iter().any(|own| own == path),
        _ => !matches!(path, "name" | "seed" | "evaluation.details") && !path.starts_with("strategy."),
    };
    let keys = keys::ALL
        .iter()
        .filter(|key| shared(key.path(), &key.param.kind) && overruled(config, key.path()).is_none());
    keys.map(|key| (key.path(), config.get(key.path()))).collect()
}

/// Orders settings by the first key in which they differ: numbers by value, everything else as text.
fn order(one: &Values, other: &Values) -> Ordering {
    let by_path = |values: &Values| -> BTreeMap<&'static str, Value> { values.iter().cloned().collect() };
    let (one, other) = (by_path(one), by_path(other));
    let mut orders = keys::ALL.iter().map(|key| match (one.get(key.path()), other.get(key.path())) {
        (Some(a), Some(b)) => order_of_values(a, b),
        (a, b) => b.is_some().cmp(&a.is_some()),
    });
    orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

fn order_of_values(one: &Value, other: &Value) -> Ordering {
    match (one.number(), other.number()) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        _ => one.to_string().cmp(&other.to_string()),
    }
}

/// The keys in which settings differ, with the values of this one.
fn title(own: &Values, all: &[Values]) -> String {
    let find = |values: &Values, path: &str| values.iter().find(|(p, _)| *p == path).map(|(_, v)| v.clone());
    let differs = |key: &&Key| {
        let here = find(own, key.path());
        all.iter().map(|values| find(values, key.path())).any(|there| match key.param.kind {
            ParamKind::Seed => there != here,
            // A key that the other setting lacks is implied by its kind of split or attack.
            _ => matches!((there, &here), (Some(there), Some(here)) if there != *here),
        })
    };
    let word = |key: &Key| match find(own, key.path()) {
        Some(value) => format!("{} = {}", key.path(), value.bare()),
        None => format!("{} follows seed", key.path()),
    };
    keys::ALL.iter().filter(differs).map(word).collect::<Vec<_>>().join(", ")
}

/// A value without quotation marks.
pub fn shown(value: &Value) -> String {
    value.bare()
}

/// A setting's runs by strategy and seed, without duplicates, and notes about them.
fn strategies(mut records: Vec<Record>, with_mode: bool) -> (Vec<Strategy>, Vec<String>) {
    // Of duplicates, a run with details comes first; the rest of the order only has to be deterministic.
    let label = |run: &Record| match run.mode() {
        mode if with_mode && mode != "paper" => format!("{} ({mode})", run.manifest.strategy),
        _ => run.manifest.strategy.clone(),
    };
    records.sort_by_cached_key(|run| {
        let seed = run.summary.seed;
        (
            place(&label(run)),
            seed,
            run.classes.is_none(),
            run.model_hash.clone(),
            run.manifest.version.clone(),
        )
    });
    let mut notes = Vec::new();
    let mut strategies: Vec<Strategy> = Vec::new();
    for record in records {
        let (label, seed) = (label(&record), record.summary.seed);
        match strategies.last_mut().filter(|strategy| strategy.label == label) {
            None => strategies.push(Strategy { label, records: vec![record] }),
            Some(strategy) => match strategy.records.last().filter(|last| last.summary.seed == seed) {
                None => strategy.records.push(record),
                Some(last) if last.accuracy == record.accuracy => {}
                Some(_) => notes.push(format!(
                    "{label} with seed {seed} was run twice with different results; only one of them is used."
                )),
            },
        }
    }
    (strategies, notes)
}

/// The sort key of a label: the positions of its methods in the registry, then the text.
pub(crate) fn place(label: &str) -> (Vec<usize>, String) {
    let plain = label.split(" (").next().unwrap_or(label);
    let all = strategy::all();
    let place = |word: &str| {
        let name = word.split(':').next().unwrap_or(word);
        let spec = notation::find(name).ok();
        spec.and_then(|spec| all.iter().position(|other| other.name == spec.name)).unwrap_or(all.len())
    };
    (plain.split('+').map(place).collect(), label.to_owned())
}
