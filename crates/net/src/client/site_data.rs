//! A site's data: samples that are already numbers, or a table that is read with the federation's schema.

use crate::client::pinned_schema::PinnedSchema;
use crate::client::table_use::{TableUse, check_allowed, warnings};
use crate::client::{Connection, ConnectionError, JoinError, Progress, SiteError};
use crate::wire::{self, plain};
use fedtvd_core::train::Samples;
use fedtvd_data::set::{Loaded, load_table};
use fedtvd_data::table::{LEAST_VALUES, Moments, Schema, SchemaError};
use std::path::PathBuf;
use std::sync::Arc;

/// A site's data.
#[derive(Clone, Debug)]
pub enum SiteData {
    /// Images, or values that were standardised elsewhere.
    Samples {
        /// The samples.
        samples: Arc<Samples>,
        /// Names of its classes.
        class_names: Vec<String>,
    },
    /// A table, which is read when the server's schema is known.
    Table {
        /// The file.
        path: PathBuf,
        /// The label's column, if it was named.
        label: Option<String>,
        /// The fraction of each class that is held out.
        test: f64,
        /// The only columns that a schema may read besides the label; `None` for all.
        columns: Option<Vec<String>>,
    },
}

/// Data that a site can train on.
#[derive(Clone, Debug)]
pub struct Readable {
    /// The samples.
    pub samples: Arc<Samples>,
    /// Names of its classes.
    pub class_names: Vec<String>,
    /// What was done about missing and unknown values, and of which columns no statistics are sent.
    pub notes: Vec<String>,
    /// What is read of a table, and what is sent about it.
    pub table: Option<TableUse>,
    /// The table, until its centres and scales are known.
    open: Option<(Schema, Loaded)>,
}

impl SiteData {
    /// The data as the server's schema reads them; fails with the name of a column that is missing.
    pub(crate) fn read(&self, schema: &str) -> Result<Readable, SiteError> {
        let parsed = match schema {
            "" => None,
            text => Some(text.parse::<Schema>().map_err(|error| unreadable(error.to_string()))?),
        };
        match (self, parsed) {
            (Self::Table { .. }, None) => Err(SiteError::NotTables),
            (Self::Samples { .. }, Some(schema)) if schema.open().count() > 0 => Err(SiteError::NeedsTable),
            (Self::Samples { samples, class_names }, _) => {
                let (samples, class_names) = (Arc::clone(samples), class_names.clone());
                Ok(Readable { samples, class_names, notes: Vec::new(), table: None, open: None })
            }
            (Self::Table { path, label, test, columns }, Some(schema)) => {
                check_allowed(&schema, columns.as_deref())?;
                if let Some(ours) = label.clone().filter(|label| *label != schema.label.column) {
                    return Err(SiteError::Label { ours, theirs: schema.label.column });
                }
                let loaded = load_table(path, &schema, None, *test).map_err(Box::new)?;
                let (samples, class_names) = (Arc::clone(&loaded.samples), loaded.class_names.clone());
                let mut notes = warnings(&schema);
                notes.extend(loaded.notes.clone());
                let sent = moments(&schema, &loaded);
                let few = schema.open().zip(&sent).filter(|(_, moments)| moments.count == 0);
                notes.extend(few.map(|((name, _), _)| {
                    format!("{name}: fewer than {LEAST_VALUES} values; no statistics of them are sent")
                }));
                let table = Some(TableUse::of(&schema, &sent));
                let open = (!sent.is_empty()).then_some((schema, loaded));
                Ok(Readable { samples, class_names, notes, table, open })
            }
        }
    }
}

fn unreadable(why: String) -> SiteError {
    SiteError::Unreadable { what: "a schema", why: plain(&why) }
}

/// The statistics of a site's open columns.
fn moments(schema: &Schema, loaded: &Loaded) -> Vec<Moments> {
    let rows: Vec<u32> = (0..loaded.samples.train_rows() as u32).collect();
    let columns = loaded.table.as_ref().and_then(|table| table.columns.as_ref());
    columns.map(|columns| columns.moments(schema, &rows)).unwrap_or_default()
}

impl Readable {
    /// Number of columns whose centre and scale the sites compute together.
    pub(crate) fn open_columns(&self) -> usize {
        self.open.as_ref().map_or(0, |(schema, _)| schema.open().count())
    }

    /// Whether centres and scales are still to be computed.
    pub(crate) fn open(&self) -> bool {
        self.open.is_some()
    }

    /// The same data with the federation's centres and scales; sends its own statistics and waits for the others'.
    pub(crate) async fn standardised(
        self,
        run: &str,
        mut pinned: PinnedSchema,
        connection: &mut Connection,
        report: &(dyn Fn(&Progress) + Sync),
    ) -> Result<Self, JoinError> {
        let Some((schema, loaded)) = &self.open else { return Ok(self) };
        report(&Progress::Gathering);
        let column =
            |&Moments { count, mean, squares }: &Moments| wire::ColumnStatistic { count, mean, squares };
        let columns: Vec<wire::ColumnStatistic> = moments(schema, loaded).iter().map(column).collect();
        let size = loaded.samples.train_rows() as u64;
        let statistics = wire::ColumnStatistics { run: run.to_owned(), size, columns };
        pinned.send(&statistics)?;
        let complete = loop {
            match connection.columns(statistics.clone()).await? {
                text if text.is_empty() => {}
                text => break text,
            }
        };
        let complete: Schema =
            complete.parse().map_err(|error: SchemaError| unreadable(error.to_string()))?;
        let standards = schema.standards_in(&complete).ok_or_else(|| {
            unreadable("it differs from the first one in more than centres and scales".to_owned())
        })?;
        let loaded = loaded.standardised(&standards).map_err(|error| SiteError::Load(Box::new(error)))?;
        let (samples, class_names) = (loaded.samples, loaded.class_names);
        Ok(Self { samples, class_names, notes: self.notes, table: self.table, open: None })
    }
}

impl Connection {
    /// Sends the statistics of a table's open columns; the complete schema, or an empty text if it is not known yet.
    pub async fn columns(&mut self, statistics: wire::ColumnStatistics) -> Result<String, ConnectionError> {
        Ok(self.send_columns(statistics).await?.schema)
    }
}
