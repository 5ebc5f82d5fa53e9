//! A configuration: TOML, then `--set`, checked key by key against [`crate::configuration::keys`].

use crate::configuration::axes::TABLES;
use crate::configuration::keys;
use crate::configuration::lookup;
use crate::configuration::value;
use crate::configuration::{Key, Value};
use fedtvd_core::rules::notation;
use fedtvd_core::settings::{ParamError, ParamKind};
use std::collections::BTreeMap;
use thiserror::Error;
use toml::de::{DeTable, DeValue};

/// What a user set; all other keys have their defaults.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    pub(crate) set: BTreeMap<&'static str, Value>,
    pub(crate) params: BTreeMap<String, Value>,
}

/// Why a configuration is not accepted.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ConfigError {
    /// Invalid TOML.
    #[error("{0}")]
    Syntax(String),
    /// A key that does not exist.
    #[error("{place}there is no key {path}; did you mean {nearest}?")]
    Unknown {
        /// The line in the file; empty outside of files.
        place: String,
        /// What the user wrote.
        path: String,
        /// The nearest key.
        nearest: String,
    },
    /// A table that does not exist.
    #[error("{place}there is no table [{table}]; the tables are {}", tables().join(", "))]
    UnknownTable {
        /// The line in the file.
        place: String,
        /// What the user wrote.
        table: String,
    },
    /// A name without a table that exists in several tables.
    #[error("{name} could be {first} or {second}; write it with its table")]
    Ambiguous {
        /// What the user wrote.
        name: String,
        /// One of the keys.
        first: String,
        /// Another one.
        second: String,
    },
    /// A value that the key does not allow.
    #[error("{place}{why}")]
    Value {
        /// The line in the file; empty outside of files.
        place: String,
        /// The key, the value, and what is allowed.
        why: ParamError,
    },
    /// A setting that is not key=value.
    #[error("--set {0} sets nothing; write key=value, such as split.alpha=0.5")]
    NoSetting(String),
}

impl Config {
    /// Reads TOML text.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let mut config = Self::default();
        config.read(text, "", value::table(text)?.get_ref())?;
        Ok(config)
    }

    fn read(&mut self, text: &str, prefix: &str, table: &DeTable<'_>) -> Result<(), ConfigError> {
        for (name, value) in table {
            let path = format!("{prefix}{}", name.get_ref());
            let place = format!("line {}: ", line_of(text, name.span().start));
            match value.get_ref() {
                // Only `sweep` and `tune` read these tables.
                DeValue::Table(_) if TABLES.contains(&path.as_str()) => {}
                DeValue::Table(inner)
                    if inner.is_empty()
                        && !path.starts_with("strategy.")
                        && !tables().contains(&path.as_str()) =>
                {
                    return Err(ConfigError::UnknownTable { place, table: path });
                }
                DeValue::Table(inner) => self.read(text, &format!("{path}."), inner)?,
                other => {
                    let expected = "text, a number, true, false or a list";
                    let wrong = || value::refusal(&path, other, expected);
                    let value = value::parsed(other).ok_or_else(wrong);
                    let value = value.map_err(|why| ConfigError::Value { place: place.clone(), why })?;
                    self.put(&place, &path, value)?;
                }
            }
        }
        Ok(())
    }

    /// Sets one key from `key=value`; the table may be left out if the name is unique.
    pub fn set(&mut self, setting: &str) -> Result<(), ConfigError> {
        let (path, text) =
            setting.split_once('=').ok_or_else(|| ConfigError::NoSetting(setting.to_owned()))?;
        let (path, text) = (lookup::full_path(path.trim())?, text.trim());
        // The word nan would be a number in TOML.
        let value = if is_choice(&path, text) { Value::Text(text.to_owned()) } else { value::typed(text) };
        self.put("", &path, value)
    }

    /// Sets one key to a value from line `line` of a file; 0 outside of files.
    pub fn choose(&mut self, line: usize, path: &str, value: Value) -> Result<(), ConfigError> {
        let place = if line == 0 { String::new() } else { format!("line {line}: ") };
        self.put(&place, &lookup::full_path(path)?, value)
    }

    fn put(&mut self, place: &str, path: &str, value: Value) -> Result<(), ConfigError> {
        if let Some(key) = keys::find(path) {
            let wrong = |why| ConfigError::Value { place: place.to_owned(), why };
            self.set.insert(key.path(), key.param.check(value).map_err(wrong)?);
        } else if let Some(param) = path.strip_prefix("strategy.") {
            // The strategy's parameters are checked once its name is known.
            self.params.insert(param.to_owned(), value);
        } else {
            return Err(lookup::unknown(place, path));
        }
        Ok(())
    }

    /// The value of a key.
    pub fn get(&self, path: &'static str) -> Value {
        self.value(keys::find(path).expect("only keys of the table are asked for"))
    }

    pub(crate) fn value(&self, key: &Key) -> Value {
        let set = self.set.get(key.path()).cloned();
        set.or_else(|| key.param.default()).unwrap_or_else(|| self.get("seed"))
    }

    /// Paths of the keys that were set.
    pub fn paths(&self) -> Vec<String> {
        let params = self.params.keys().map(|name| format!("strategy.{name}"));
        self.set.keys().map(|path| (*path).to_owned()).chain(params).collect()
    }

    /// All settings, as `key=value`.
    pub fn changes(&self) -> Vec<String> {
        let keys = self.set.iter().map(|(path, value)| format!("{path}={}", value.bare()));
        keys.chain(self.params.iter().map(|(name, value)| format!("strategy.{name}={}", value.bare())))
            .collect()
    }

    /// The strategy's parameters as (name, value) pairs.
    pub fn params(&self) -> Vec<(String, String)> {
        self.params.iter().map(|(name, value)| (name.clone(), value.bare())).collect()
    }

    /// Replaces the strategy and drops the old one's parameters.
    pub fn with_strategy(&self, name: &str) -> Self {
        let mut config = self.clone();
        config.set.insert("strategy.name", Value::Text(name.to_owned()));
        config.params.clear();
        config
    }

    /// Replaces the strategy and keeps the parameters that the new one takes and does not set in its name.
    pub fn with_strategy_beside(&self, name: &str) -> Self {
        let takes = |param: &str, value: &Value| {
            let bare = param.rsplit_once('.').map_or(param, |(_, bare)| bare);
            let alone = notation::strategy(name, [(param, value.bare().as_str())]);
            !name.contains(&format!(":{bare}="))
                && !matches!(alone, Err(notation::NotationError::NoSuchParam { .. }))
        };
        let mut config = self.with_strategy(name);
        let taken = self.params.iter().filter(|(param, value)| takes(param, value));
        config.params = taken.map(|(param, value)| (param.clone(), value.clone())).collect();
        config
    }

    /// Replaces the seed.
    pub fn with_seed(&self, seed: u64) -> Self {
        let mut config = self.clone();
        config.set.insert("seed", Value::Whole(seed));
        config
    }

    /// The same run in canonical form: the strategy by its label, and no name for the run.
    pub fn canonical(&self) -> Result<Self, notation::NotationError> {
        let label = strategy(self)?.label;
        let mut config = self.with_strategy(&label);
        config.set.remove("name");
        Ok(config)
    }
}

/// The tables of a configuration.
fn tables() -> Vec<&'static str> {
    let mut tables: Vec<&str> =
        keys::ALL.iter().filter_map(|key| Some(key.path().split_once('.')?.0)).chain(TABLES).collect();
    tables.dedup();
    tables
}

/// The line, counted from 1, of a byte in a text.
pub(crate) fn line_of(text: &str, byte: usize) -> usize {
    text[..byte].matches('\n').count() + 1
}

/// Whether a word is one of those that a key takes.
fn is_choice(path: &str, word: &str) -> bool {
    let kind = keys::find(path).map(|key| key.param.kind);
    matches!(kind, Some(ParamKind::Choice { choices, .. }) if choices.contains(&word))
}

/// The strategy that a configuration names.
pub(crate) fn strategy(config: &Config) -> Result<fedtvd_core::rules::Strategy, notation::NotationError> {
    let params = config.params();
    let Value::Text(name) = config.get("strategy.name") else { unreachable!("the key keeps text") };
    notation::strategy(&name, params.iter().map(|(name, value)| (name.as_str(), value.as_str())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        Config::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn an_unknown_key_names_its_line_and_the_nearest_key() {
        assert_eq!(
            refusal("seed = 1\n[split]\nalhpa = 0.1\n"),
            "line 3: there is no key split.alhpa; did you mean split.alpha?"
        );
    }

    #[test]
    fn a_table_that_does_not_exist_is_refused_even_if_it_is_empty() {
        let tables =
            "data, split, cohort, local, model, labels, evaluation, stop, attack, strategy, sweep, tune";
        let expected = format!("line 2: there is no table [lcoal]; the tables are {tables}");
        assert_eq!(refusal("[data]\n[lcoal]\n"), expected);
        for name in tables.split(", ") {
            assert!(Config::parse(&format!("[{name}]\n")).is_ok(), "{name}");
        }
    }

    #[test]
    fn a_wrong_value_is_refused_with_what_is_allowed() {
        assert_eq!(
            refusal("rounds = 0"),
            "line 1: rounds = 0 is not allowed; it must be a whole number from 1 to 1000000"
        );
        assert_eq!(
            refusal("rounds = 2.5"),
            "line 1: rounds = 2.5 is not allowed; it must be a whole number from 1 to 1000000"
        );
        assert_eq!(
            refusal("\nseed = -1"),
            "line 2: seed = -1 is not allowed; it must be a whole number from 0 to 9223372036854775807"
        );
        assert_eq!(
            refusal("[split]\nalpha = 0"),
            "line 2: split.alpha = 0 is not allowed; it must be above 0 and up to 1000000"
        );
        assert_eq!(
            refusal("[split]\nalpha = \"some\""),
            "line 2: split.alpha = \"some\" is not allowed; it must be a number, above 0 and up to 1000000"
        );
        assert_eq!(
            refusal("[strategy]\nmode = \"safe\""),
            "line 2: strategy.mode = \"safe\" is not allowed; it must be paper or hardened"
        );
    }

    #[test]
    fn a_whole_number_may_have_an_exponent() {
        assert_eq!(Config::parse("rounds = 1e3").unwrap().get("rounds"), Value::Whole(1000));
        assert!(refusal("rounds = 1e9").contains("must be a whole number"));
    }

    #[test]
    fn bare_names_find_their_table() {
        let mut config = Config::default();
        config.set("alpha=0.5").unwrap();
        config.set("lambda=0.25").unwrap();
        config.set("strategy.name=fedtvd+balanced").unwrap();
        assert_eq!(config.get("split.alpha"), Value::Number(0.5));
        assert_eq!(strategy(&config).unwrap().label, "fedtvd:lambda=0.25+balanced");
        assert_eq!(
            config.set("lr=0.1").unwrap_err().to_string(),
            "lr could be local.lr or strategy.lr; write it with its table"
        );
        assert_eq!(
            config.set("alhpa=1").unwrap_err().to_string(),
            "there is no key alhpa; did you mean split.alpha?"
        );
    }

    #[test]
    fn each_of_several_strategies_gets_the_parameters_that_it_takes() {
        let mut config = Config::default();
        config.set("lambda=0.25").unwrap();
        config.set("strategy.tau=0.5").unwrap();
        let label = |name| strategy(&config.with_strategy_beside(name)).unwrap().label;
        assert_eq!(label("uniform"), "uniform");
        assert_eq!(label("fedtvd+balanced"), "fedtvd:lambda=0.25+balanced:tau=0.5");
        assert_eq!(label("fedtvd:lambda=0.75"), "fedtvd:lambda=0.75");
    }
}
