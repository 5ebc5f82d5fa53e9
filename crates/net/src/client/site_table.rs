//! A site's table between connections: nothing about it leaves before everything that the server sent is checked.

use crate::client::join::blocking;
use crate::client::pinned_schema::PinnedSchema;
use crate::client::site::{Site, check_run};
use crate::client::site_data::Readable;
use crate::client::{Connection, JoinError, Options, Progress, SiteData, SiteError};
use crate::wire;

/// What was read so far.
#[derive(Default)]
pub(crate) struct SiteTable {
    /// The first schema that this process saw, of whatever run.
    first: Option<PinnedSchema>,
    /// The data, and the schema that they were read with.
    read: Option<(String, Readable)>,
}

impl SiteTable {
    /// The site's data as the server's schema reads them, with the federation's centres and scales.
    pub(crate) async fn data(
        &mut self,
        welcome: &wire::Welcome,
        options: &Options,
        connection: &mut Connection,
        report: &(dyn Fn(&Progress) + Sync),
    ) -> Result<Readable, JoinError> {
        check_run(&welcome.run)?;
        if let Some(first) = &self.first {
            first.check(&welcome.schema).map_err(|error| match error {
                SiteError::SchemaChanged { pinned, .. } => {
                    SiteError::SchemaChanged { pinned, new_run: first.run != welcome.run }
                }
                error => error,
            })?;
        }
        // A table is read again only if the schema has changed, which it does once, when it is completed.
        let again = self.read.as_ref().is_none_or(|(schema, _)| *schema != welcome.schema);
        if again {
            let (schema, data) = (welcome.schema.clone(), options.data.clone());
            let found = blocking(move || data.read(&schema)).await?;
            if let Some(table) = found.table.as_ref().filter(|_| self.read.is_none()) {
                report(&Progress::Reads(table.clone()));
            }
            if !found.notes.is_empty() && self.read.is_none() {
                report(&Progress::Read(found.notes.clone()));
            }
            self.read = Some((welcome.schema.clone(), found));
        }
        let data = self.read.as_ref().map(|(_, data)| data.clone());
        let data = data.unwrap_or_else(|| unreachable!("it was just read"));
        let mut pinned = None;
        if matches!(options.data, SiteData::Table { .. }) {
            let (folder, welcome) = (options.folder.clone(), welcome.clone());
            let open = move || PinnedSchema::open(&folder, &welcome.run, welcome.client, &welcome.schema);
            let opened = blocking(open).await?;
            self.first.get_or_insert_with(|| opened.clone());
            pinned = Some(opened);
        }
        let Some(pinned) = pinned.filter(|_| data.open()) else { return Ok(data) };
        options.policy.check_columns()?;
        let data = {
            // The model and the classes, before anything about the data leaves.
            let (welcome, options) = (welcome.clone(), options.clone());
            blocking(move || Site::new(&welcome, &options, &data).map(|_| data)).await?
        };
        data.standardised(&welcome.run, pinned, connection, report).await
    }
}
