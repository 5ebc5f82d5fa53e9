//! The schema that a site first saw in a run: later only centres and scales may be added to it.
//!
//! Without this a server could send another schema at every connection, with other bounds or missing values, and learn a
//! site's values from the differences of its statistics.

use crate::client::SiteError;
use crate::wire;
use fedtvd_data::table::Schema;
use fedtvd_run::directory::files::{doing, make_folder, write};
use fedtvd_run::directory::sha256;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// The first schema of a run, in a file of the site's state folder.
#[derive(Clone, Debug)]
pub(crate) struct PinnedSchema {
    /// The run's name.
    pub(crate) run: String,
    path: PathBuf,
    record: Record,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Record {
    /// The first schema, as TOML.
    schema: String,
    /// SHA-256 of the statistics that were sent.
    statistics: Option<String>,
}

impl PinnedSchema {
    /// The pinned schema of a run, which is this one if the run is new. Fails if this one differs from the pinned one in
    /// more than centres and scales. The run's name must be safe as a file's.
    pub(crate) fn open(folder: &Path, run: &str, client: u32, schema: &str) -> Result<Self, SiteError> {
        let path = folder.join(run).join(format!("table-{client}.json"));
        let run = run.to_owned();
        let pinned = match std::fs::read(&path) {
            Ok(bytes) => {
                let record = serde_json::from_slice(&bytes).map_err(io::Error::from);
                Self { run, record: record.map_err(doing("reading", &path))?, path }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let record = Record { schema: schema.to_owned(), statistics: None };
                let pinned = Self { run, record, path };
                pinned.store()?;
                pinned
            }
            Err(error) => return Err(doing("reading", &path)(error).into()),
        };
        pinned.check(schema)?;
        Ok(pinned)
    }

    /// Fails if a schema differs from the pinned one in more than centres and scales.
    pub(crate) fn check(&self, schema: &str) -> Result<(), SiteError> {
        let parsed = |text: &str| text.parse::<Schema>().ok();
        let added =
            |first: Schema, now: Schema| (first == now || first.standards_in(&now).is_some()).then_some(());
        let same = parsed(&self.record.schema).zip(parsed(schema)).and_then(|(first, now)| added(first, now));
        same.ok_or_else(|| SiteError::SchemaChanged { pinned: self.path.clone(), new_run: false })
    }

    /// Records the statistics before they are sent; fails if others were sent before.
    pub(crate) fn send(&mut self, statistics: &wire::ColumnStatistics) -> Result<(), SiteError> {
        let wire::ColumnStatistics { size, columns, .. } = statistics;
        let numbers =
            columns.iter().flat_map(|column| [column.count, column.mean.to_bits(), column.squares.to_bits()]);
        let bytes: Vec<u8> = [*size].into_iter().chain(numbers).flat_map(u64::to_le_bytes).collect();
        let hash = sha256(&bytes);
        match &self.record.statistics {
            Some(before) if *before == hash => Ok(()),
            Some(_) => Err(SiteError::StatisticsChanged { pinned: self.path.clone() }),
            None => {
                self.record.statistics = Some(hash);
                self.store()
            }
        }
    }

    fn store(&self) -> Result<(), SiteError> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        make_folder(folder)?;
        Ok(write(&self.path, &serde_json::to_vec(&self.record).unwrap_or_default())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPEN: &str =
        "[label]\ncolumn = \"y\"\nclasses = [\"a\", \"b\"]\n[[column]]\nname = \"x\"\nkind = \"number\"\n";

    #[test]
    fn only_centres_and_scales_may_be_added_to_the_first_schema_of_a_run_after_a_restart_too() {
        let folder = tempfile::tempdir().unwrap();
        let open = |run: &str, schema: &str| PinnedSchema::open(folder.path(), run, 0, schema);
        open("a", OPEN).unwrap();
        let complete = format!("{OPEN}centre = 1\nscale = 2\n");
        for same in [OPEN, &complete] {
            open("a", same).unwrap();
        }
        for other in [format!("{OPEN}bounds = [0, 1]\n"), complete.replace("\"x\"", "\"z\""), "?".to_owned()]
        {
            assert!(matches!(open("a", &other), Err(SiteError::SchemaChanged { .. })), "{other}");
        }
        open("b", &complete).unwrap();
        assert!(matches!(open("b", OPEN), Err(SiteError::SchemaChanged { .. })));
    }

    #[test]
    fn statistics_are_sent_again_only_if_they_are_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let open = || PinnedSchema::open(folder.path(), "a", 0, OPEN).unwrap();
        let statistics = |mean| {
            let columns = vec![wire::ColumnStatistic { count: 10, mean, squares: 1.0 }];
            wire::ColumnStatistics { run: "a".to_owned(), size: 20, columns }
        };
        open().send(&statistics(0.1)).unwrap();
        open().send(&statistics(0.1)).unwrap();
        assert!(matches!(open().send(&statistics(0.2)), Err(SiteError::StatisticsChanged { .. })));
    }
}
