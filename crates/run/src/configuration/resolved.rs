//! A configuration as text: resolved for a run directory, commented for people, and canonical for a run's hash.

use crate::configuration::keys;
use crate::configuration::keys::Since;
use crate::configuration::{Config, Key};
use fedtvd_core::settings::ParamKind;
use std::fmt::Write as _;

impl Config {
    /// All keys with their values as TOML, as stored in a run directory.
    pub fn resolved(&self) -> String {
        self.plain(keys::ALL)
    }

    /// The text that a run's hash is computed from: the resolved configuration without later keys that have their
    /// defaults, so that a program with more keys finds the runs of one with fewer.
    pub fn identity(&self) -> String {
        self.plain(keys::ALL.iter().filter(|key| self.identifies(key)))
    }

    fn identifies(&self, key: &Key) -> bool {
        key.since == Since::First || !self.follows(key) && key.param.default() != Some(self.value(key))
    }

    fn plain<'a>(&self, keys: impl IntoIterator<Item = &'a Key>) -> String {
        self.print(keys, |key, line| if self.follows(key) { format!("# {line}") } else { line })
    }

    /// All keys with their values and one line of help each. A seed that follows `seed` is commented out, so that it
    /// still follows when `seed` is changed, and so is a key to which a federation gives another default.
    pub fn commented(&self) -> String {
        self.print(keys::ALL, |key, line| {
            let open = self.follows(key) || Self::federated(key.path()) && !self.set.contains_key(key.path());
            format!("{}{line}   # {}", if open { "# " } else { "" }, key.param.about)
        })
    }

    /// Whether a key is a seed that follows `seed`.
    fn follows(&self, key: &Key) -> bool {
        matches!(key.param.kind, ParamKind::Seed) && !self.set.contains_key(key.path())
    }

    fn print<'a>(
        &self,
        keys: impl IntoIterator<Item = &'a Key>,
        shown: impl Fn(&Key, String) -> String,
    ) -> String {
        let mut text = String::new();
        let mut table = "";
        for key in keys {
            let (section, name) = key.path().split_once('.').unwrap_or(("", key.path()));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::Value;
    use fedtvd_core::settings::{Param, Range};

    #[test]
    fn seeds_of_a_printed_configuration_still_follow_its_seed() {
        let config = Config::parse(&Config::default().commented()).unwrap().with_seed(7);
        assert_eq!((config.get("split.seed"), config.get("cohort.seed")), (Value::Whole(7), Value::Whole(7)));
    }

    #[test]
    fn a_printed_configuration_parses_to_the_same_one() {
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
    fn a_later_key_changes_an_identity_only_if_it_differs_from_its_default() {
        let later = |param| Key { param, since: Since::Later };
        let clip = later(Param::number("local.clip", 0.0, Range::NOT_NEGATIVE, "a key of a later program"));
        let seed = later(Param { name: "noise.seed", kind: ParamKind::Seed, about: "and another" });
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
        let first = keys::ALL.iter().filter(|key| key.since == Since::First);
        assert_eq!(today, Config::default().plain(first));
        assert!(!today.contains("schema") && Config::default().resolved().contains("schema = \"\""));
        assert_eq!(with_later(&Config::default()), today);
        assert_eq!(with_later(&set("local.clip", Value::Number(0.0))), today);
        assert!(with_later(&set("local.clip", Value::Number(5.0))).contains("clip = 5.0"));
        assert!(with_later(&set("noise.seed", Value::Whole(1))).ends_with("[noise]\nseed = 1\n"));
    }
}
