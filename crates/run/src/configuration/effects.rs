//! Which keys have no effect, because of the values of other keys.

use crate::attack;
use crate::configuration::experiment::{number, text, whole};
use crate::configuration::training::EXPONENTIAL;
use crate::configuration::{Config, Value, keys};
use fedtvd_core::settings::ParamKind;

/// The kinds of split that draw again until every client has enough samples.
const REPEATED: &[&str] = &["dirichlet", "labels", "quantity", "correlated"];

/// Keys that only some values of another key use: the key, the other one, and those values.
pub(crate) const USERS: [(&str, &str, &[&str]); 23] = [
    ("split.alpha", "split.kind", &["dirichlet", "hsu", "correlated"]),
    ("split.min_size", "split.kind", REPEATED),
    ("split.self_balancing", "split.kind", &["dirichlet"]),
    ("split.tries", "split.kind", REPEATED),
    ("split.shards", "split.kind", &["shards"]),
    ("split.labels", "split.kind", &["labels"]),
    ("split.beta", "split.kind", &["quantity"]),
    ("split.correlation", "split.kind", &["correlated"]),
    ("split.spread", "split.kind", &["correlated"]),
    ("split.alpha_even", "split.kind", &["correlated"]),
    ("split.file", "split.kind", &["file"]),
    ("split.shift_strength", "split.shift", &["rotation", "contrast", "noise"]),
    ("local.momentum", "local.optimizer", &["sgd"]),
    ("local.nesterov", "local.optimizer", &["sgd"]),
    ("local.beta1", "local.optimizer", &["adam", "adamw"]),
    ("local.beta2", "local.optimizer", &["adam", "adamw"]),
    ("local.eps", "local.optimizer", &["adam", "adamw"]),
    ("local.round_decay", "local.schedule", &[EXPONENTIAL]),
    ("local.step_every", "local.schedule", &["step"]),
    ("local.step_factor", "local.schedule", &["step"]),
    ("local.cosine_rounds", "local.schedule", &["cosine"]),
    ("local.cosine_floor", "local.schedule", &["cosine"]),
    ("strategy.screen", "strategy.mode", &["hardened"]),
];

/// The key whose value leaves this one without influence on a run, if there is one: the kind of split or of attack, the
/// optimiser, the schedule or the mode.
pub fn overruled(config: &Config, path: &str) -> Option<&'static str> {
    if let Some((_, by, users)) = USERS.iter().find(|(key, _, _)| *key == path) {
        return (!users.contains(&text(config, by).as_str())).then_some(by);
    }
    let uses: fn(&attack::Spec) -> bool = match path {
        "attack.clients" | "cohort.liars" => |_| true,
        "attack.scale" => |spec| spec.scale.is_some(),
        "attack.size" => attack::Spec::sized,
        _ => return None,
    };
    let kind = text(config, "attack.kind");
    (!attack::ALL.iter().any(|spec| spec.name == kind && uses(spec))).then_some("attack.kind")
}

/// Why a key has no effect on a simulation with this configuration, as the end of a sentence, such as `with split.kind = iid`;
/// `None` if it has one, or if that depends on the data.
pub fn no_effect(config: &Config, path: &str) -> Option<String> {
    let with = |by: &'static str| Some(format!("with {by} = {}", config.get(by).bare()));
    if let Some(by) = overruled(config, path) {
        return with(by);
    }
    let given = matches!(text(config, "split.kind").as_str(), "natural" | "file");
    let zero = |paths: &[&'static str]| paths.iter().all(|path| number(config, path) == 0.0);
    match path {
        "split.clients" if given => with("split.kind"),
        "split.seed" if given && zero(&["split.holdout"]) && text(config, "split.shift") == "none" => {
            with("split.kind")
        }
        "cohort.seed"
            if number(config, "cohort.fraction") == 1.0 && zero(&["cohort.absent", "cohort.partial"]) =>
        {
            with("cohort.fraction")
        }
        "cohort.extra" => Some("in a simulation, which has no late clients".to_owned()),
        "local.epoch_decay" if whole(config, "local.epochs") == 1 => with("local.epochs"),
        "model.name" if replaced_model(config) => Some("beside model.layers".to_owned()),
        "evaluation.metric"
            if zero(&["split.holdout", "stop.target"]) && whole(config, "stop.patience") == 0 =>
        {
            Some("without split.holdout, stop.target or stop.patience".to_owned())
        }
        _ => None,
    }
}

/// Whether layers replace the named model; those of a table's own model are written out beside its name.
fn replaced_model(config: &Config) -> bool {
    config.get("model.layers") != Value::List(Vec::new()) && text(config, "model.name") != "mlp"
}

impl Config {
    /// Whether a key has another value than its default. A run directory and `fedtvd init` list every key, so a key with its
    /// default does not count as given.
    pub fn changes_key(&self, path: &'static str) -> bool {
        let key = keys::find(path).expect("only keys of the table are asked for");
        let default = match key.param.kind {
            ParamKind::Seed => Some(self.get("seed")),
            _ => key.param.default(),
        };
        Some(self.value(key)) != default
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(settings: &[&str]) -> Config {
        let mut config = Config::default();
        settings.iter().for_each(|setting| config.set(setting).unwrap());
        config
    }

    /// A key, settings with which it has no effect, why, and settings with which it has one.
    const CASES: [(&str, &[&str], &str, &[&str]); 20] = [
        ("split.shards", &[], "with split.kind = dirichlet", &["split.kind=shards"]),
        ("split.file", &[], "with split.kind = dirichlet", &["split.kind=file"]),
        ("split.alpha", &["split.kind=iid"], "with split.kind = iid", &["split.kind=hsu"]),
        ("split.min_size", &["split.kind=hsu"], "with split.kind = hsu", &["split.kind=quantity"]),
        ("split.tries", &["split.kind=shards"], "with split.kind = shards", &["split.kind=labels"]),
        ("split.clients", &["split.kind=natural"], "with split.kind = natural", &["split.kind=iid"]),
        ("split.seed", &["split.kind=file"], "with split.kind = file", &["split.kind=file", "holdout=0.1"]),
        ("split.seed", &["split.kind=file"], "with split.kind = file", &["split.kind=file", "shift=noise"]),
        ("split.shift_strength", &[], "with split.shift = none", &["split.shift=noise"]),
        ("cohort.seed", &["cohort.fraction=1"], "with cohort.fraction = 1", &["fraction=1", "absent=0.1"]),
        ("cohort.liars", &[], "with attack.kind = none", &["attack.kind=scale"]),
        ("attack.clients", &[], "with attack.kind = none", &["attack.kind=nan"]),
        ("attack.scale", &["attack.kind=nan"], "with attack.kind = nan", &["attack.kind=sign-flip"]),
        ("attack.size", &["attack.kind=scale"], "with attack.kind = scale", &["attack.kind=false-tvd"]),
        ("local.beta1", &[], "with local.optimizer = sgd", &["local.optimizer=adam"]),
        ("local.round_decay", &["schedule=constant"], "with local.schedule = constant", &[]),
        ("local.epoch_decay", &["local.epochs=1"], "with local.epochs = 1", &["local.epochs=2"]),
        ("strategy.screen", &[], "with strategy.mode = paper", &["mode=hardened"]),
        (
            "model.name",
            &["model.layers=[\"flatten\", \"linear\"]"],
            "beside model.layers",
            &["model.name=cnn"],
        ),
        (
            "evaluation.metric",
            &[],
            "without split.holdout, stop.target or stop.patience",
            &["stop.target=0.5"],
        ),
    ];

    #[test]
    fn a_key_without_effect_says_why_and_has_one_with_other_settings() {
        for (path, idle, why, used) in CASES {
            assert_eq!(no_effect(&config(idle), path).as_deref(), Some(why), "{path}");
            assert_eq!(no_effect(&config(used), path), None, "{path} {used:?}");
        }
        for used in [["split.holdout=0.2"], ["stop.patience=3"]] {
            assert_eq!(no_effect(&config(&used), "evaluation.metric"), None);
        }
        let extra = no_effect(&Config::default(), "cohort.extra");
        assert_eq!(extra.as_deref(), Some("in a simulation, which has no late clients"));
    }

    #[test]
    fn every_key_of_the_table_exists_and_so_do_the_values_that_use_it() {
        for (path, by, users) in USERS {
            assert!(keys::find(path).is_some(), "{path}");
            for user in users {
                assert_eq!(overruled(&config(&[&format!("{by}={user}")]), path), None, "{path} {user}");
            }
        }
    }

    #[test]
    fn a_key_of_a_printed_configuration_does_not_count_as_changed() {
        for text in [Config::default().resolved(), Config::default().commented()] {
            let read = Config::parse(&text).unwrap().with_seed(7);
            let changed: Vec<_> = keys::ALL.iter().filter(|key| read.changes_key(key.path())).collect();
            assert_eq!(changed.iter().map(|key| key.path()).collect::<Vec<_>>(), ["seed"]);
        }
        assert!(config(&["split.seed=3"]).changes_key("split.seed"));
        assert!(!config(&["split.seed=1"]).changes_key("split.seed"));
    }
}
