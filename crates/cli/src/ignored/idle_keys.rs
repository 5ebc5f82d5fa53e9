//! Keys without effect on any of a subcommand's runs.

use crate::request::{Failure, refuse_each};
use anyhow::anyhow;
use fedtvd_lab::runs::setting::shown;
use fedtvd_run::configuration::{Axis, Config, Experiment, keys, no_effect};

/// What the configurations are for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A simulation whose notes on its data are shown anyway.
    Run,
    /// Only the split of a simulation.
    Split,
    /// Many simulations, without the notes on their data.
    Grid,
    /// Tuning runs.
    Tuning,
    /// The server of a federation.
    Federation,
}

/// Keys that are noted where data are read and split.
const NOTED_WITH_DATA: [&str; 6] =
    ["split.clients", "data.label", "data.group", "data.schema", "data.test", "data.flip"];

/// Refuses a `--set` without effect on any of the runs.
pub(crate) fn refuse_idle(set: &[String], configs: &[Config], purpose: Purpose) -> Result<(), Failure> {
    refuse_each(set, |path| idle(configs, keys::find(path)?.path(), purpose))
}

/// Notes on keys that differ from their defaults and have no effect on any of the runs.
pub(super) fn idle_keys(configs: &[Config], purpose: Purpose) -> Vec<String> {
    let with_data = matches!(purpose, Purpose::Run | Purpose::Split);
    let shown_elsewhere = |path: &str| with_data && NOTED_WITH_DATA.contains(&path);
    let paths = keys::ALL.iter().map(|key| key.path()).filter(|path| !shown_elsewhere(path));
    let note = |path: &'static str| {
        let config = configs.iter().find(|config| config.changes_key(path))?;
        let why = idle(configs, path, purpose)?;
        let why = why.strip_prefix(": ").map_or_else(|| format!("it has no effect{why}"), str::to_owned);
        Some(format!("{path} = {} is ignored: {why}", shown(&config.get(path))))
    };
    paths.filter_map(note).chain(sites_have_data(configs, purpose)).collect()
}

/// Why a key has no effect on any of the runs, as the end of a sentence.
fn idle(configs: &[Config], path: &'static str, purpose: Purpose) -> Option<String> {
    let reasons: Option<Vec<String>> = configs.iter().map(|config| reason(config, path, purpose)).collect();
    reasons?.into_iter().next()
}

fn reason(config: &Config, path: &'static str, purpose: Purpose) -> Option<String> {
    match (purpose, path) {
        // The clients of a federation may be late, and may evaluate the model on samples that they hold out.
        (Purpose::Federation, "cohort.extra" | "evaluation.metric") => return None,
        (Purpose::Split, path) if !of_split(path) => return None,
        (Purpose::Tuning, "evaluation.test") => {
            return Some(": the tuning runs do not read the test set, and the final runs do".to_owned());
        }
        _ => {}
    }
    let data = || Experiment::of(config).ok().filter(|_| path.starts_with("data."));
    let of_data = || Some(format!(": {}", data()?.data.no_effect(path)?));
    no_effect(config, path).map(|why| format!(" {why}")).or_else(of_data)
}

/// Whether a split depends on a key.
fn of_split(path: &str) -> bool {
    let own = ["split.", "data."].iter().any(|table| path.starts_with(table));
    own && !matches!(path, "data.crop" | "data.flip") || matches!(path, "seed" | "labels.reference")
}

/// A note on settings of the command line on which a split does not depend. They are no error: the same settings may be for the
/// split of a federation's data and for its server.
pub(super) fn beside_split(set: &[String], purpose: Purpose) -> Option<String> {
    let path = |setting: &String| {
        let mut config = Config::default();
        config.set(setting).ok()?;
        config.paths().into_iter().find(|path| !of_split(path))
    };
    let paths: Vec<String> = set.iter().filter_map(path).collect();
    let note = || format!("{}: a split does not depend on it", paths.join(", "));
    (purpose == Purpose::Split && !paths.is_empty()).then(note)
}

/// A note on keys of the split, which the sites of a federation do not read.
fn sites_have_data(configs: &[Config], purpose: Purpose) -> Option<String> {
    let changed = |path: &&'static str| {
        let is_set = configs.iter().any(|config| config.changes_key(path));
        path.starts_with("split.") && is_set && idle(configs, path, purpose).is_none()
    };
    let paths: Vec<&str> = keys::ALL.iter().map(|key| key.path()).filter(changed).collect();
    (purpose == Purpose::Federation && !paths.is_empty()).then(|| {
        format!(
            "{}: sites have data of their own; only fedtvd verify and a simulation of this federation read keys of split",
            paths.join(", ")
        )
    })
}

/// Fails if a list has several values of a key that has no effect on any of the runs: they would all be the same.
pub(crate) fn refuse_idle_lists(lists: &[Axis], configs: &[Config]) -> Result<(), Failure> {
    for list in lists {
        let mut one = Config::default();
        for (path, value) in list.choices.iter().flatten() {
            one.choose(list.line, path, value.clone()).map_err(Failure::request)?;
        }
        for key in one.paths().iter().filter_map(|path| keys::find(path)) {
            if let Some(why) = idle(configs, key.path(), Purpose::Grid) {
                let path = key.path();
                return Err(Failure::Request(anyhow!(
                    "the list of {path} has no effect{why}: all runs would be the same"
                )));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(settings: &[&str]) -> Config {
        let mut config = Config::default();
        settings.iter().for_each(|setting| config.set(setting).unwrap());
        config
    }

    fn noted(settings: &[&str], purpose: Purpose) -> Vec<String> {
        idle_keys(&[config(settings)], purpose)
    }

    fn refused(setting: &str, configs: &[Config], purpose: Purpose) -> Option<String> {
        match refuse_idle(&[setting.to_owned()], configs, purpose) {
            Err(Failure::Request(error)) => Some(error.to_string()),
            _ => None,
        }
    }

    #[test]
    fn a_key_of_a_file_is_noted_if_it_was_changed_and_has_no_effect() {
        let note = "split.file = saved.json is ignored: it has no effect with split.kind = dirichlet";
        assert_eq!(noted(&["split.file=saved.json"], Purpose::Run), [note]);
        let none = Vec::<String>::new();
        assert_eq!(noted(&["split.kind=file", "split.file=saved.json"], Purpose::Run), none);
        // A configuration printed by `fedtvd init` sets every key to its default.
        assert_eq!(noted(&["split.shards=2", "split.kind=iid"], Purpose::Run), none);
        let extra =
            "cohort.extra = 2 is ignored: it has no effect in a simulation, which has no late clients";
        assert_eq!(noted(&["cohort.extra=2"], Purpose::Grid), [extra]);
        assert_eq!(noted(&["cohort.extra=2", "evaluation.metric=loss"], Purpose::Federation), none);
    }

    #[test]
    fn a_key_on_the_command_line_is_refused_even_with_its_default() {
        let refused = |setting| refused(setting, &[config(&[setting])], Purpose::Run);
        let shards = "--set split.shards=2 has no effect with split.kind = dirichlet";
        assert_eq!(refused("split.shards=2").as_deref(), Some(shards));
        let liars = "--set attack.clients=1 has no effect with attack.kind = none";
        assert_eq!(refused("attack.clients=1").as_deref(), Some(liars));
        let label = "--set data.label=sick has no effect: fmnist-mini is not a CSV file";
        assert_eq!(refused("data.label=sick").as_deref(), Some(label));
        assert_eq!(refused("split.alpha=0.1"), None);
        assert_eq!(refused("local.lr=0.1"), None);
    }

    #[test]
    fn a_key_that_one_of_several_runs_uses_has_an_effect() {
        let runs = [config(&["split.kind=iid"]), config(&["split.kind=dirichlet"])];
        assert_eq!(refused("split.alpha=0.5", &runs, Purpose::Grid), None);
        let iid = "--set split.alpha=0.5 has no effect with split.kind = iid";
        assert_eq!(refused("split.alpha=0.5", &runs[..1], Purpose::Grid).as_deref(), Some(iid));
        let list = |text: &str| refuse_idle_lists(&[Axis::of(text).unwrap()], &runs);
        assert!(list("split.alpha=0.1,1").is_ok());
        let Err(Failure::Request(error)) = list("split.shards=2,3") else { panic!("it has no effect") };
        let sentence =
            "the list of split.shards has no effect with split.kind = iid: all runs would be the same";
        assert_eq!(error.to_string(), sentence);
    }

    #[test]
    fn notes_on_data_are_shown_once() {
        let settings = ["data.label=sick", "data.test=0.5"];
        assert_eq!(noted(&settings, Purpose::Run), Vec::<String>::new());
        let label = "data.label = sick is ignored: fmnist-mini is not a CSV file";
        assert_eq!(noted(&settings, Purpose::Grid)[0], label);
    }

    #[test]
    fn the_split_of_a_federation_is_noted_in_one_line() {
        let note = "split.clients, split.alpha: sites have data of their own; only fedtvd verify and a simulation of this \
                    federation read keys of split";
        assert_eq!(noted(&["split.clients=5", "split.alpha=0.5"], Purpose::Federation), [note]);
        assert_eq!(noted(&["split.clients=5"], Purpose::Run), Vec::<String>::new());
    }
}
