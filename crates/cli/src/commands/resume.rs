//! `fedtvd resume DIR`: goes on after a stop or a crash, to the same bits.

use crate::commands::run::{failure, finished, go};
use crate::request::{Failure, Output, Resources};
use crate::terminal::watch::Watch;
use clap::Args;
use fedtvd_data::set::Places;
use fedtvd_run::runner::Runner;
use std::path::PathBuf;

/// Go on with a run.
#[derive(Args)]
pub(crate) struct Resume {
    /// The run directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Folder with data sets; FEDTVD_DATA unless given
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    #[command(flatten)]
    resources: Resources,
    #[command(flatten)]
    watch: Watch,
    #[command(flatten)]
    output: Output,
}

impl Resume {
    /// Answers.
    pub(crate) fn answer(&self) -> Result<(), Failure> {
        let places = Places::new(self.data.clone());
        match Runner::resume(&self.directory, &places, self.resources.checked()?).map_err(failure)? {
            Ok(runner) => go(runner, &self.watch, self.output),
            Err(summary) => {
                self.watch.note(self.output, "this run is done; nothing to go on with");
                self.output.answer(&summary, || finished(&summary))
            }
        }
    }
}
