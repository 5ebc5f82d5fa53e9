//! Tables of a configuration file and folders that a subcommand does not read.

use fedtvd_data::set::named;
use fedtvd_lab::runs::setting::shown;
use fedtvd_run::configuration::{Config, axes, tuned_axes};
use std::path::Path;

/// Notes on the tables `[sweep]` and `[tune]` of a configuration file that a subcommand does not read.
pub(crate) fn tables(text: &str, subcommand: &str) -> Vec<String> {
    let absent = |axes: Result<Vec<_>, _>| axes.is_ok_and(|axes: Vec<_>| axes.is_empty());
    let tables = [("sweep", absent(axes(text))), ("tune", absent(tuned_axes(text)))];
    let unread = tables.into_iter().filter(|(table, absent)| !absent && *table != subcommand);
    unread
        .map(|(table, _)| {
            format!("{subcommand} ignores the [{table}] table of the configuration; use fedtvd {table}")
        })
        .collect()
}

/// A note on the folder of `--data`, if no data set is looked for in it.
pub(crate) fn data_folder(folder: Option<&Path>, sets: &[String]) -> Option<String> {
    let stored = |set: &String| named(set).is_some_and(|entry| !entry.parts.is_empty());
    let folder = folder.filter(|_| !sets.iter().any(stored))?.display();
    let embedded = |set: &&String| named(set).is_some();
    Some(match sets.iter().find(embedded) {
        Some(set) => format!("--data {folder} is ignored: {set} is embedded in the program"),
        None => {
            format!("--data {folder} is ignored: data.set = {} is not the name of a data set", sets.first()?)
        }
    })
}

/// The same for the data set of a run.
pub(crate) fn data_folder_of(folder: Option<&Path>, run: &Path) -> Option<String> {
    let text = std::fs::read_to_string(run.join("config.toml")).ok()?;
    data_folder(folder, &data_sets(&[Config::parse(&text).ok()?]))
}

/// The data sets of the runs.
pub(super) fn data_sets(configs: &[Config]) -> Vec<String> {
    configs.iter().map(|config| shown(&config.get("data.set"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_other_subcommands_are_noted() {
        let text = "[sweep]\nseed = [1, 2]\n[tune]\n\"local.lr\" = [1]\n";
        let note = |subcommand: &str, table: &str| {
            format!("{subcommand} ignores the [{table}] table of the configuration; use fedtvd {table}")
        };
        assert_eq!(tables("rounds = 2\n", "run"), Vec::<String>::new());
        assert_eq!(tables(text, "run"), [note("run", "sweep"), note("run", "tune")]);
        assert_eq!(tables(text, "sweep"), [note("sweep", "tune")]);
        assert_eq!(tables(text, "tune"), [note("tune", "sweep")]);
    }

    #[test]
    fn a_data_folder_in_which_nothing_is_looked_for_is_noted() {
        let note = |sets: &[&str]| {
            let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
            data_folder(Some(Path::new("sets")), &sets)
        };
        let embedded = "--data sets is ignored: fmnist-mini is embedded in the program";
        assert_eq!(note(&["fmnist-mini"]).as_deref(), Some(embedded));
        let path = "--data sets is ignored: data.set = my.csv is not the name of a data set";
        assert_eq!(note(&["my.csv"]).as_deref(), Some(path));
        assert_eq!(note(&["fmnist-mini", "cifar10"]), None);
        assert_eq!(data_folder(None, &["fmnist-mini".to_owned()]), None);
    }
}
