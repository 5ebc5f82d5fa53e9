//! What a federation sets where its operator does not: its clients are not trusted, and all of them take part.

use crate::configuration::{Config, Value};
use fedtvd_core::round::hardened::LEAST;

/// The keys that a federation sets.
const KEYS: [&str; 3] = ["strategy.mode", "cohort.fraction", "cohort.quorum"];

impl Config {
    /// Whether a federation gives this key another default.
    pub(crate) fn federated(path: &str) -> bool {
        KEYS.contains(&path)
    }

    /// The configuration of a federation: hardened mode, its quorum, and all clients in every round, unless set
    /// otherwise. A schema without a data set describes the sites' tables: the server has no data. A simulation of the
    /// result is the same run.
    pub fn for_federation(&self) -> Self {
        let mut config = self.clone();
        let mut default = |path, value| {
            config.set.entry(path).or_insert(value);
        };
        default("strategy.mode", Value::Text("hardened".to_owned()));
        default("cohort.fraction", Value::Number(1.0));
        if self.set.contains_key("data.schema") {
            default("data.set", Value::Text(String::new()));
        }
        if config.get("strategy.mode") == Value::Text("hardened".to_owned()) {
            config.set.entry("cohort.quorum").or_insert(Value::Whole(LEAST as u64));
        }
        config
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(settings: &[&str]) -> [String; 3] {
        let mut config = Config::default();
        settings.iter().for_each(|setting| config.set(setting).unwrap());
        let config = config.for_federation();
        KEYS.map(|path| config.get(path).bare())
    }

    #[test]
    fn a_federation_is_hardened_and_selects_all_clients_unless_set_otherwise() {
        assert_eq!(shown(&[]), ["hardened", "1", "3"]);
        assert_eq!(shown(&["mode=paper"]), ["paper", "1", "1"]);
        assert_eq!(shown(&["fraction=0.5", "quorum=4"]), ["hardened", "0.5", "4"]);
    }

    #[test]
    fn a_schema_alone_describes_the_samples() {
        let set = |settings: &[&str]| {
            let mut config = Config::default();
            settings.iter().for_each(|setting| config.set(setting).unwrap());
            config.for_federation().get("data.set").bare()
        };
        assert_eq!(set(&["data.schema=s.toml"]), "");
        assert_eq!(set(&["data.schema=s.toml", "data.set=patients"]), "patients");
        assert_eq!(set(&[]), "fmnist-mini");
    }
}
