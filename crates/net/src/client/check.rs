//! Checks whether a site could take part, without taking part.

use crate::client::agreement::{check_announced_reference, check_welcome, disclosures};
use crate::client::join::address;
use crate::client::site::{Site, model_values};
use crate::client::{Connection, ConnectionError, JoinError, Options, SiteError, TableUse, Violation};
use crate::wire;

/// What a site would take part with, and what it would agree to.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The server's description of the run.
    pub welcome: wire::Welcome,
    /// Number of training samples.
    pub training: usize,
    /// Number of samples that are held out.
    pub holdout: usize,
    /// What is read of a table, and what would be sent about it.
    pub table: Option<TableUse>,
    /// What was done about missing and unknown values.
    pub notes: Vec<String>,
    /// Number of values in the model.
    pub model_values: usize,
    /// What would leave the site.
    pub disclosures: Vec<String>,
    /// What the site's policy does not allow.
    pub violations: Vec<Violation>,
}

/// Asks the server what it trains and reads the site's data accordingly; only the request for this leaves the site.
pub fn check(options: &Options) -> Result<Checked, JoinError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| ConnectionError::Lost(error.to_string()))?;
    let sent = options.sent_log()?;
    let welcome = runtime.block_on(async {
        let address = address(&options.server)?;
        sent.connect(&address);
        let connection = Connection::dial(&address, &options.security).await?;
        connection.listed(&sent).hello().await
    })?;
    let data = options.data.read(&welcome.schema)?;
    let (training, holdout) = (data.samples.train_rows(), data.samples.test_rows().len());
    let mut violations: Vec<Violation> = check_welcome(&options.policy, &welcome).err().into_iter().collect();
    match check_announced_reference(&sent, &welcome) {
        // A statistic that is not allowed is among them already.
        Err(JoinError::Policy(violation)) if !violations.contains(&violation) => violations.push(violation),
        Ok(()) | Err(JoinError::Policy(_)) => {}
        Err(error) => return Err(error),
    }
    if data.open_columns() > 0 {
        violations.extend(options.policy.check_columns().err());
    }
    match Site::new(&welcome, options, &data) {
        Ok(_) => {}
        Err(SiteError::Policy(violation)) => violations.push(violation),
        Err(error) => return Err(error.into()),
    }
    let columns = data.table.as_ref().map_or(0, |table| table.statistics.len());
    let disclosures = disclosures(&options.policy, &welcome, columns, sent.references());
    let model_values = model_values(&welcome)?;
    Ok(Checked {
        welcome,
        training,
        holdout,
        table: data.table,
        notes: data.notes,
        model_values,
        disclosures,
        violations,
    })
}
