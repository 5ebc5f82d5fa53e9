//! Runs of tuned strategies as one setting: they differ in what was tuned, which is part of each strategy, not of the setting.

use crate::runs::collection::{Collection, CollectionError};
use crate::runs::record::{Found, read};
use fedtvd_run::configuration::{Config, keys};
use std::collections::BTreeSet;
use std::path::PathBuf;

impl Collection {
    /// The finished runs in these directories, each with the strategy's name in the tables. The keys that were tuned count as those
    /// of `base`, and are left out of the setting.
    pub fn of_tuned(
        runs: &[(String, PathBuf)],
        base: &Config,
        tuned: &BTreeSet<String>,
    ) -> Result<Self, CollectionError> {
        let mut records = Vec::new();
        for (name, directory) in runs {
            let Found::Finished(mut record) = read(directory)? else {
                return Err(CollectionError::NoneFinished(runs.len()));
            };
            for key in tuned.iter().filter_map(|path| keys::find(path)) {
                // A value of the same key, so that it is valid.
                let _ = record.config.choose(0, key.path(), base.get(key.path()));
            }
            record.manifest.strategy.clone_from(name);
            records.push(*record);
        }
        let mut collection = Self::of(records, Vec::new(), 0);
        for setting in &mut collection.settings {
            setting.values.retain(|(path, _)| !tuned.contains(*path));
        }
        Ok(collection)
    }
}
