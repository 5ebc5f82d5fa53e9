//! `fedtvd init`: a commented configuration with every key.

use crate::request::{Changes, Failure, Output};
use clap::Args;
use fedtvd_run::configuration::Config;
use serde_json::json;

/// Print a configuration.
#[derive(Args)]
pub(crate) struct Init {
    #[command(flatten)]
    changes: Changes,
    #[command(flatten)]
    output: Output,
}

impl Init {
    /// Answers.
    pub(crate) fn answer(&self) -> Result<(), Failure> {
        let config = self.changes.apply(Config::default())?;
        let text =
            format!("# Every key with its default; what is left out keeps it.\n{}", config.commented());
        self.output.answer(&json!({ "config": text }), || text.clone())
    }
}
