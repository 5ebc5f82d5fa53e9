//! Notes on parts of a configuration that a subcommand ignores.

use fedtvd_lab::runs::setting::{shown, unused};
use fedtvd_run::configuration::keys;
use fedtvd_run::configuration::{Config, Key, axes, overruled};

/// Notes on keys that were changed but belong to another kind of split or attack, or to another mode.
pub(crate) fn unused_keys(config: &Config) -> Vec<String> {
    let default = Config::default();
    let note = |key: &Key| {
        let path = key.path();
        // Keys of local training are not ignored but refused.
        let kind = unused(config, path).filter(|_| overruled(config, path).is_none())?;
        if config.get(path) == default.get(path) {
            return None;
        }
        let (value, chosen) = (shown(&config.get(path)), shown(&config.get(kind)));
        Some(format!("{path} = {value} is ignored: it has no effect with {kind} = {chosen}"))
    };
    keys::ALL.iter().filter_map(note).collect()
}

/// A note on extra clients, which a simulation does not ask.
pub(crate) fn extra_clients(config: &Config) -> Option<String> {
    let extra = config.get("cohort.extra");
    (extra != Config::default().get("cohort.extra"))
        .then(|| format!("cohort.extra = {} is ignored: a simulation has no late clients", shown(&extra)))
}

/// A note on the `[sweep]` table of a configuration file, if it has one.
pub(crate) fn sweep_table(text: &str, subcommand: &str) -> Option<String> {
    let absent = axes(text).is_ok_and(|axes| axes.is_empty());
    (!absent)
        .then(|| format!("{subcommand} ignores the [sweep] table of the configuration; use fedtvd sweep"))
}

/// A note on the configuration's strategy, if a comparison does not include it.
pub(crate) fn strategy(config: &Config, compared: &[String]) -> Option<String> {
    let set = config.paths().iter().any(|path| path == "strategy.name");
    let name = shown(&config.get("strategy.name"));
    (set && !compared.contains(&name)).then(|| {
        format!(
            "compare ignores strategy.name = {name} of the configuration and uses {}",
            compared.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(settings: &[&str]) -> Config {
        let mut config = Config::default();
        settings.iter().for_each(|setting| config.set(setting).unwrap());
        config
    }

    #[test]
    fn a_changed_key_of_another_kind_of_split_is_noted() {
        let note = "split.file = saved.json is ignored: it has no effect with split.kind = dirichlet";
        assert_eq!(unused_keys(&config(&["split.file=saved.json"])), [note]);
        let used = ["split.kind=file", "split.file=saved.json"];
        assert_eq!(unused_keys(&config(&used)), Vec::<String>::new());
        // A configuration printed by `fedtvd init` sets every key to its default.
        assert_eq!(unused_keys(&config(&["split.shards=2", "split.kind=iid"])), Vec::<String>::new());
        assert_eq!(unused_keys(&config(&["split.shards=3", "split.kind=shards"])), Vec::<String>::new());
    }

    #[test]
    fn a_changed_key_of_an_attack_that_does_not_use_it_is_noted() {
        let none = "attack.clients = 3 is ignored: it has no effect with attack.kind = none";
        assert_eq!(unused_keys(&config(&["attack.clients=3"])), [none]);
        let nan = ["attack.kind=nan", "attack.clients=3", "attack.scale=2"];
        let note = "attack.scale = 2 is ignored: it has no effect with attack.kind = nan";
        assert_eq!(unused_keys(&config(&nan)), [note]);
        let used = ["attack.kind=scale", "attack.clients=3", "attack.scale=2", "cohort.liars=1"];
        assert_eq!(unused_keys(&config(&used)), Vec::<String>::new());
    }

    #[test]
    fn a_key_of_local_training_that_is_refused_is_not_noted() {
        let refused = config(&["local.optimizer=adam", "local.momentum=0.5", "local.step_every=3"]);
        assert_eq!(unused_keys(&refused), Vec::<String>::new());
    }

    #[test]
    fn the_bound_of_screening_is_noted_in_paper_mode() {
        let note = "strategy.screen = 3 is ignored: it has no effect with strategy.mode = paper";
        assert_eq!(unused_keys(&config(&["strategy.screen=3"])), [note]);
        assert_eq!(unused_keys(&config(&["strategy.screen=3", "mode=hardened"])), Vec::<String>::new());
    }

    #[test]
    fn extra_clients_of_a_simulation_are_noted() {
        assert_eq!(extra_clients(&Config::default()), None);
        let note = "cohort.extra = 2 is ignored: a simulation has no late clients";
        assert_eq!(extra_clients(&config(&["cohort.extra=2"])).as_deref(), Some(note));
    }

    #[test]
    fn a_sweep_table_is_noted() {
        assert_eq!(sweep_table("rounds = 2\n", "run"), None);
        let note = "run ignores the [sweep] table of the configuration; use fedtvd sweep";
        assert_eq!(sweep_table("[sweep]\nseed = [1, 2]\n", "run").as_deref(), Some(note));
    }

    #[test]
    fn a_strategy_that_is_not_compared_is_noted() {
        let compared = ["fedavg", "fedtvd"].map(str::to_owned);
        assert_eq!(strategy(&Config::default(), &compared), None);
        assert_eq!(strategy(&config(&["strategy.name=fedtvd"]), &compared), None);
        let note = "compare ignores strategy.name = fedprox of the configuration and uses fedavg, fedtvd";
        assert_eq!(strategy(&config(&["strategy.name=fedprox"]), &compared).as_deref(), Some(note));
    }
}
