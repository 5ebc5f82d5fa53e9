//! Checks whether a site could take part, without taking part.

use crate::client::join::address;
use crate::client::site::Site;
use crate::client::{Connection, ConnectionError, JoinError, Options};
use crate::wire;

/// What a site would take part with.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// The server's description of the run.
    pub welcome: wire::Welcome,
    /// Number of training samples.
    pub training: usize,
    /// Number of samples that are held out.
    pub holdout: usize,
    /// What was done about missing and unknown values.
    pub notes: Vec<String>,
}

/// Asks the server what it trains and reads the site's data accordingly; only the request for this leaves the site.
pub fn check(options: &Options) -> Result<Checked, JoinError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| ConnectionError::Lost(error.to_string()))?;
    let welcome = runtime.block_on(async {
        let mut connection = Connection::dial(&address(&options.server)?, &options.security).await?;
        connection.hello().await
    })?;
    let data = options.data.read(&welcome.schema)?;
    Site::new(&welcome, options, &data)?;
    let (training, holdout) = (data.samples.train_rows(), data.samples.test_rows().len());
    Ok(Checked { welcome, training, holdout, notes: data.notes })
}
