//! A configuration: TOML, then `--set`, checked key by key against [`crate::keys`].

use crate::keys::{self, Key, Kind, Since};
use crate::value::Value;
use fedtvd_core::nearest::nearest;
use fedtvd_core::notation;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use thiserror::Error;
use toml::de::{DeTable, DeValue};

/// What a user set; everything else has its default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    set: BTreeMap<&'static str, Value>,
    params: BTreeMap<String, Value>,
}

/// Why a configuration cannot be.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ConfigError {
    /// No TOML.
    #[error("{0}")]
    Syntax(String),
    /// A key that is none.
    #[error("{place}there is no key {path}; did you mean {nearest}?")]
    Unknown {
        /// Where in the file, or nothing.
        place: String,
        /// What was written.
        path: String,
        /// What comes closest.
        nearest: String,
    },
    /// A bare name that several tables have.
    #[error("{name} could be {first} or {second}; write it with its table")]
    Ambiguous {
        /// What was written.
        name: String,
        /// One of them.
        first: String,
        /// Another.
        second: String,
    },
    /// A value that the key does not take.
    #[error("{place}{path} = {value} is not allowed; it must be {expected}")]
    Value {
        /// Where in the file, or nothing.
        place: String,
        /// The key.
        path: String,
        /// What was written.
        value: String,
        /// What would have been right.
        expected: String,
    },
    /// Something that is not key=value.
    #[error("--set {0} sets nothing; write key=value, such as split.alpha=0.5")]
    NoSetting(String),
}

impl Config {
    /// Reads TOML text.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let table = DeTable::parse(text)
            .map_err(|error| ConfigError::Syntax(error.to_string().trim_end().to_owned()))?;
        let mut config = Self::default();
        config.read(text, "", table.get_ref())?;
        Ok(config)
    }

    fn read(&mut self, text: &str, prefix: &str, table: &DeTable<'_>) -> Result<(), ConfigError> {
        for (name, value) in table {
            let path = format!("{prefix}{}", name.get_ref());
            let place = format!("line {}: ", line_of(text, name.span().start));
            match value.get_ref() {
                // Only `sweep` reads this table.
                DeValue::Table(_) if path == "sweep" => {}
                DeValue::Table(inner) => self.read(text, &format!("{path}."), inner)?,
                other => match Value::of(other) {
                    Some(value) => self.put(&place, &path, value)?,
                    None => {
                        return Err(misfit(
                            &place,
                            &path,
                            &"a date",
                            "text, a number, true, false or a list",
                        ));
                    }
                },
            }
        }
        Ok(())
    }

    /// Sets one key from `key=value`, where the key may be a bare name that only one table has.
    pub fn set(&mut self, setting: &str) -> Result<(), ConfigError> {
        let (path, text) =
            setting.split_once('=').ok_or_else(|| ConfigError::NoSetting(setting.to_owned()))?;
        let path = full_path(path.trim())?;
        self.put("", &path, Value::typed(text.trim()))
    }

    /// Sets one key to one value of a list in line `line` of a file.
    pub fn choose(&mut self, line: usize, path: &str, value: Value) -> Result<(), ConfigError> {
        self.put(&format!("line {line}: "), &full_path(path)?, value)
    }

    fn put(&mut self, place: &str, path: &str, value: Value) -> Result<(), ConfigError> {
        if let Some(key) = keys::find(path) {
            let value = key
                .checked(value)
                .map_err(|(value, expected)| misfit(place, path, &value.shown(), &expected))?;
            self.set.insert(key.path, value);
        } else if let Some(param) = path.strip_prefix("strategy.") {
            // Which parameters there are is known when the strategy's name is.
            self.params.insert(param.to_owned(), value);
        } else {
            let nearest = nearest(path, keys::ALL.iter().map(|key| key.path)).unwrap_or_default();
            return Err(ConfigError::Unknown { place: place.to_owned(), path: path.to_owned(), nearest });
        }
        Ok(())
    }

    /// What stands behind a key.
    pub fn get(&self, path: &'static str) -> Value {
        self.value(keys::find(path).expect("only keys of the table are asked for"))
    }

    fn value(&self, key: &Key) -> Value {
        let set = self.set.get(key.path).cloned();
        set.or_else(|| key.default()).unwrap_or_else(|| self.get("seed"))
    }

    /// Paths of the keys that were set.
    pub fn paths(&self) -> Vec<String> {
        let params = self.params.keys().map(|name| format!("strategy.{name}"));
        self.set.keys().map(|path| (*path).to_owned()).chain(params).collect()
    }

    /// What was set, as `key=value`.
    pub fn changes(&self) -> Vec<String> {
        let keys = self.set.iter().map(|(path, value)| format!("{path}={}", value.bare()));
        keys.chain(self.params.iter().map(|(name, value)| format!("strategy.{name}={}", value.bare())))
            .collect()
    }

    /// The strategy's parameters as (name, value) pairs.
    pub fn params(&self) -> Vec<(String, String)> {
        self.params.iter().map(|(name, value)| (name.clone(), value.bare())).collect()
    }

    /// Puts another strategy in place, without the parameters of the one before.
    pub fn with_strategy(&self, name: &str) -> Self {
        let mut config = self.clone();
        config.set.insert("strategy.name", Value::Text(name.to_owned()));
        config.params.clear();
        config
    }

    /// Puts one of several strategies in place, with those parameters that it takes and does not set in its name.
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

    /// Puts another seed in place.
    pub fn with_seed(&self, seed: u64) -> Self {
        let mut config = self.clone();
        config.set.insert("seed", Value::Whole(seed));
        config
    }

    /// The same run under its canonical name: the strategy by its label, the run without a name of its own.
    pub fn canonical(&self) -> Result<Self, notation::NotationError> {
        let label = strategy(self)?.label;
        let mut config = self.with_strategy(&label);
        config.set.remove("name");
        Ok(config)
    }

    /// All keys with their values as TOML: what a run directory keeps.
    pub fn resolved(&self) -> String {
        self.plain(keys::ALL)
    }

    /// What a run's hash is taken of: the resolved configuration without keys that came after the first ones and have
    /// their defaults, so that a program with more keys finds the runs of one with fewer.
    pub fn identity(&self) -> String {
        self.plain(keys::ALL.iter().filter(|key| self.identifies(key)))
    }

    fn identifies(&self, key: &Key) -> bool {
        key.since == Since::First || !self.follows(key) && key.default() != Some(self.value(key))
    }

    fn plain<'a>(&self, keys: impl IntoIterator<Item = &'a Key>) -> String {
        self.print(keys, |key, line| if self.follows(key) { format!("# {line}") } else { line })
    }

    /// All keys with their values and one line of help each. A seed that follows `seed` stands behind a #, so that
    /// it still follows when `seed` is changed.
    pub fn commented(&self) -> String {
        self.print(keys::ALL, |key, line| {
            format!("{}{line}   # {}", if self.follows(key) { "# " } else { "" }, key.about)
        })
    }

    /// Whether a key is a seed that follows `seed`.
    fn follows(&self, key: &Key) -> bool {
        matches!(key.kind, Kind::Seed) && !self.set.contains_key(key.path)
    }

    fn print<'a>(
        &self,
        keys: impl IntoIterator<Item = &'a Key>,
        shown: impl Fn(&Key, String) -> String,
    ) -> String {
        let mut text = String::new();
        let mut table = "";
        for key in keys {
            let (section, name) = key.path.split_once('.').unwrap_or(("", key.path));
            if section != table {
                let _ = writeln!(text, "\n[{section}]");
                table = section;
            }
            let _ = writeln!(text, "{}", shown(key, format!("{name} = {}", self.value(key))));
        }
        for (name, value) in &self.params {
            let quoted = if name.contains('.') { format!("{name:?}") } else { name.clone() };
            let _ = writeln!(text, "{quoted} = {value}");
        }
        text
    }
}

/// The line, counted from 1, in which a byte of a text stands.
pub(crate) fn line_of(text: &str, byte: usize) -> usize {
    text[..byte].matches('\n').count() + 1
}

fn misfit(place: &str, path: &str, value: &dyn std::fmt::Display, expected: &str) -> ConfigError {
    let (place, path) = (place.to_owned(), path.to_owned());
    ConfigError::Value { place, path, value: value.to_string(), expected: expected.to_owned() }
}

/// The path of a key that may have been written without its table.
fn full_path(name: &str) -> Result<String, ConfigError> {
    if name.contains('.') || keys::find(name).is_some() {
        return Ok(name.to_owned());
    }
    let keys = keys::ALL.iter().filter(|key| key.path.rsplit_once('.').is_some_and(|(_, own)| own == name));
    let strategies =
        fedtvd_core::strategy::ALL.iter().flat_map(|spec| spec.params).filter(|p| p.name == name);
    let mut paths: Vec<String> = keys.map(|key| key.path.to_owned()).collect();
    paths.extend(strategies.take(1).map(|param| format!("strategy.{}", param.name)));
    match paths.as_slice() {
        [only] => Ok(only.clone()),
        [first, second, ..] => Err(ConfigError::Ambiguous {
            name: name.to_owned(),
            first: first.clone(),
            second: second.clone(),
        }),
        [] => {
            let own = keys::ALL.iter().map(|key| key.path.rsplit_once('.').map_or(key.path, |(_, own)| own));
            let params =
                fedtvd_core::strategy::ALL.iter().flat_map(|spec| spec.params).map(|param| param.name);
            let nearest = nearest(name, own.chain(params)).unwrap_or_default();
            Err(ConfigError::Unknown { place: String::new(), path: name.to_owned(), nearest })
        }
    }
}

/// The strategy that a configuration names.
pub(crate) fn strategy(config: &Config) -> Result<fedtvd_core::recipe::Strategy, notation::NotationError> {
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
    fn a_wrong_value_names_what_would_have_been_right() {
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
            "there is no key alhpa; did you mean alpha?"
        );
    }

    #[test]
    fn of_several_strategies_each_gets_the_parameters_that_it_takes() {
        let mut config = Config::default();
        config.set("lambda=0.25").unwrap();
        config.set("strategy.tau=0.5").unwrap();
        let label = |name| strategy(&config.with_strategy_beside(name)).unwrap().label;
        assert_eq!(label("uniform"), "uniform");
        assert_eq!(label("fedtvd+balanced"), "fedtvd:lambda=0.25+balanced:tau=0.5");
        assert_eq!(label("fedtvd:lambda=0.75"), "fedtvd:lambda=0.75");
    }

    #[test]
    fn seeds_of_a_printed_configuration_still_follow_its_seed() {
        let config = Config::parse(&Config::default().commented()).unwrap().with_seed(7);
        assert_eq!((config.get("split.seed"), config.get("cohort.seed")), (Value::Whole(7), Value::Whole(7)));
    }

    #[test]
    fn what_is_printed_reads_back_the_same() {
        let mut config = Config::default();
        for setting in ["alpha=0.5", "lambda=0.25", "seed=9", "labels.reference=[0.5, 0.5]", "rounds=7"] {
            config.set(setting).unwrap();
        }
        let text = config.resolved();
        let again = Config::parse(&text).unwrap();
        assert_eq!(again.resolved(), text);
        assert_eq!(again.get("split.seed"), Value::Whole(9));
        assert_eq!(Config::parse(&config.commented()).unwrap().resolved(), text);
    }

    #[test]
    fn a_later_key_changes_an_identity_only_where_it_differs_from_its_default() {
        let clip = Key {
            path: "local.clip",
            since: Since::Later,
            kind: Kind::Number { default: 0.0, range: fedtvd_core::spec::Range::NOT_NEGATIVE },
            about: "a key of a later program",
        };
        let seed = Key { path: "noise.seed", since: Since::Later, kind: Kind::Seed, about: "and another" };
        let with_later = |config: &Config| {
            let keys = keys::ALL.iter().chain([&clip, &seed]).filter(|key| config.identifies(key));
            config.plain(keys)
        };
        let set = |path, value| {
            let mut config = Config::default();
            config.set.insert(path, value);
            config
        };
        let today = Config::default().identity();
        assert_eq!(today, Config::default().resolved());
        assert_eq!(with_later(&Config::default()), today);
        assert_eq!(with_later(&set("local.clip", Value::Number(0.0))), today);
        assert!(with_later(&set("local.clip", Value::Number(5.0))).contains("clip = 5.0"));
        assert!(with_later(&set("noise.seed", Value::Whole(1))).ends_with("[noise]\nseed = 1\n"));
    }
}
