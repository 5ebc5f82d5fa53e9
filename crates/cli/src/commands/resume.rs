//! `fedtvd resume DIR`: resumes an interrupted run, with bit-identical results.

use crate::commands::run::{conclude, failure, run_to_end};
use crate::request::{Failure, Output, Resources};
use crate::terminal::watch::Watch;
use clap::Args;
use fedtvd_data::set::Places;
use fedtvd_run::runner::Runner;
use std::path::PathBuf;

/// Resume an interrupted run, with bit-identical results.
#[derive(Args)]
pub(crate) struct Resume {
    /// The run directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Folder with data sets [default: $FEDTVD_DATA]
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
    pub(crate) fn answer(&self) -> Result<(), Failure> {
        let places = Places::new(self.data.clone());
        match Runner::resume(&self.directory, &places, self.resources.checked()?).map_err(failure)? {
            Ok(runner) => run_to_end(runner, &self.watch, self.output),
            Err(summary) => {
                self.watch.note(self.output, "this run is already finished");
                conclude(&summary, self.output)
            }
        }
    }
}
