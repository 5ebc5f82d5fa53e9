//! `fedtvd init`: a configuration file with all keys and comments.

use crate::request::{Changes, Failure, Output};
use clap::Args;
use fedtvd_net::client::Policy;
use fedtvd_run::configuration::Config;
use serde_json::json;

/// Print a configuration file with all keys, defaults and comments.
#[derive(Args)]
pub(crate) struct Init {
    #[command(flatten)]
    changes: Changes,
    /// Print the policy of a federation's site instead (site.toml)
    #[arg(long, conflicts_with = "set")]
    site: bool,
    #[command(flatten)]
    output: Output,
}

impl Init {
    pub(crate) fn answer(&self) -> Result<(), Failure> {
        if self.site {
            let text = Policy::default().text();
            return self.output.answer(&json!({ "policy": text }), || text.clone());
        }
        let config = self.changes.apply(Config::default())?;
        let text = format!(
            "# All keys with their defaults; keys that are left out keep them.\n{}",
            config.commented()
        );
        self.output.answer(&json!({ "config": text }), || text.clone())
    }
}
